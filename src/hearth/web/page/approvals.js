// Approval requests: in the conversation where the call is, and elsewhere how many wait.

import { h, icon, announce, complain, called, toast } from "./dom.js";
import { count, say } from "./words.js";

/** Characters of a value that are shown at once: of a longer one, its beginning and its end. */
const MOST = 3000;
/** Tools that only tell something to whoever asks, or add to a list, and what lets them do that. */
const TELLING = { schedule: "allow_own", lists: "allow" };

// Text that a person must judge is shown so that nothing in it hides. The server does the
// same (base/visible.rs); both are tested with tests/data/visible.json.

/** Pictures, which a style may follow in ordinary text. */
const PICTURE = "[\\xA9\\xAE\\u203C\\u2049\\u2122\\u2139\\u2190-\\u21FF\\u2300-\\u23FF\\u24C2\\u25A0-\\u27BF\\u2934\\u2935\\u2B00-\\u2BFF\\u3030\\u303D\\u3297\\u3299\\u{1F000}-\\u{1FAFF}]";
/** What is not seen, looks like a space, changes other text, or begins or ends a mark. */
const HIDDEN = "(?![\\n\\t ])[\\p{Cc}\\p{DI}\\p{Zs}\\p{Zl}\\p{Zp}\\p{Co}\\p{NChar}\\u2800\\uFFF9-\\uFFFB\\u{1D159}‹›]";
const PARTS = new RegExp(`${PICTURE}([\\uFE0E\\uFE0F])(?!\\1)|(\\n(?:[\\t ]*\\n){2,})|([\\t ]{41,})|(${HIDDEN})\\4*`, "gu");

/** The text with a mark such as ‹U+202E› for each character that hides, and the number of empty lines and spaces in a row. */
export const visible = (text) => text.replace(PARTS, (all, style, lines, spaces, one) => {
  if (lines) return `\n‹↵ ×${lines.split("\n").length - 2}›\n`;
  if (spaces) return `‹␣ ×${spaces.length}›`;
  if (!one) return all;
  const times = all.length / one.length;
  return `‹U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}${times > 1 ? ` ×${times}` : ""}›`;
});

/** The nodes of such a text: its marks look like marks. */
export const marked = (text) => text.split(/(‹[^›]*›)/).map((part, place) => (place % 2 ? h("mark", part) : part));

/** How many requests wait in other conversations: a button that opens the first of them. */
export function waitingElsewhere(household, go) {
  const number = h("span");
  const button = h("button.waiting", { hidden: true }, icon("tool"), number);
  const elsewhere = () => [...household.approvals.values()].filter((one) => one.conversation_id !== household.open);
  button.addEventListener("click", () => go(elsewhere()[0]?.conversation_id ?? null));
  household.addEventListener("approvals", ({ detail }) => {
    const waiting = elsewhere();
    button.hidden = waiting.length === 0;
    number.textContent = String(waiting.length);
    const words = count("approvals.wait", waiting.length);
    button.setAttribute("aria-label", words);
    button.title = words;
    if (detail?.isNew) announce(`${detail.approval.origin}. ${detail.approval.reason}.`);
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

/** Offers an admin that reminders to oneself and lists ask nobody, where the configuration is older than that. */
export function offerTelling(household, config) {
  const asking = Object.keys(TELLING).filter((tool) => (config?.tool_permissions?.[tool] ?? config?.permission_mode) === "ask");
  if (!household.isAdmin || !asking.length) return null;
  const stop = async () => {
    const { tool_permissions } = await household.request("get_config");
    await household.request("update_config", { config: { tool_permissions: { ...tool_permissions, ...Object.fromEntries(asking.map((tool) => [tool, TELLING[tool]])) } } });
    place.remove();
    toast(say("approvals.telling_done"));
  };
  const place = h("p.quiet.small", say("approvals.telling"), " ", h("button.plain", { onclick: () => stop().catch(complain) }, say("approvals.telling_stop")));
  return place;
}

function approvalCard(household, approval) {
  const choice = ({ answer, label, sentence }) => h("button", { class: { once: "primary", deny: "danger" }[answer] ?? "", disabled: answer !== "deny", onclick: () => decide(answer) },
    h("span", label), h("span.small", ...marked(sentence)));
  const end = h("span.end");
  const call = approval.details.length
    ? h("div.call", { tabindex: 0, role: "group", "aria-label": say("approvals.would_run") }, detailList(approval.details), end) : end;
  const hint = h("p.quiet.small", { hidden: true }, say("approvals.read_on"));
  const summary = h("summary", icon("tool"), h("strong", ...marked(approval.reason)));
  const element = h("details.approval", summary,
    h("p.quiet.small", ...marked([approval.origin, approval.after].filter(Boolean).join(" · "))),
    call, hint,
    h("div.choices", approval.answers.map(choice)),
    approval.tool in TELLING && offerTelling(household, household.config),
    rawCall(approval));
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
    for (const button of element.querySelectorAll(".choices button")) button.disabled = !isAble;
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

/** The arguments of a call in words, each in full. */
const detailList = (details) => h("dl.arguments", details.flatMap(({ label, text }) => [
  h("dt", ...marked(label)), h("dd", { dir: "auto" }, ...long(text)),
]));

/** A call as the model wrote it. */
export function rawCall({ tool, arguments: given }) {
  const text = typeof given === "string" ? given : JSON.stringify(given, null, 2);
  return h("details.raw", h("summary.quiet.small", say("approvals.details")),
    h("pre", { tabindex: 0, dir: "ltr" }, ...marked(visible(`${tool} ${text}`))));
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
  } }, count("approvals.show_more", middle.length));
  return [...marked(text.slice(0, begin)), button, ...marked(text.slice(end))];
}

/** The next place that is neither in a mark nor in a character. */
function cut(text, place) {
  const open = text.lastIndexOf("‹", place - 1);
  const close = text.indexOf("›", open);
  if (open >= 0 && close >= place) return close + 1;
  return /[\uDC00-\uDFFF]/.test(text[place]) ? place + 1 : place;
}
