// The shell: sign-in, the frame around every page, and routing.

import { h, icon, iconButton, menuButton, sign, toast, announce, ask, complain, complainIn, roving, called, names } from "./dom.js";
import { adopt, pieces, say } from "./words.js";
import { token, signIn, forget, dialer, savedEndpoint, relayEndpoint, serverEndpoint, isExported, GUIDED_KEY, PUSH_KEY, THEME_KEY } from "./session.js";

const root = document.getElementById("app");
const PAGES = ["lists", "reminders", "memories", "account", "tools", "status", "help", "guide", "manage", "settings", "people", "webhooks", "calendars", "upkeep"];
const nameOf = (page) => say(`app.page.${page}`);
/** Pages in sight; the others are in a person's own menu, and for admins behind Manage. */
const IN_SIGHT = ["lists", "reminders", "memories"];
const FOR_ADMINS = ["guide", "manage", "settings", "people", "webhooks", "upkeep"];
/** Pages for guests, who read what is shared with them. */
const FOR_GUESTS = ["reminders", "account", "help"];
const UNLOADED = say("app.unloaded");

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
      const text = say("app.relay_link", { host: new URL(to.relay).host });
      if (await ask({ title: say("app.relay_link_title"), text, action: say("common.continue") })) return showSignIn("", to);
    } catch (error) {
      toast(say("app.relay_link_wrong", { problem: error.message }));
    }
  }
  if (token()) start();
  else showSignIn();
}

