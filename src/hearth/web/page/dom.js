// Creating elements. Text always becomes a text node, so that nothing written by a
// model or a person is ever parsed as HTML.

import { locale, say } from "./words.js";

/** An element: h("p.note.small", { onclick }, "text", child, ...); properties are optional. */
export function h(selector, ...children) {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  if (tag === "button") element.type = "button";
  if (tag === "textarea") element.dir = "auto";
  const properties = children[0]?.constructor === Object ? children.shift() : {};
  for (const [name, value] of Object.entries(properties)) {
    if ((value ?? false) === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  // One at a time: too many arguments of one call overflow the stack.
  for (const child of children.flat()) if ((child ?? false) !== false) element.append(child);
  return element;
}

/** A function that gives `use` a module: now, or once it is loaded. Without it, all stays as it is. */
export function lazily(load) {
  let module = null;
  let loading = null;
  return (use) => {
    if (module) return use(module);
    loading ??= load();
    loading.then((loaded) => use(module = loaded), () => { loading = null; });
  };
}

/** A section of a page with a heading. */
export const card = (title, ...children) => h("section.card", h("h2", title), ...children);

export const ICONS = {
  menu: "M4 7h16M4 12h16M4 17h16",
  plus: "M12 5v14M5 12h14",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 12l5 5 9-10",
  cross: "M6 6l12 12M18 6L6 18",
  tool: "M14 6a4 4 0 0 1 5-1l-3 3 1 2 2 1 3-3a4 4 0 0 1-6 5l-7 7-3-3 7-7a4 4 0 0 1 1-4z",
  back: "M14 6l-6 6 6 6",
  lock: "M6 11h12v9H6zM8 11V8a4 4 0 0 1 8 0v3",
  key: "M15.5 3.5a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM12 12l-8 8M6 18l2.5 2.5M9 15l2 2",
  guide: "M6 20V5l5 3 7-3v10l-7 3-5-3",
  home: "M4 11l8-7 8 7v9h-6v-6h-4v6H4z",
  people: "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2 20c0-4 3-6 7-6s7 2 7 6M16 4.5a3.5 3.5 0 0 1 0 6M18 14.5c2.6.8 4 2.5 4 5.5",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 5a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM9 15a2 2 0 1 0 0 4 2 2 0 0 0 0-4z",
  tools: "M14 6a4 4 0 0 1 5-1l-3 3 1 2 2 1 3-3a4 4 0 0 1-6 5l-7 7-3-3 7-7a4 4 0 0 1 1-4z",
  lists: "M4 7l1.5 1.5L8 6M4 16l1.5 1.5L8 15M11 7h9M11 16h9",
  memories: "M7 4h10v17l-5-4-5 4z",
  reminders: "M12 4a5.5 5.5 0 0 0-5.5 5.5c0 5-2 6.5-2 6.5h15s-2-1.5-2-6.5A5.5 5.5 0 0 0 12 4zM10 19.5a2.2 2.2 0 0 0 4 0",
  account: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM4.5 20.5c0-4.5 3.5-6 7.5-6s7.5 1.5 7.5 6",
  webhooks: "M9 7H7a5 5 0 0 0 0 10h2M15 7h2a5 5 0 0 1 0 10h-2M8.5 12h7",
  chats: "M4 5h16v11H9l-5 4z",
  leave: "M10 4H5v16h5M9 12h11M16 8l4 4-4 4",
  calendars: "M4 6h16v14H4zM4 10h16M8 3v4M16 3v4",
  upkeep: "M12 3l8 3v6c0 5-3.500 8-8 9-4.500-1-8-4-8-9V6zM8.500 12l2.500 2.500 4.500-5",
  status: "M3 13h4l3-8 4 14 3-6h4",
  help: "M9.2 9a3 3 0 1 1 4.300 2.700c-1 .5-1.5 1.2-1.5 2.300M12 18v.01M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z",
  more: "M5.5 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2zM12 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2zM18.5 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2z",
  pin: "M9 4h6l-1 6 3 3v2H7v-2l3-3zM12 15v6",
  archive: "M4 5h16v4H4zM6 9v11h12V9M10 13h4",
  print: "M7 9V4h10v5M7 17H4V9h16v8h-3M7 14h10v6H7z",
  attach: "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.3 3.3 0 0 1 4.7 4.7l-8.5 8.5a1.6 1.6 0 0 1-2.3-2.3L14 7.8",
  camera: "M4 8h4l1.5-3h5L16 8h4v11H4zM12 10a3.3 3.3 0 1 0 0 6.6 3.3 3.3 0 0 0 0-6.6z",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  quote: "M5 17c2.5 0 4-2 4-5V8H5v4h4M14 17c2.5 0 4-2 4-5V8h-4v4h4",
  speak: "M4 9.5v5h3.5L12 19V5L7.5 9.5zM15.5 9a4.5 4.5 0 0 1 0 6M18 6.5a8 8 0 0 1 0 11",
  retry: "M19 12a7 7 0 1 1-2-5M19 4v4h-4",
};

/** A line icon, hidden from screen readers: the button around it has a label. */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** A button that is an icon; `label` is for screen readers. */
/** What people are called, by the names that records have. */
export const names = new Map();
export const called = (name) => names.get(name) ?? name;

export const iconButton = (name, label, title, onclick) => h("button.icon-button", { "aria-label": label, title, onclick }, icon(name));

/**
 * Makes a list one stop of the Tab key. Arrow keys go from item to item, and sideways
 * through the controls of the current one. Call the function that it returns when the
 * items have changed; it gets the item that is current if none has the focus.
 */
export function roving(list, itemsOf, controlsOf = () => [], isRow = false) {
  const [back, forth] = isRow ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
  const stop = (item) => {
    for (const one of itemsOf()) {
      one.tabIndex = one === item ? 0 : -1;
      for (const control of controlsOf(one)) control.tabIndex = -1;
    }
  };
  list.addEventListener("focusin", ({ target }) => {
    const item = itemsOf().find((one) => one === target);
    if (item && item.tabIndex !== 0) stop(item);
  });
  list.addEventListener("keydown", (event) => {
    const items = itemsOf();
    const item = items.find((one) => one === event.target || controlsOf(one).includes(event.target));
    // A choice has the arrow keys to itself; Shift+Tab leads back to its row.
    if (!item || event.target.matches("select")) return;
    const controls = controlsOf(item);
    const at = controls.indexOf(event.target);
    const to = event.key === forth ? items[items.indexOf(item) + 1]
      : event.key === back ? items[items.indexOf(item) - 1]
      : event.key === "Home" ? items[0]
      : event.key === "End" ? items.at(-1)
      : isRow ? undefined
      : event.key === "ArrowRight" ? controls[at + 1]
      : event.key === "ArrowLeft" && at >= 0 ? controls[at - 1] ?? item
      : undefined;
    if (!to) return;
    event.preventDefault();
    to.focus();
  });
  return (current) => {
    const items = itemsOf();
    stop(items.find((one) => one === document.activeElement) ?? current ?? items[0]);
  };
}

/**
 * A list of rows that is one stop of the Tab key. `itemOf` is what of a row gets the
 * focus first; arrow keys lead sideways to what else it has.
 */
export function rowList(rows = [], itemOf = (row) => row) {
  const list = h("ul.rows", rows);
  const items = () => [...list.children].map(itemOf);
  const refresh = roving(list, items, (item) =>
    [...item.closest("li").querySelectorAll("a, button, input, select")].filter((one) => one !== item));
  let at = 0;
  list.addEventListener("focusin", ({ target }) => { at = [...list.children].findIndex((row) => row.contains(target)); });
  const redrawn = () => {
    const now = items();
    refresh(now[Math.min(at, now.length - 1)]);
  };
  new MutationObserver(redrawn).observe(list, { childList: true });
  redrawn();
  return list;
}

/** A button that opens a menu of [icon, label, action]; with `words`, they stand beside its icon. */
export function menuButton(name, label, entries, words) {
  const menu = h("div.menu", { role: "menu", hidden: true }, entries.filter(Boolean).map(([sign, words, action]) =>
    h("button.plain", { role: "menuitem", tabindex: -1, onclick: () => { open(false); action(); } }, icon(sign), words)));
  const button = iconButton(name, label, label, () => open(menu.hidden));
  if (words) {
    button.className = "plain";
    // They are its name.
    button.removeAttribute("aria-label");
    button.append(words);
  }
  button.setAttribute("aria-haspopup", "menu");
  button.setAttribute("aria-expanded", "false");
  const element = h("span.menu-place", button, menu);
  element.addEventListener("focusout", ({ relatedTarget }) => { if (!element.contains(relatedTarget)) open(false); });
  element.addEventListener("keydown", (event) => {
    const items = [...menu.children];
    const at = items.indexOf(document.activeElement);
    const to = { ArrowDown: items[(at + 1) % items.length], ArrowUp: items.at(at <= 0 ? -1 : at - 1) }[event.key];
    if (event.key === "Escape" && !menu.hidden) {
      open(false);
      button.focus();
      event.stopPropagation();
    } else if (to) {
      open(true);
      to.focus();
      event.preventDefault();
    }
  });
  return element;

  function open(isOpen) {
    if (menu.hidden !== isOpen) return;
    menu.hidden = !isOpen;
    button.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) menu.firstChild.focus();
  }
}

/** What is known of something, as the small print of a row: what is false is left out. */
export const facts = (...parts) => parts.filter(Boolean).flatMap((part, at) => [at ? " · " : "", part].flat());

/** Options from pairs of value and label. */
export const options = (pairs, chosen) => pairs.map(([value, words]) => h("option", { value, selected: value === chosen }, words));

/** The logo: the same file as the favicon, so it is loaded once. */
export function sign(size) {
  return h("img", { src: new URL("icon.svg", import.meta.url).pathname, alt: "", width: size, height: size });
}

/** Says something to screen readers. */
export function announce(text) {
  document.getElementById("announce").textContent = text;
}

/** A short note at the bottom that disappears by itself, perhaps with a button: [label, action]. */
export function toast(text, deed) {
  document.querySelector(".toast")?.remove();
  const note = h("div.toast", { role: "status", popover: "manual" }, text,
    deed && h("button.plain", { onclick: () => { note.remove(); deed[1](); } }, deed[0]));
  document.body.append(note);
  // Above dialogs too.
  note.showPopover?.();
  setTimeout(() => note.remove(), deed ? 10000 : 5000);
}

/** What a button beside an error does for an admin: [label, action], if it is mended on another page. */
async function remedyOf(error) {
  // Of the server's, some are.
  const { remedy } = error.request ? await import("./remedy.js").catch(() => ({})) : {};
  return remedy?.(error);
}

/** Shows an error. */
export const complain = async (error) => toast(error.message, await remedyOf(error));

/** Shows an error in its place on the page. */
export async function complainIn(place, error) {
  place.textContent = error.message;
  const deed = await remedyOf(error);
  if (deed && place.textContent === error.message) place.append(" ", h("button", { onclick: deed[1] }, deed[0]));
}

/** Asks in a dialog. Resolves to the text (with `value`), true, or null when cancelled. `lines` is the height of a longer text, `choices` are options. */
export function ask({ title, text, value, action, danger, lines, choices, mayBeEmpty }) {
  return new Promise((resolve) => {
    const field = value === undefined ? null : choices ? h("select", { "aria-label": title, autofocus: true }, choices) : lines
      ? h("textarea", { rows: lines, value, maxlength: 4000, "aria-label": title, autofocus: true })
      : h("input", { type: "text", value, maxlength: 200, "aria-label": title, autofocus: true });
    const form = h("form", { method: "dialog" },
      h("h2", title), text && h("p", text), field,
      h("div.row.end",
        h("button.plain", { onclick: () => dialog.close() }, say("common.cancel")),
        h("button", { type: "submit", class: danger ? "danger" : "primary" }, action)));
    const dialog = h("dialog", { "aria-label": title }, form);
    let answer = null;
    form.addEventListener("submit", () => { answer = field ? field.value.trim() || (mayBeEmpty ? "" : null) : true; });
    dialog.addEventListener("close", () => { dialog.remove(); resolve(answer); });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    document.body.append(dialog);
    dialog.showModal();
    field?.select?.();
  });
}

/** Copies a text, also over plain http, where browsers disable the clipboard API. */
export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = h("textarea.unseen", { value: text });
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error(say("common.cannot_copy"));
}

