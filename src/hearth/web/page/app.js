// The shell: sign-in, the frame around every page, and routing.

import { h, icon, iconButton, menuButton, sign, toast, announce, ask, roving, called, names } from "./dom.js";
import { token, signIn, forget, dialer, savedEndpoint, relayEndpoint, serverEndpoint, isExported, GUIDED_KEY, PUSH_KEY, THEME_KEY } from "./session.js";

const root = document.getElementById("app");
const PAGES = {
  lists: "Lists", reminders: "Reminders", memories: "Memories", account: "Account", tools: "Tools", status: "Status", help: "Help",
  guide: "First steps", manage: "Manage", settings: "Settings", people: "People", webhooks: "Webhooks",
};
/** Pages in sight; the others are in a person's own menu, and for admins behind Manage. */
const IN_SIGHT = ["lists", "reminders", "memories"];
const FOR_ADMINS = ["guide", "manage", "settings", "people", "webhooks"];
/** Pages for guests, who read what is shared with them. */
const FOR_GUESTS = ["reminders", "account", "help"];
const UNLOADED = "Part of this page could not be loaded. Reload it to try again: Hearth may have been updated.";

begin();

async function begin() {
  if (localStorage.getItem(THEME_KEY)) await import("./theme.js").then(({ applyTheme }) => applyTheme(), () => {});
  if (location.pathname.endsWith("/help")) return (await import("./help.js")).alone(root);
  const link = new URLSearchParams(location.hash.slice(1));
  if (link.has("invite")) {
    history.replaceState(null, "", location.pathname);
    return (await import("./join.js")).join(root, link.get("invite"), start, showSignIn);
  }
  if (link.has("relay")) {
    // A link may fill in the form after a confirmation, but never connects by itself.
    history.replaceState(null, "", location.pathname);
    try {
      const to = relayEndpoint(link.get("relay"), link.get("machine") ?? "", "");
      const text = `This link wants to connect to ${new URL(to.relay).host}. Continue only if it came from the person who runs your Hearth.`;
      if (await ask({ title: "Connect via relay?", text, action: "Continue" })) return showSignIn("", to);
    } catch (error) {
      toast(`This link does not work: ${error.message}`);
    }
  }
  if (token()) start();
  else showSignIn();
}

function showSignIn(note, known = savedEndpoint()) {
  document.title = "Sign in · Hearth";
  const problem = h("p.problem", { role: "alert", id: "problem" }, note ?? "");
  const name = h("input", { name: "username", autocomplete: "username", autocapitalize: "none", spellcheck: "false", required: true, autofocus: true, "aria-describedby": "problem" });
  const password = h("input", { name: "password", type: "password", autocomplete: "current-password", required: true, "aria-describedby": "problem" });
  const stay = h("input", { type: "checkbox", name: "stay" });
  const button = h("button", { type: "submit", class: "primary" }, "Sign in");
  const field = (name, label, value, more) => h("label", label, h("input", { name, value, autocapitalize: "none", spellcheck: "false", required: true, ...more }));
  const address = isExported && field("address", "Server address", known.address ?? "", { placeholder: "home.example:5000" });
  const mayEncrypt = Boolean(globalThis.crypto?.subtle);
  const places = h("fieldset",
    field("relay", "Relay address", known.relay ?? "", { placeholder: "relay.example" }),
    field("machine", "Machine ID", known.machine ?? "", { required: null, placeholder: "Unless it is in the address" }),
    field("relay_token", "Relay token", known.token ?? "", { type: "password", autocomplete: "off" }));
  const away = h("details.away", { open: Boolean(known.relay) }, h("summary", "Connect via relay"), mayEncrypt ? places
    : h("p.problem", "A relay needs encryption (WebCrypto), which browsers disable on plain http pages. Open this page over https, or at http://localhost on the machine itself. At home, sign in without the relay."));
  const choose = () => {
    places.disabled = !away.open;
    if (address) address.hidden = address.lastChild.disabled = away.open;
    button.disabled = away.open && !mayEncrypt;
  };
  away.addEventListener("toggle", choose);
  choose();
  const form = h("form",
    sign(64), h("h1", "Hearth"), h("p.quiet", "Your home’s AI assistant"),
    address,
    h("label", "Name", name), h("label", "Password", password),
    h("label.check", stay, "Stay signed in on this device"),
    away, problem, button,
    h("details.quiet.small", h("summary", "Forgot your password?"),
      h("p", "The person who runs Hearth can set a new one: ", h("code", "hearth user passwd NAME"))),
    !isExported && h("a.small", { href: "help" }, "Help"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    problem.textContent = "";
    try {
      const { relay, machine, relay_token, address: { value } = {} } = form.elements;
      const to = away.open ? relayEndpoint(relay.value, machine.value, relay_token.value) : isExported ? serverEndpoint(value) : {};
      await signIn(to, name.value.trim(), password.value, stay.checked);
      start(true);
    } catch (error) {
      // The browser reports a module that it could not load as a TypeError.
      problem.textContent = error instanceof TypeError ? UNLOADED : error.message;
      button.disabled = false;
      password.select();
    }
  });
  root.replaceChildren(h("main.sign-in", form));
  name.focus();
}

