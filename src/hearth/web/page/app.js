// The shell: signing in, the frame around every page, and which page is shown.

import { h, icon, sign, toast, announce, ask } from "./dom.js";
import { token, signIn, forget, dialer, way, relayWay, addressWay, isExported } from "./session.js";

const root = document.getElementById("app");
const PAGES = [
  ["settings", "Settings"],
  ["tools", "Tools"],
  ["memories", "Memories"],
  ["reminders", "Reminders"],
  ["people", "People"],
  ["webhooks", "Webhooks"],
  ["status", "Status"],
  ["help", "Help"],
];
/** What anybody may see; the rest is for admins. */
const OPEN_PAGES = ["tools", "memories", "reminders", "status", "help"];

/** A module that did not come is a TypeError of the browser's. */
const said = (error) => error instanceof TypeError ? "A part of this page could not be loaded. Reload to try again: Hearth may have been updated." : error.message;

begin();

async function begin() {
  if (location.pathname.endsWith("/help")) return (await import("./help.js")).alone(root);
  const link = new URLSearchParams(location.hash.slice(1));
  if (link.has("relay")) {
    // A link may fill in the form, when asked for; it never connects.
    history.replaceState(null, "", location.pathname);
    try {
      const to = relayWay(link.get("relay"), link.get("machine") ?? "", "");
      const text = `This link wants to connect to ${new URL(to.relay).host}. Continue? Only if it comes from whoever runs your Hearth.`;
      if (await ask({ title: "A link to a relay", text, action: "Continue" })) return showSignIn("", to);
    } catch (error) {
      toast(`The link is no use: ${error.message}`);
    }
  }
  if (token()) start();
  else showSignIn();
}

function showSignIn(note, known = way()) {
  document.title = "Sign in · Hearth";
  const problem = h("p.problem", { role: "alert", id: "problem" }, note ?? "");
  const name = h("input", { name: "username", autocomplete: "username", autocapitalize: "none", spellcheck: "false", required: true, autofocus: true, "aria-describedby": "problem" });
  const password = h("input", { name: "password", type: "password", autocomplete: "current-password", required: true, "aria-describedby": "problem" });
  const stay = h("input", { type: "checkbox", name: "stay" });
  const button = h("button", { type: "submit", class: "primary" }, "Sign in");
  const field = (name, label, value, more) => h("label", label, h("input", { name, value, autocapitalize: "none", spellcheck: "false", required: true, ...more }));
  const address = isExported && field("address", "Address of Hearth", known.address ?? "", { placeholder: "home.example:5000" });
  const mayEncrypt = Boolean(globalThis.crypto?.subtle);
  const places = h("fieldset",
    field("relay", "Address of the relay", known.relay ?? "", { placeholder: "relay.example" }),
    field("machine", "Machine id", known.machine ?? "", { required: null, placeholder: "Unless the address has it" }),
    field("relay_token", "Relay token", known.token ?? "", { type: "password", autocomplete: "off" }));
  const away = h("details.away", { open: Boolean(known.relay) }, h("summary", "Through a relay, from anywhere"), mayEncrypt ? places
    : h("p.problem", "This page came over plain http, where browsers withhold the encryption (WebCrypto) that a relay needs. Open the page by https, or by http://localhost on the machine itself. At home, sign in without the relay."));
  const choose = () => {
    places.disabled = !away.open;
    if (address) address.hidden = address.lastChild.disabled = away.open;
    button.disabled = away.open && !mayEncrypt;
  };
  away.addEventListener("toggle", choose);
  choose();
  const form = h("form",
    sign(64), h("h1", "Hearth"), h("p.quiet", "The assistant of this home"),
    address,
    h("label", "Name", name), h("label", "Password", password),
    h("label.check", stay, "Stay signed in on this device"),
    away, problem, button,
    h("details.quiet.small", h("summary", "Forgot the password?"),
      h("p", "Whoever runs Hearth can set a new one: ", h("code", "hearth user passwd NAME"))),
    !isExported && h("a.small", { href: "help" }, "Help"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    problem.textContent = "";
    try {
      const { relay, machine, relay_token, address: { value } = {} } = form.elements;
      const to = away.open ? relayWay(relay.value, machine.value, relay_token.value) : isExported ? addressWay(value) : {};
      await signIn(to, name.value.trim(), password.value, stay.checked);
      start();
    } catch (error) {
      problem.textContent = said(error);
      button.disabled = false;
      password.select();
    }
  });
  root.replaceChildren(h("main.sign-in", form));
  name.focus();
}