/** A button that copies the result of `text()`. */
export function copyButton(text) {
  const button = h("button.copy", { "aria-label": say("common.copy") }, icon("copy"), h("span", say("common.copy")));
  button.addEventListener("click", async () => {
    const label = button.lastChild;
    try {
      await copy(text());
      label.textContent = say("common.copied");
    } catch {
      label.textContent = say("common.not_allowed");
    }
    setTimeout(() => { label.textContent = say("common.copy"); }, 1500);
  });
  return button;
}

/** Commands for a terminal, with a copy button. */
export function commands(...lines) {
  const text = lines.join("\n");
  return h("div.code", h("div.code-head", h("span", say("common.terminal")), copyButton(() => text)), h("pre", { tabindex: 0 }, h("code", text)));
}

const DAY_MS = 86400000;
const CLOCK = new Intl.DateTimeFormat(locale, { timeStyle: "short" });
const DAY = new Intl.DateTimeFormat(locale, { weekday: "short", day: "numeric", month: "short" });
const FULL = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });

/** A time in short: the time of day if it is today, otherwise the day; both if it comes within two days. */
export function moment(timestamp) {
  const date = new Date(timestamp);
  const left = date - Date.now();
  const format = date.toDateString() === new Date().toDateString() ? CLOCK : left > 0 && left < 2 * DAY_MS ? FULL : DAY;
  return h("time", { datetime: timestamp, title: FULL.format(date) }, format.format(date));
}

/** A day as a heading between messages. */
export function dayName(timestamp) {
  const date = new Date(timestamp);
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(date).setHours(0, 0, 0, 0)) / DAY_MS);
  return days === 0 ? say("common.today") : days === 1 ? say("common.yesterday") : DAY.format(date) + (days > 300 ? ` ${date.getFullYear()}` : "");
}

/** The time of day alone. */
export function timeOfDay(timestamp) {
  const date = new Date(timestamp);
  return h("time", { datetime: timestamp, title: FULL.format(date) }, CLOCK.format(date));
}

/** "1 day, 3 hr" from seconds. */
export function duration(seconds) {
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const amount = (unit, count) => new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "short" }).format(count);
  const parts = [];
  for (const [unit, size] of units) {
    const count = Math.floor(seconds / size);
    seconds -= count * size;
    if (count && parts.length < 2) parts.push(amount(unit, count));
  }
  return parts.join(" ") || amount("second", 0);
}
