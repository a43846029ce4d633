// The household's lists: what to buy, what to do.

import { h, icon, ask, iconButton, complain, roving, rowList, toast } from "./dom.js";
import { changes, sure } from "./list.js";
import { say } from "./more.js";

/** The page. */
export async function show(household, wanted) {
  let lists = [];
  let name = wanted ? decodeURIComponent(wanted) : null;
  // Chosen by its name, and made by its first item.
  let isNew = false;
  let asked = 0;
  const rows = new Map();
  const choices = h("div.row.wrap", { role: "group", "aria-label": say("app.page.lists") });
  const refresh = roving(choices, () => [...choices.children], () => [], true);
  const begins = h("button", { onclick: () => tried(begin) }, icon("plus"), say("lists.new"));
  const items = rowList([], (row) => row.querySelector("input"));
  const note = h("p.quiet");
  const field = h("input", { maxlength: 500, placeholder: say("lists.add_item"), "aria-label": say("lists.add_item"), autocomplete: "off", enterkeyhint: "done" });
  const adding = h("form", h("div.row", field, h("button.primary", { type: "submit" }, say("common.add"))));
  const clear = h("button", { onclick: () => tried(() => change({ remove: ticked().map((one) => one.id) })) }, say("lists.remove_ticked"));
  const drop = h("button.plain", { onclick: () => tried(remove) }, say("lists.delete"));
  adding.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (!text) return;
    field.value = "";
    tried(() => change({ add: [text] }), () => { field.value ||= text; });
  });
  await load();
  return {
    element: h("div.page", h("div.row.wrap", choices, begins), note, items, adding, h("div.row.end", clear, drop)),
    close: changes(household, load).watch("list", "reload"),
  };

  async function tried(work, failed) {
    try {
      await work();
    } catch (error) {
      failed?.();
      complain(error);
    }
  }

  async function load() {
    const turn = ++asked;
    const found = await household.read("list_lists");
    if (turn !== asked) return;
    lists = found.lists;
    if (lists.some((one) => one.list === name)) isNew = false;
    else if (!isNew) name = lists[0]?.list ?? null;
    const shown = name && !isNew ? await household.read("get_list", { list: name }) : { items: [] };
    if (turn === asked) draw(shown.items);
  }

  async function change(fields) {
    const wanted = name;
    const now = await household.request("update_list", { list: wanted, ...fields });
    if (wanted !== name) return;
    asked += 1;
    name = now.list;
    isNew = false;
    const known = lists.find((one) => one.list === name);
    const counts = { list: name, items: now.items.length, unchecked: now.items.filter((one) => !one.checked).length };
    if (known) Object.assign(known, counts);
    else lists.push(counts);
    draw(now.items);
  }

  function ticked() {
    return [...rows.values()].filter((one) => one.box.checked);
  }

  /** Changes what differs alone, so that nothing loses the focus. */
  function draw(now) {
    const had = document.activeElement?.dataset?.list;
    choices.replaceChildren(...(isNew ? [...lists, { list: name }] : lists).map(choice));
    if (had !== undefined) [...choices.children].find((one) => one.dataset.list === had)?.focus();
    refresh([...choices.children].find((one) => one.getAttribute("aria-pressed") === "true"));
    for (const [id, one] of rows) {
      if (now.some((item) => item.item_id === id)) continue;
      // The keyboard goes on with the next one.
      const next = one.element.nextElementSibling ?? one.element.previousElementSibling;
      if (one.element.contains(document.activeElement)) (next?.querySelector("input") ?? field).focus();
      one.element.remove();
      rows.delete(id);
    }
    for (const item of now) {
      if (!rows.has(item.item_id)) items.append(row(item));
      const one = rows.get(item.item_id);
      one.box.checked = item.checked;
      one.element.classList.toggle("done", item.checked);
    }
    note.textContent = !name ? say("lists.none") : now.length ? "" : say("lists.empty");
    note.hidden = !note.textContent;
    begins.className = name ? "plain" : "primary";
    adding.hidden = !name;
    clear.hidden = !ticked().length;
    drop.hidden = !name || isNew;
  }

  function choice({ list, unchecked }) {
    return h("button", { "data-list": list, "aria-pressed": String(list === name), class: list === name ? "primary" : "", onclick: () => tried(() => choose(list)) }, unchecked ? say("lists.choice", { list, count: unchecked }) : list);
  }

  function row(item) {
    const box = h("input", { type: "checkbox" });
    const tick = () => {
      const was = !box.checked;
      tried(() => change({ [was ? "uncheck" : "check"]: [item.item_id] }), () => { box.checked = was; });
    };
    box.addEventListener("change", tick);
    const element = h("li", h("label.check.grow", box, h("span", { dir: "auto" }, item.text)),
      iconButton("trash", say("list.deed_of", { deed: say("common.remove"), what: item.text }), say("common.remove"), () => tried(() => takeOut(item))));
    rows.set(item.item_id, { id: item.item_id, box, element });
    return element;
  }

  /** Removes an item, which can be taken back. */
  async function takeOut(item) {
    const list = name;
    const wasTicked = rows.get(item.item_id).box.checked;
    await change({ remove: [item.item_id] });
    toast(say("lists.removed", { item: item.text }), [say("lists.undo"), () => tried(async () => {
      const { items: now } = await household.request("update_list", { list, add: [item.text] });
      if (wasTicked) await household.request("update_list", { list, check: [now.at(-1).item_id] });
      await load();
    })]);
  }

  async function choose(list, made) {
    if (isNew && list === name) return;
    name = list;
    isNew = Boolean(made);
    for (const one of rows.values()) one.element.remove();
    rows.clear();
    await load();
  }

  async function begin() {
    const wanted = await ask({ title: say("lists.new"), text: say("lists.name_help"), value: "", action: say("lists.make") });
    if (!wanted) return;
    const known = lists.find((one) => one.list.toLowerCase() === wanted.toLowerCase());
    await choose(known?.list ?? wanted, !known);
    field.focus();
  }

  async function remove() {
    if (!await sure(say("lists.delete_title"), name, say("common.delete"))) return;
    await household.request("delete_list", { list: name });
    await load();
  }
}