async function start() {
  // What only a signed-in person needs is fetched now, not for the sign-in form.
  const [{ Connection }, { Household }, { conversations }, { chat }, { approvals }] = await Promise.all([
    import("./connection.js"), import("./household.js"), import("./conversations.js"), import("./chat.js"), import("./approvals.js"),
  ]);
  const connection = new Connection(await dialer(way()), token());
  const household = new Household(connection);
  const stop = new AbortController();
  let view = null;
  let shown = null;
  let version = null;
  let late = 0;

  const list = conversations(household, go);
  const who = h("p.who-am-i");
  const links = h("ul.pages");
  const side = h("nav.side", { id: "side", "aria-label": "Conversations and pages" },
    h("div.brand", sign(30), h("strong", "Hearth"),
      h("button.icon-button.close-side", { "aria-label": "Close the menu", onclick: () => menu(false) }, icon("cross"))),
    h("button.primary.new", { onclick: () => go(null) }, icon("plus"), "New conversation"),
    list.element,
    links,
    h("div.row.foot", who, h("button.plain", { onclick: leave }, "Sign out")));
  const opener = h("button.icon-button.open-side", { "aria-label": "Open the menu", "aria-controls": "side", "aria-expanded": "false", onclick: () => menu(true) }, icon("menu"));
  const banner = h("div.banner", { role: "status", hidden: true });
  const tray = h("div.tray", { "aria-label": "Questions of the assistant", hidden: true });
  const header = h("header.top");
  const place = h("div.place");
  const main = h("main.main", header, banner, place, tray);
  const isWide = matchMedia("(min-width: 56rem)");
  const shade = h("div.shade", { onclick: () => menu(false) });
  root.replaceChildren(h("div.frame", side, shade, main));
  approvals(tray, household, () => menu(false));

  connection.addEventListener("state", ({ detail }) => state(detail));
  connection.addEventListener("ready", ready);
  connection.addEventListener("rejected", () => {
    end();
    forget();
    showSignIn("You were signed out. Sign in again to go on.");
  });
  addEventListener("hashchange", route, { signal: stop.signal });
  isWide.addEventListener("change", () => menu(false), { signal: stop.signal });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && household.open) household.markRead(household.open); }, { signal: stop.signal });
  document.addEventListener("keydown", keys, { signal: stop.signal });
  route();
  connection.open();

  function end() {
    stop.abort();
    view?.close?.();
    connection.close();
    history.replaceState(null, "", location.pathname);
  }

  async function leave() {
    forget();
    // Even when the server is away, this browser is signed out.
    await connection.request("sign_out", {}, { keep: true, patience: 3000 }).catch(() => {});
    end();
    showSignIn();
  }

  function ready() {
    const { user, role, server } = connection.identity;
    who.replaceChildren(h("strong", user), h("span.quiet.small", ` ${role}`));
    links.replaceChildren(...PAGES.filter(([page]) => household.isAdmin || OPEN_PAGES.includes(page)).map(([page, label]) =>
      h("li", h("a", { href: `#/${page}`, "aria-current": shown === page ? "page" : null }, label))));
    if (version && version !== server.version) {
      toast("Hearth was updated. Reload the page to use the new version.");
    }
    version = server.version;
    if (shown === null) route();
  }

  function state({ state: now, problem }) {
    clearTimeout(late);
    if (now === "open") {
      if (!banner.hidden && banner.dataset.lost) announce("Connected again.");
      banner.hidden = true;
      delete banner.dataset.lost;
    } else if (now === "waiting") {
      banner.dataset.lost = "yes";
      // A blink of the network is not worth a word.
      late = setTimeout(() => { banner.hidden = false; }, 700);
      banner.replaceChildren(`${problem || "Not connected to Hearth."} Trying again… `, h("button.plain", { onclick: () => connection.wake() }, "Try now"));
    } else if (banner.dataset.lost) {
      late = setTimeout(() => { banner.hidden = false; }, 700);
    }
  }

  function menu(isOpen) {
    side.classList.toggle("shown", isOpen);
    // On a phone the menu covers the rest, which must not take the focus.
    main.inert = isOpen && !isWide.matches;
    opener.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) side.querySelector(".close-side").focus();
    else if (side.contains(document.activeElement)) opener.focus();
  }

  function keys(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
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
    view?.close?.();
    view = null;
    menu(false);
    const isChat = page === "" || page === "c";
    household.open = isChat ? id : null;
    shown = isChat ? "chat" : page;
    for (const link of links.querySelectorAll("a")) {
      if (link.hash === `#/${page}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (isChat) {
      view = chat({ household, go, id, sought: message });
      header.replaceChildren(opener, view.title, view.controls);
      household.markRead(id);
    } else {
      await showPage(page);
    }
    list.draw();
    household.dispatchEvent(new CustomEvent("approvals"));
    if (view) place.replaceChildren(view.element);
    if (isChat && !matchMedia("(pointer: coarse)").matches) view?.focus?.();
  }

  async function showPage(page) {
    const label = PAGES.find(([name]) => name === page)?.[1];
    header.replaceChildren(opener, h("h1", label ?? "Nothing here"));
    document.title = label ? `${label} · Hearth` : "Hearth";
    announce(label ?? "There is no such page.");
    if (!label) {
      place.replaceChildren(h("div.page", h("p", "There is no such page. ", h("a", { href: "#/" }, "Start a conversation"), ".")));
      return;
    }
    place.replaceChildren(h("div.page", h("p.quiet", "Loading…")));
    try {
      const module = await import(`./${page}.js`);
      const made = await module.show(household);
      if (shown === page) view = made;
      else made.close?.();
    } catch (error) {
      if (shown !== page) return;
      place.replaceChildren(h("div.page", h("p.problem", { role: "alert" }, said(error))));
    }
  }
}