/** Shows the page to whoever is signed in: `isFresh` after the form. */
async function start(isFresh) {
  // The sign-in form does not need these modules.
  const [{ Connection }, { Household }, { conversations }, { chat }, { waitingElsewhere }] = await Promise.all([
    import("./connection.js"), import("./household.js"), import("./conversations.js"), import("./chat.js"), import("./approvals.js"),
  ]);
  const connection = new Connection(await dialer(savedEndpoint()), token());
  const household = new Household(connection);
  const stop = new AbortController();
  let view = null;
  let shown = null;
  let version = null;
  let late = 0;
  let routes = 0;

  const list = conversations(household, go);
  const who = h("span.who-am-i");
  const foot = h("div.row.foot");
  const links = h("ul.pages");
  const refreshLinks = roving(links, () => [...links.querySelectorAll("a")], () => [], true);
  const begins = h("button.primary.new", { "aria-label": "New conversation", onclick: () => go(null) }, icon("plus"), "New");
  const anew = iconButton("plus", "New conversation", "New conversation", () => go(null));
  anew.classList.add("anew");
  const skip = h("button.skip", { onclick: () => (view?.focus ? view.focus() : place.querySelector("a, button, input, select, textarea")?.focus()) }, "Skip to the content");
  const side = h("nav.side", { id: "side", "aria-label": "Conversations and pages" },
    h("div.brand", sign(30), h("strong", "Hearth"), begins,
      h("button.icon-button.close-side", { "aria-label": "Close the menu", onclick: () => menu(false) }, icon("cross"))),
    list.element,
    links,
    foot);
  const opener = h("button.icon-button.open-side", { "aria-label": "Open the menu", "aria-controls": "side", "aria-expanded": "false", onclick: () => menu(true) }, icon("menu"));
  const banner = h("div.banner", { role: "status", hidden: true });
  const header = h("header.top");
  const place = h("div.place");
  const main = h("main.main", header, banner, place);
  const isWide = matchMedia("(min-width: 56rem)");
  const shade = h("div.shade", { onclick: () => menu(false) });
  root.replaceChildren(h("div.frame", skip, side, shade, main));
  const waiting = waitingElsewhere(household, go);

  connection.addEventListener("state", ({ detail }) => state(detail));
  connection.addEventListener("ready", ready);
  connection.addEventListener("rejected", () => {
    end();
    forget();
    showSignIn("You were signed out. Sign in again to continue.");
  });
  addEventListener("hashchange", route, { signal: stop.signal });
  // A file that is dropped beside the conversation must not replace the page.
  for (const name of ["dragover", "drop"]) {
    addEventListener(name, (event) => { if (event.dataTransfer?.types.includes("Files")) event.preventDefault(); }, { signal: stop.signal });
  }
  isWide.addEventListener("change", () => menu(false), { signal: stop.signal });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && household.open) household.markRead(household.open); }, { signal: stop.signal });
  document.addEventListener("keydown", keys, { signal: stop.signal });
  // What the worker says when somebody clicks on a notification.
  navigator.serviceWorker?.addEventListener("message", ({ data }) => go(data.conversation), { signal: stop.signal });
  route();
  connection.open();
  if (isFresh === true) household.ready.then(guide);

  function end() {
    stop.abort();
    view?.close?.();
    connection.close();
    history.replaceState(null, "", location.pathname);
  }

  /** Shows an admin the first steps, where nobody has gone any of them. */
  function guide() {
    const isNew = household.isAdmin && !household.conversations.size && names.size <= 1 && !localStorage.getItem(GUIDED_KEY);
    if (isNew && shown === "chat" && !household.open) location.hash = "#/guide";
  }

  async function leave() {
    if (!await ask({ title: "Sign out?", text: "Drafts in this browser are deleted.", action: "Sign out" })) return;
    forget();
    // This browser is signed out even if the server cannot be reached.
    await connection.request("sign_out", {}, { keep: true, timeout: 3000 }).catch(() => {});
    end();
    forget(); // The draft that was just kept.
    showSignIn();
  }

  function ready() {
    const { user, role, server } = connection.identity;
    who.replaceChildren(h("strong", called(user)), h("span.quiet.small", ` ${household.isGuest ? "guest" : role}`));
    begins.hidden = anew.hidden = household.isGuest;
    links.replaceChildren(...[["", "Chats"], ...IN_SIGHT.filter(mayOpen).map((page) => [page, PAGES[page]])].map(([page, label]) =>
      h("li", h("a", { href: `#/${page}` }, icon(page || "chats"), label))));
    const own = ["account", ...(household.isAdmin || household.isGuest ? [] : ["tools", "status"]), "help"];
    foot.replaceChildren(
      menuButton("account", `Your menu: ${called(user)}`, [...own.map((page) => [page, PAGES[page], () => { location.hash = `#/${page}`; }]), ["leave", "Sign out", leave]], who),
      ...(household.isAdmin ? [h("a.plain", { href: "#/manage" }, icon("settings"), "Manage")] : []));
    markCurrent();
    if (version && version !== server.version) {
      toast("Hearth was updated. Reload the page to use the new version.");
    }
    version = server.version;
    if (localStorage.getItem(PUSH_KEY) === user) import("./push.js").then(({ renew }) => renew(household)).catch(() => {});
  }

  function mayOpen(page) {
    return household.isAdmin || (household.isGuest ? FOR_GUESTS.includes(page) : !FOR_ADMINS.includes(page));
  }

  /** Marks where one is: on a page of the administration, that is Manage. */
  function markCurrent() {
    const isManaged = FOR_ADMINS.includes(shown) || (household.isAdmin && ["tools", "status"].includes(shown));
    const current = `#/${shown === "chat" ? "" : isManaged ? "manage" : shown}`;
    for (const link of side.querySelectorAll(".pages a, .foot a")) {
      if (link.hash === current || link.getAttribute("href") === current) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    refreshLinks(links.querySelector("[aria-current]"));
  }

  function state({ state: now, problem }) {
    clearTimeout(late);
    if (now === "open") {
      if (!banner.hidden && banner.dataset.lost) announce("Reconnected.");
      banner.hidden = true;
      delete banner.dataset.lost;
    } else if (now === "waiting") {
      banner.dataset.lost = "yes";
      // Do not report a short interruption.
      late = setTimeout(() => { banner.hidden = false; }, 700);
      banner.replaceChildren(`${problem || "No connection to Hearth."} Reconnecting… `, h("button.plain", { onclick: () => connection.wake() }, "Try now"));
    } else if (banner.dataset.lost) {
      late = setTimeout(() => { banner.hidden = false; }, 700);
    }
  }

  function menu(isOpen) {
    side.classList.toggle("shown", isOpen);
    // On a phone the menu covers the page, which must not take the focus.
    main.inert = isOpen && !isWide.matches;
    opener.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) side.querySelector(".close-side").focus();
    else if (side.contains(document.activeElement)) opener.focus();
  }

  function keys(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !household.isGuest) {
      event.preventDefault();
      menu(true);
      list.field.focus();
      list.field.select();
    } else if (event.key === "Escape" && side.classList.contains("shown")) {
      menu(false);
    }
  }

  /** Opens a conversation; null is a new one. */
  function go(id, message, replaces) {
    menu(false);
    const hash = id ? `#/c/${id}${message ? `/${message}` : ""}` : "#/";
    if (replaces) history.replaceState(null, "", hash);
    else if (location.hash !== hash) return void (location.hash = hash);
    route();
  }

  async function route() {
    const [page = "", id = null, message = null] = location.hash.replace(/^#\/?/, "").split("/");
    const number = ++routes;
    view?.close?.();
    view = null;
    menu(false);
    const isChat = page === "" || page === "c";
    household.open = isChat ? id : null;
    shown = isChat ? "chat" : page;
    markCurrent();
    if (isChat) {
      view = chat({ household, go, id, sought: message });
      header.replaceChildren(opener, view.title, waiting, view.controls, anew);
      household.markRead(id);
    } else {
      const made = await showPage(page, id, () => number === routes);
      // Somebody has gone on meanwhile.
      if (number !== routes) return made?.close?.();
      view = made;
    }
    list.draw();
    household.dispatchEvent(new CustomEvent("approvals"));
    if (view) place.replaceChildren(view.element);
    place.dataset.page = shown;
    if (isChat && !matchMedia("(pointer: coarse)").matches) view?.focus?.();
  }

  /** Makes a page, once it is known who looks at it; undefined where it says why there is none. */
  async function showPage(page, id, isWanted) {
    const label = Object.hasOwn(PAGES, page) ? PAGES[page] : undefined;
    header.replaceChildren(opener, h("h1", label ?? "Page not found"), waiting, anew);
    document.title = label ? `${label} · Hearth` : "Hearth";
    announce(label ?? "Page not found.");
    const tell = (...words) => void (isWanted() && place.replaceChildren(h("div.page", h("p", ...words))));
    if (!label) return tell("This page does not exist. ", h("a", { href: "#/" }, "Start a conversation"), ".");
    tell({ class: "quiet" }, "Loading…");
    if (page !== "help") await household.ready;
    if (page !== "help" && !mayOpen(page)) return tell(`Only an admin opens this page. Ask ${connection.identity.admin ?? "an admin"}.`);
    let module;
    try {
      module = await import(`./${page}.js`);
    } catch {
      return tell({ class: "problem", role: "alert" }, UNLOADED);
    }
    return module.show(household, id && decodeURIComponent(id)).catch((error) => tell({ class: "problem", role: "alert" }, error.message));
  }
}
