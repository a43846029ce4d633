// What the server exports as a file, a file to import, and a conversation on paper.

import { h, complain, toast } from "./dom.js";
import { savedEndpoint, token } from "./session.js";
import { count, say } from "./more.js";

/** Saves all of a conversation as Markdown on this device. */
export async function save(household, { id, title }) {
  try {
    const name = title.replace(/[^\p{L}\p{N} _-]+/gu, " ").trim().slice(0, 60) || say("exporting.name");
    await download(household, `${name}.md`, { conversation_id: id, format: "markdown" });
    toast(say("exporting.done"));
  } catch (error) {
    complain(error);
  }
}

/** Saves an export on this device. It comes in parts over the connection, and so through a relay too. */
export async function download(household, name, fields) {
  const parts = [];
  for (let done = false; !done;) {
    const part = await household.request("export", { ...fields, part: parts.length }, { timeout: 0 });
    parts.push(part.text);
    ({ done } = part);
  }
  const address = URL.createObjectURL(new Blob(parts, { type: "text/plain" }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

/** Whether files can be imported from here: a relay carries no file of any size. */
export const mayUpload = () => !savedEndpoint().relay;

/** Sends a file to import. Resolves to what was imported, as a sentence. */
export async function upload(file) {
  const response = await fetch(new URL("/import", savedEndpoint().address ?? location.href), { method: "POST", headers: { Authorization: `Bearer ${token()}` }, body: file });
  const answer = await response.json().catch(() => ({ error: say("session.status", { status: response.status }) }));
  if (answer.status !== "ok") throw new Error(answer.error);
  const { imported, messages, already_there: known, left_out: skipped } = answer.data;
  return [say("exporting.imported", { messages: count("exporting.messages", messages), conversations: count("exporting.conversations", imported) }),
    known && count("exporting.known", known), skipped && count("exporting.skipped", skipped)].filter(Boolean).join(" ");
}

/** Loads all of it, and prints. */
export async function print(loadAll) {
  await loadAll();
  window.print();
}
