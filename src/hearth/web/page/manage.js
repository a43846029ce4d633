// What an admin manages, each with a sentence.

import { h, icon, rowList } from "./dom.js";
import { say } from "./more.js";

const PAGES = ["settings", "people", "tools", "webhooks", "upkeep", "status", "guide"];

/** The page. */
export async function show() {
  return { element: h("div.page", rowList(PAGES.map((page) =>
    h("li", h("a.row.grow", { href: `#/${page}` }, icon(page), h("span.grow", h("strong", say(`app.page.${page}`)), h("br"), h("span.quiet.small", say(`manage.about.${page}`)))))), (row) => row.querySelector("a"))) };
}