function showSignIn(note, known = savedEndpoint()) {
  document.title = `${say("common.sign_in")} · Hearth`;
  const problem = h("p.problem", { role: "alert", id: "problem" }, note ?? "");
  const name = h("input", { name: "username", autocomplete: "username", autocapitalize: "none", spellcheck: "false", required: true, autofocus: true, "aria-describedby": "problem" });
  const password = h("input", { name: "password", type: "password", autocomplete: "current-password", required: true, "aria-describedby": "problem" });
  const stay = h("input", { type: "checkbox", name: "stay" });
  const button = h("button", { type: "submit", class: "primary" }, say("common.sign_in"));
  const field = (name, label, value, more) => h("label", label, h("input", { name, value, autocapitalize: "none", spellcheck: "false", required: true, ...more }));
  const address = isExported && field("address", say("app.server_address"), known.address ?? "", { placeholder: "home.example:5000" });
  const mayEncrypt = Boolean(globalThis.crypto?.subtle);
  const places = h("fieldset",
    field("relay", say("app.relay_address"), known.relay ?? "", { placeholder: "relay.example" }),
    field("machine", say("app.machine_id"), known.machine ?? "", { required: null, placeholder: say("app.unless_in_address") }),
    field("relay_token", say("app.relay_token"), known.token ?? "", { type: "password", autocomplete: "off" }));
  const away = h("details.away", { open: Boolean(known.relay) }, h("summary", say("app.via_relay")), mayEncrypt ? places
    : h("p.problem", say("app.needs_encryption")));
  const choose = () => {
    places.disabled = !away.open;
    if (address) address.hidden = address.lastChild.disabled = away.open;
    button.disabled = away.open && !mayEncrypt;
  };
  away.addEventListener("toggle", choose);
  choose();
  const form = h("form",
    sign(64), h("h1", "Hearth"), h("p.quiet", say("app.tagline")),
    address,
    h("label", say("common.name"), name), h("label", say("common.password"), password),
    h("label.check", stay, say("common.stay_signed_in")),
    away, problem, button,
    h("details.quiet.small", h("summary", say("app.forgot")),
      h("p", pieces("app.forgot_how", { command: h("code", "hearth user passwd NAME") }))),
    !isExported && h("a.small", { href: "help" }, nameOf("help")));
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
  const begins = h("button.primary.new", { "aria-label": say("app.new_named"), onclick: () => go(null) }, icon("plus"), say("app.new"));
  const anew = iconButton("plus", say("common.new_conversation"), say("common.new_conversation"), () => go(null));
  anew.classList.add("anew");
  const skip = h("button.skip", { onclick: () => (view?.focus ? view.focus() : place.querySelector("a, button, input, select, textarea")?.focus()) }, say("app.skip"));
  const side = h("nav.side", { id: "side", "aria-label": say("app.side") },
    h("div.brand", sign(30), h("strong", "Hearth"), begins,
      h("button.icon-button.close-side", { "aria-label": say("app.close_menu"), onclick: () => menu(false) }, icon("cross"))),
    list.element,
    links,
    foot);
  const opener = h("button.icon-button.open-side", { "aria-label": say("app.open_menu"), "aria-controls": "side", "aria-expanded": "false", onclick: () => menu(true) }, icon("menu"));
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
  household.addEventListener("names", nameMe);
  connection.addEventListener("rejected", () => {
    end();
    forget();
    showSignIn(say("app.signed_out"));
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
  navigator.serviceWorker?.addEventListener("message", ({ data: { conversation, reminder, action } }) => {
    if (!action) return go(conversation);
    import("./told.js").then(({ answer }) => answer(household, reminder, action)).catch(complain);
  }, { signal: stop.signal });
  route();
  connection.open();
  if (isFresh === true) household.ready.then(guide);

  function end() {
    stop.abort();
    view?.close?.();
    connection.close();
    history.replaceState(null, "", location.pathname);
  }

  /** Shows an admin the first steps, where nobody has gone any of them: a greeting in a terminal is none. */
  function guide() {
    const isUntouched = !household.conversations.size || household.config.provider === "offline";
    const isNew = household.isAdmin && isUntouched && names.size <= 1 && !localStorage.getItem(GUIDED_KEY);
    if (isNew && shown === "chat" && !household.open) location.hash = "#/guide";
  }

  async function leave() {
    if (!await ask({ title: say("app.sign_out_title"), text: say("app.sign_out_text"), action: say("common.sign_out") })) return;
    forget();
    // This browser is signed out even if the server cannot be reached.
    await connection.request("sign_out", {}, { keep: true, timeout: 3000 }).catch(() => {});
    end();
    forget(); // The draft that was just kept.
    showSignIn();
  }

  function ready() {
    const { user, server, language } = connection.identity;
    adopt(language);
    begins.hidden = anew.hidden = household.isGuest;
    links.replaceChildren(...[["", say("app.chats")], ...IN_SIGHT.filter(mayOpen).map((page) => [page, nameOf(page)])].map(([page, label]) =>
      h("li", h("a", { href: `#/${page}` }, icon(page || "chats"), label))));
    const own = ["account", ...(household.isGuest ? [] : ["calendars"]), ...(household.isAdmin || household.isGuest ? [] : ["tools", "status"]), "help"];
    foot.replaceChildren(
      menuButton("account", say("app.your_menu", { name: called(user) }), [...own.map((page) => [page, nameOf(page), () => { location.hash = `#/${page}`; }]), ["leave", say("common.sign_out"), leave]], who),
      ...(household.isAdmin ? [h("a.plain", { href: "#/manage" }, icon("settings"), nameOf("manage"))] : []));
    markCurrent();
    if (version && version !== server.version) {
      toast(say("app.updated"));
    }
    version = server.version;
    if (place.querySelector(".page > .failure")) route();
    if (localStorage.getItem(PUSH_KEY) === user) import("./push.js").then(({ renew }) => renew(household)).catch(() => {});
  }

  /** Says in one's own menu how one is called now. */
  function nameMe() {
    const { user, role } = connection.identity;
    who.replaceChildren(h("strong", called(user)), h("span.quiet.small", ` ${say(`common.role.${role}`)}`));
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
      if (!banner.hidden && banner.dataset.lost) announce(say("app.reconnected"));
      banner.hidden = true;
      delete banner.dataset.lost;
    } else if (now === "waiting") {
      banner.dataset.lost = "yes";
      // Do not report a short interruption.
      late = setTimeout(() => { banner.hidden = false; }, 700);
      banner.replaceChildren(`${problem || say("app.no_connection")} ${say("app.reconnecting")} `, h("button.plain", { onclick: () => connection.wake() }, say("app.try_now")));
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
      const made = await showPage(page, () => number === routes, id, message);
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
  async function showPage(page, isWanted, ...rest) {
    const label = PAGES.includes(page) ? nameOf(page) : undefined;
    header.replaceChildren(opener, h("h1", label ?? say("app.not_found")), waiting, anew);
    document.title = label ? `${label} · Hearth` : "Hearth";
    announce(label ?? say("app.not_found"));
    const tell = (...words) => void (isWanted() && place.replaceChildren(h("div.page", h("p", ...words))));
    if (!label) return tell(...pieces("app.no_such_page", { link: h("a", { href: "#/" }, say("app.start")) }));
    tell({ class: "quiet" }, say("common.loading"));
    if (page !== "help") await household.ready;
    if (page !== "help" && !mayOpen(page)) return tell(connection.identity.admin ? say("app.admins_only", { admin: connection.identity.admin }) : say("app.admins_only_any"));
    let module;
    try {
      module = await import(`./${page}.js`);
    } catch {
      return failed(new Error(UNLOADED), reload);
    }
    return module.show(household, ...rest).catch((error) => failed(error, route));

    /** Says why the page is not there, with a button that tries again. */
    function failed(error, again) {
      const text = h("p");
      complainIn(text, error);
      if (isWanted()) place.replaceChildren(h("div.page", h("div.failure", { role: "alert" }, text, h("div.row", h("button", { onclick: again }, icon("retry"), say("common.try_again"))))));
    }
  }

  /** Loads all of it again once the server answers: browsers remember that a module failed. */
  async function reload() {
    const answers = await fetch("", { method: "HEAD", cache: "no-store" }).then(({ ok }) => ok, () => false);
    if (answers) location.reload();
    else toast(say("app.no_connection"));
  }
}
