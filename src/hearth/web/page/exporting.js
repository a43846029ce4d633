// A conversation as a file, and on paper.

import { h, complain, toast } from "./dom.js";

/** Saves all of a conversation as Markdown on this device. */
export async function save(household, { id, title }) {
  try {
    const parts = await paragraphs(household, id, false);
    const hidden = await paragraphs(household, id, true);
    if (hidden.length) parts.push("# Versions that are not shown\n", ...hidden);
    const address = URL.createObjectURL(new Blob([`# ${title}\n\n`, parts.join("\n")], { type: "text/markdown" }));
    h("a", { href: address, download: `${title.replace(/[^\p{L}\p{N} _-]+/gu, " ").trim().slice(0, 60) || "conversation"}.md` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
    toast("Exported.");
  } catch (error) {
    complain(error);
  }
}

/** The messages of a conversation: those that are shown, or other versions of them with what followed. */
async function paragraphs(household, id, hidden) {
  const messages = [];
  for (let before, hasMore = true; hasMore;) {
    const page = await household.read("get_messages", { conversation_id: id, limit: 500, hidden, ...(before && { before }) });
    messages.unshift(...page.messages);
    before = page.messages[0]?.id;
    hasMore = page.has_more && Boolean(before);
  }
  return messages.map((one) => {
    const files = one.attachments?.map(({ name }) => `\n\nFile: ${name}`).join("") ?? "";
    return `## ${one.role === "user" ? one.speaker ?? "Unknown" : "Hearth"}, ${new Date(one.timestamp).toLocaleString()}\n\n${one.content}${files}\n`;
  });
}

/** Loads what is earlier, and prints. */
export async function print(loadOlder, hasMore) {
  for (let pages = 0; hasMore() && pages < 40; pages += 1) await loadOlder(500);
  window.print();
}
