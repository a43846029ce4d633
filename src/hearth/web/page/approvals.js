// Approval requests: in the conversation where the call is, and elsewhere how many wait.

import { h, icon, announce, complain, called } from "./dom.js";
import { marked, visible } from "./visible.js";

/** Characters of a value that are shown at once: of a longer one, its beginning and its end. */
const MOST = 3000;

/** How many requests wait in other conversations: a button that opens the first of them. */
export function waitingElsewhere(household, go) {
  const count = h("span");
  const button = h("button.waiting", { hidden: true }, icon("tool"), count);
  const elsewhere = () => [...household.approvals.values()].filter((one) => one.conversation_id !== household.open);
  button.addEventListener("click", () => go(elsewhere()[0]?.conversation_id ?? null));
  household.addEventListener("approvals", ({ detail }) => {
    const waiting = elsewhere();
    button.hidden = waiting.length === 0;
    count.textContent = String(waiting.length);
    const words = waiting.length === 1 ? "1 approval waits for you" : `${waiting.length} approvals wait for you`;
    button.setAttribute("aria-label", words);
    button.title = words;
    if (detail?.isNew) announce(`${asker(detail.approval)} asks to run ${detail.approval.tool}.`);
  });
  return button;
}

/** The requests of a turn. What is there already stays, so that it keeps the focus and its place. */
export function drawApprovals(place, household, turn) {
  const kept = new Map([...place.children].map((card) => [card.dataset.approval, card]));
  const cards = [...household.approvals.values()].filter((one) => one.turn_id === turn).map((one) => kept.get(one.approval_id) ?? approvalCard(household, one));
  for (const old of [...place.children]) if (!cards.includes(old)) old.remove();
  cards.forEach((one, at) => { if (place.children[at] !== one) place.append(one); });
  for (const one of cards) if (!one.dataset.chosen) one.open = cards.length === 1;
}

function approvalCard(household, approval) {
  const choice = (decision, label, title, kind) => h("button", { class: kind, title, disabled: decision !== "deny", onclick: () => decide(decision) }, label);
  const covers = called(approval.covers ?? approval.requested_by) ?? "whoever asked";
  const mayLast = approval.covers !== null;
  const end = h("span.end");
  const call = h("div.call", { tabindex: 0, role: "group", "aria-label": "What would run" },
    approval.reason && h("p", marked(beginning(approval))), argumentsOf(approval.arguments), end);
  const hint = h("p.quiet.small", { hidden: true }, "Read to the end of the text to allow it.");
  const summary = h("summary", icon("tool"), h("span", h("strong", ...marked(visible(asker(approval)))), ...marked(visible(channel(approval.channel))), " asks to run ", h("code", ...marked(visible(approval.tool)))));
  const element = h("details.approval", summary,
    call, hint,
    h("div.row.wrap",
      choice("once", "Allow once", "This call only", "primary"),
      mayLast && choice("conversation", "Allow in this conversation", `Calls of this tool in this conversation, when ${covers} asks`, ""),
      mayLast && choice("always", "Always allow", `Calls of this tool from now on, when ${covers} asks`, ""),
      choice("deny", "Deny", "The assistant continues without this call", "danger")),
    approval.outside && h("p.quiet.small", "Text from outside is in this conversation, so here the tool asks each time, whatever the answer."),
    mayLast && h("p.quiet.small", "Once is this call. The conversation and always cover ", h("code", ...marked(visible(approval.tool))), " when ", h("strong", ...marked(visible(covers))), " asks, and nobody else."));
  element.dataset.approval = approval.approval_id;
  summary.addEventListener("click", () => { element.dataset.chosen = "yes"; });
  // What was scrolled away, or is not unfolded, was not read.
  const watcher = new IntersectionObserver(([{ isIntersecting }]) => {
    hint.hidden = isIntersecting && !element.querySelector(".unfold");
    if (!hint.hidden) return;
    watcher.disconnect();
    able(true);
  });
  watcher.observe(end);
  element.addEventListener("unfolded", () => { watcher.unobserve(end); watcher.observe(end); });
  return element;

  function able(isAble) {
    for (const button of element.querySelectorAll(".row button")) button.disabled = !isAble;
  }

  async function decide(decision) {
    able(false);
    try {
      await household.decide(approval, decision);
    } catch (error) {
      complain(error);
      able(true);
    }
  }
}

const asker = (approval) => called(approval.requested_by) ?? "Somebody";

/** Where a request came from. */
function channel(name = "") {
  const [, kind, account] = name?.match(/^(webhook|(?:outside_)?sender):(.*)/) ?? [];
  if (kind) return ` through ${kind === "webhook" ? "the webhook " : ""}${account}`;
  return { websocket: " from a page or a terminal", schedule: " by a reminder", openai_api: " through the model API", ollama_api: " through the model API", mcp: " through another assistant" }[name] ?? "";
}

/** The reason, without an argument at its end: those follow, each in full. */
function beginning({ reason, arguments: given }) {
  for (const value of Object.values(given ?? {})) {
    if (typeof value !== "string" || !value.trim()) continue;
    const line = visible(value.trim()).replaceAll("\n", "‹↵›");
    const place = reason.indexOf(line.slice(0, 200));
    if (place > 0 && (reason.endsWith(line) || line.length > 1000)) return reason.slice(0, place);
  }
  return reason;
}

/** The arguments of a call, one per line. */
export function argumentsOf(value) {
  const entries = value !== null && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : [["", value]];
  if (entries.length === 0) return h("p.quiet", "No arguments");
  return h("dl.arguments", entries.flatMap(([name, one]) => [
    h("dt", ...marked(visible(name))), h("dd", { dir: "ltr" }, ...long(visible(typeof one === "string" ? one : JSON.stringify(one)))),
  ]));
}

/** All of a text: of a long one the beginning and the end, and a button for the rest. */
function long(text) {
  if (text.length <= MOST) return marked(text);
  const [begin, end] = [cut(text, MOST / 2), cut(text, text.length - MOST / 2)];
  const middle = text.slice(begin, end);
  const button = h("button.plain.unfold", { onclick: () => {
    const place = button.closest("details");
    button.replaceWith(...marked(middle));
    place?.dispatchEvent(new Event("unfolded"));
  } }, `Show ${middle.length} more characters`);
  return [...marked(text.slice(0, begin)), button, ...marked(text.slice(end))];
}

/** The next place that is neither in a mark nor in a character. */
function cut(text, place) {
  const open = text.lastIndexOf("‹", place - 1);
  const close = text.indexOf("›", open);
  if (open >= 0 && close >= place) return close + 1;
  return /[\uDC00-\uDFFF]/.test(text[place]) ? place + 1 : place;
}
