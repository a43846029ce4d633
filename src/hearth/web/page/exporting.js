// What the server exports as a file, a file to import, and a conversation on paper.

import { h, complain, toast } from "./dom.js";
import { savedEndpoint, serverURL, token } from "./session.js";
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

/** Saves an export on this device. */
export const download = (household, name, fields) => saveParts(household, name, "text/plain", "export", fields, ({ text }) => text);

/** Saves an encrypted backup on this device. */
export const downloadBackup = (household, name) =>
  saveParts(household, name, "application/octet-stream", "download_backup", { name }, ({ data }) => Uint8Array.from(atob(data), (byte) => byte.charCodeAt(0)));

/** Saves what comes in parts over the connection, and so through a relay too. */
async function saveParts(household, name, type, command, fields, read) {
  const parts = [];
  for (let done = false; !done;) {
    const part = await household.request(command, { ...fields, part: parts.length }, { timeout: 0 });
    parts.push(read(part));
    ({ done } = part);
  }
  const address = URL.createObjectURL(new Blob(parts, { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

/** Whether files can be imported from here: a relay carries no file of any size. */
export const mayUpload = () => !savedEndpoint().relay;

/** Sends a file to import; `told` gets the share that has gone, from 0 to 1. Resolves to what was imported, as a sentence. */
export async function upload(file, told) {
  const answer = await new Promise((resolve, reject) => {
    // Only this interface tells how much was sent.
    const request = new XMLHttpRequest();
    request.open("POST", serverURL("import"));
    request.setRequestHeader("authorization", `Bearer ${token()}`);
    request.responseType = "json";
    request.upload.onprogress = ({ loaded }) => told(loaded / file.size);
    request.onload = () => resolve(request.response ?? { error: say("session.status", { status: request.status }) });
    request.onerror = () => reject(new Error(say("exporting.interrupted")));
    request.send(file);
  });
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
