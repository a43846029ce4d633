// Where an admin mends what an error is about, and the line to type if only the owner may.

import { copy, toast } from "./dom.js";
import { say } from "./more.js";
import { ROLE_KEY } from "./session.js";

/** What the keys and words of errors name, and the page for it: the first that fits. */
const PLACES = [
  [/error\.model\b/, "settings"],
  [/budget_of_person|notif|invitation|\buser\b/i, "people"],
  [/backup|retention|\bdisk\b|database|voice|speech|transcri/i, "upkeep"],
  [/calendar/i, "calendars"],
  [/webhook|callback|deliver/i, "webhooks"],
  [/MCP|tool/i, "tools"],
  [/provider|model|API key|api_key|base_url|budget|tokens/i, "settings"],
];
/** Where what a command was refused is mended, whatever was said. */
const COMMANDS = { speak: "upkeep", transcribe: "upkeep", start_backup: "upkeep", test_notification: "people", tool: "tools" };

/** The page where an error is mended, if one is known: {page, label}. */
export function pageOf({ message, code, key, request }) {
  const text = `${key ?? ""} ${message}`;
  const page = COMMANDS[request] ?? PLACES.find(([words]) => words.test(text))?.[1] ?? (request === "chat" && code === "server_error" ? "settings" : null);
  return page && { page, label: say(`remedy.${page}`) };
}

/** The line by which the owner of the machine mends it: one that the error names, or one that doubles the limit that it names. */
function lineOf(message) {
  const [, line] = message.match(/`(hearth [^`]+)`/) ?? [];
  const [limit] = message.match(/\blimits\.[a-z_]+/) ?? [];
  const most = message.match(/\d+/g)?.at(-1);
  return line ?? (limit && most && `hearth config set ${limit} ${2 * most}`);
}

/** A button for a note about an error: [label, action]; none where one cannot do anything. */
export function remedy(error) {
  if (sessionStorage.getItem(ROLE_KEY) !== "admin" || error.code === "offline") return undefined;
  const line = lineOf(error.message);
  if (line) return [say("remedy.copy"), () => copy(line).then(() => toast(say("remedy.copied")), (problem) => toast(problem.message))];
  const to = pageOf(error);
  if (!to || location.hash === `#/${to.page}`) return undefined;
  return [to.label, () => {
    document.querySelector("dialog[open]")?.close();
    location.hash = `#/${to.page}`;
  }];
}
