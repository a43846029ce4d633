// Lists of rows on a page: drawn anew when somebody changes something, here or elsewhere.

import { h, ask, iconButton, complain } from "./dom.js";
import { say } from "./more.js";

/** Asks before something is lost. Resolves to whether it shall be. */
export const sure = (title, text, action) => ask({ title, text, action, danger: true });

/** Shows a row for each item or, if there are none, what `empty` says. */
export function fill(list, items, row, empty) {
  list.replaceChildren(...items.map(row), ...(items.length || !empty ? [] : [h("li", empty)]));
}

/** A row: what it is, more about it in small print, and its controls. */
export const row = (what, about, ...controls) => h("li", h("div.grow", { dir: "auto" }, what, h("p.quiet.small", about)), controls);

/** The tools that something may use, where that is set. */
export const onlyTools = (tools) => tools && (tools.length ? say("common.only", { what: tools.join(", ") }) : say("common.no_tools"));

/** What changes the rows that `draw` loads and shows. */
export function changes(household, draw) {
  const again = () => draw().catch(() => {});
  return { watch, tried, remover };

  /** Draws anew at events of the household. Returns what ends that. */
  function watch(...events) {
    for (const name of events) household.addEventListener(name, again);
    return () => events.forEach((name) => household.removeEventListener(name, again));
  }

  /** Changes something and draws anew. Resolves to whether it worked. */
  async function tried(change) {
    try {
      await change();
    } catch (error) {
      complain(error);
      return false;
    }
    // Without a connection the sign-in form or the banner says so.
    await again();
    return true;
  }

  /** A button that sends a request which removes something, after a confirmation; `text` may have to be asked for. */
  function remover(action, { what, label = say("list.deed_of", { deed: action, what }), title = say("list.deed_sure", { deed: action }), text = what }, type, fields) {
    const confirm = async () => {
      if (await sure(title, typeof text === "function" ? await text() : text, action)) await tried(() => household.request(type, fields));
    };
    return iconButton("trash", label, action, () => confirm().catch(complain));
  }
}
