// One message of a conversation, and what tools did for it.

import { h, icon, iconButton, sign, timeOfDay, complain, complainIn, copyButton, lazily, called } from "./dom.js";
import { markdown } from "./markdown.js";
import { marked, rawCall } from "./approvals.js";
import { pieces, say } from "./words.js";

/** Why a reply is not whole, where that is known. */
const CUT_BY = ["length", "content_filter", "refusal", "interrupted"];
/** The icon and the class of each state of a call. */
const STATES = {
  running: ["tool", "busy"],
  waiting: ["tool", "waits"],
  denied: ["cross", "denied"],
  unanswered: ["cross", "denied"],
  failed: ["cross", "bad"],
  done: ["check", "ok"],
};
const attaching = lazily(() => import("./attachments.js"));

/**
 * The row of a message. `turn` is its turn if that is known, `find` gives
 * the row of another message, `quote` puts a text into the composer, `goOn` asks for the
 * rest of a reply, `edit` and `again` for another version, `select` shows one, and `remove`
 * deletes the message.
 */
export function messageRow(message, { household, id, turn, find, quote, goOn, edit, again, remove, select }) {
  const isMine = message.role === "user";
  const row = h("li", { class: `message ${isMine ? "person" : "assistant"}` },
    h("div.who",
      isMine ? h("strong", called(message.speaker) ?? say("message.unknown")) : [sign(20), h("strong", "Hearth")],
      timeOfDay(message.timestamp)),
    message.in_reply_to && h("p.quiet.small.question", questionOf(message, id, find)),
    turn?.thoughts ? thoughtsOf(turn) : null,
    turn?.tools.size ? toolList(turn.tools) : null,
    fileList(household, message.attachments),
    h("div.text", isMine ? { dir: "auto" } : {}, isMine ? message.content : markdown(message.content)),
    message.finish_reason && cutOff(message, household, goOn),
    h("div.deeds",
      copyButton(() => message.content),
      household.maySend && h("button.copy", { "aria-label": say("message.quote"), onclick: () => quote(selectedIn(row) || message.content) }, icon("quote"), h("span", say("message.quote"))),
      isMine && household.mayEdit(message, id) && iconButton("edit", say("message.edit"), say("message.edit"), () => edit(message)),
      !isMine && household.maySend && iconButton("retry", say("message.again"), say("message.again"), () => again(message)),
      !isMine && household.maySend && (household.isAdmin || household.config?.models?.length > 1)
        && h("span.other", iconButton("back", say("message.other_model"), say("message.other_model"), () => again(message, true))),
      !isMine && (globalThis.speechSynthesis || (household.maySend && household.config?.voice?.speech))
        && iconButton("speak", say("message.read_aloud"), say("message.read_aloud"), ({ currentTarget }) => import("./voice.js").then(({ readOrStop }) => readOrStop(currentTarget, household, message.content), complain)),
      household.mayEdit(message, id) && iconButton("trash", say("message.delete"), say("message.delete"), () => remove(message)),
      message.versions?.length > 1 && versions(message, select)));
  row.message = message;
  row.dataset.id = message.id;
  row.dataset.at = message.timestamp;
  return row;
}

/** Which version of a message is shown, and the ways to its neighbours. */
function versions({ id, versions: all }, select) {
  const at = all.indexOf(id);
  const to = (step, words, kind) => h(`span${kind}`, h("button.icon-button", { "aria-label": words, title: words, disabled: !all[at + step], onclick: () => select(all[at + step]) }, icon("back")));
  return h("span.row.versions", to(-1, say("message.earlier"), ".before"), h("span.quiet.small", say("common.of", { at: at + 1, all: all.length })), to(1, say("message.later"), ".turned"));
}

/** What is selected of a row. */
function selectedIn(row) {
  const selection = getSelection();
  return selection.rangeCount && row.contains(selection.getRangeAt(0).commonAncestorContainer) ? selection.toString() : "";
}

/** The files of a message. */
export function fileList(household, attachments) {
  if (!attachments?.length) return null;
  const place = h("div.attached", attachments.map(({ name }) => name).join(", "));
  attaching(({ attachmentList }) => place.replaceChildren(attachmentList(household, attachments)));
  return place;
}

/** Says why a reply is not whole, and offers to go on. */
function cutOff({ id: reply, finish_reason: reason }, household, goOn) {
  return h("div.row.wrap.cut",
    h("span.quiet", say(`message.cut.${CUT_BY.includes(reason) ? reason : "other"}`)),
    household.maySend && reason !== "refusal" && h("button", { onclick: () => goOn(reply) }, say("common.continue")));
}

/** Names the question of a reply that came after later messages. */
function questionOf({ in_reply_to: question }, id, find) {
  const asked = find(question)?.querySelector(".text").textContent;
  const words = asked ? `“${asked.length > 80 ? `${asked.slice(0, 80)}…` : asked}”` : say("message.earlier_message");
  return pieces("message.in_reply_to", { message: h("a", { href: `#/c/${id}/${question}` }, words) });
}

/** What the model thought before it answered, folded. The server keeps none of it. */
export function thoughtsOf({ thoughts }) {
  return h("ul.tools", { "aria-label": say("message.thoughts") }, h("li", h("details", h("summary.quiet", say("message.thoughts")), h("pre", { tabindex: 0 }, thoughts))));
}

/** The tool calls of a turn, each with its state and details. */
export function toolList(tools) {
  return h("ul.tools", { "aria-label": say("message.tools") }, [...tools.values()].map((call) => {
    const state = stateOf(call);
    const [sign, kind] = STATES[state];
    const mend = call.result?.mend && h("p.small");
    if (mend) complainIn(mend, call.result.mend);
    return h("li", { class: kind },
      h("details",
        h("summary", icon(sign), h("span.grow", ...marked(call.sentence)), h("span.quiet", say(`message.call.${state}`))),
        rawCall(call),
        call.result && h("pre", { tabindex: 0 }, call.result.summary)),
      mend);
  }));
}

/** What became of a call. */
function stateOf({ result, decision, isWaiting }) {
  if (decision === "denied") return "denied";
  if (decision === "expired") return "unanswered";
  if (result) return result.ok ? "done" : "failed";
  return isWaiting ? "waiting" : "running";
}
