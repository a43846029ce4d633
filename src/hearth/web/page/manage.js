// What an admin manages, each with a sentence.

import { h, icon, rowList } from "./dom.js";
import { say } from "./more.js";

const PAGES = [
  ["guide", say("guide.page"), say("guide.page_about")],
  ["settings", "Settings", "The model, privacy, and how the assistant answers"],
  ["people", "People", "Who lives here, their roles and limits, invitations and tokens"],
  ["tools", "Tools", "What the assistant can do, and what it asks before"],
  ["webhooks", "Webhooks", "Programs that send messages, and what became of the replies"],
  ["status", "Status", "Tokens, backups, relays, and what does not work"],
];

/** The page. */
export async function show() {
  return { element: h("div.page", rowList(PAGES.map(([page, label, about]) =>
    h("li", h("a.row.grow", { href: `#/${page}` }, icon(page), h("span.grow", h("strong", label), h("br"), h("span.quiet.small", about))))), (row) => row.querySelector("a"))) };
}
