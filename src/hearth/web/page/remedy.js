// Where an admin mends what an error is about, and the line to type if only the owner may.

import { copy, toast } from "./dom.js";
import { say } from "./more.js";
import { ROLE_KEY } from "./session.js";

/** What errors name, and the page for it: the first that fits. */
const PLACES = [
  [/backup|retention/i, "upkeep", () => say("remedy.upkeep")],
  [/calendar/i, "calendars", () => say("remedy.calendars")],
  [/webhook|callback|deliver/i, "webhooks", () => say("remedy.webhooks")],
  [/MCP|tool/i, "tools", () => say("remedy.tools")],
  [/notif|invitation|\buser\b/i, "people", () => say("remedy.people")],
  [/voice|speech|transcri/i, "upkeep", () => say("remedy.upkeep")],
  [/provider|model|API key|api_key|base_url|budget|tokens/i, "settings", () => say("remedy.settings")],
];
const COMMANDS = { speak: "upkeep", transcribe: "upkeep", start_backup: "upkeep", test_notification: "people" };

/** The page where an error is mended, if one is known: {page, label}. */
export function pageOf({ message, request }) {
  const found = PLACES.find(([words, page]) => COMMANDS[request] ? COMMANDS[request] === page : words.test(message));
  return found && { page: found[1], label: found[2]() };
}

/** A button for a note about an error: [label, action]; none where one cannot do anything. */
export function remedy(error) {
  if (sessionStorage.getItem(ROLE_KEY) !== "admin" || error.code === "offline") return undefined;
  const line = error.message.match(/`(hearth [^`]+)`/)?.[1];
  if (line) return [say("remedy.copy"), () => copy(line).then(() => toast(say("remedy.copied")), (problem) => toast(problem.message))];
  const to = pageOf(error);
  return to && location.hash !== `#/${to.page}` ? [to.label, () => { location.hash = `#/${to.page}`; }] : undefined;
}
