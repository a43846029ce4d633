// Approval requests, wherever the turn came from: one is open, several are a list.

import { h, icon, announce, complain } from "./dom.js";
import { marked, visible } from "./visible.js";

/** Characters of a value that are shown at once: of a longer one, its beginning and its end. */
const MOST = 3000;

/** Shows the pending approvals in `tray`. */
export function approvals(tray, household, openConversation) {
  household.addEventListener("approvals", ({ detail }) => {
    draw();
    if (detail?.isNew) announce(`${asker(detail.approval)} asks to run ${detail.approval.tool}.`);
  });
  household.addEventListener("conversations", draw);
  draw();

  function draw() {
    const kept = new Map([...tray.children].map((card) => [card.dataset.approval, card]));
    const cards = [...household.approvals.values()].map((one) => kept.get(one.approval_id) ?? card(one));
    for (const old of tray.children) if (!cards.includes(old)) old.remove();
    cards.forEach((one, place) => { if (tray.children[place] !== one) tray.append(one); });
    for (const one of cards) {
      place(one);
      if (!one.dataset.chosen) one.open = cards.length === 1;
    }
    tray.hidden = cards.length === 0;
  }

  function place(card) {
    const { conversation_id: id } = household.approvals.get(card.dataset.approval);
    card.querySelector(".from").replaceChildren(...(household.open === id ? [] : [
      "In ", h("a", { href: `#/c/${id}`, onclick: () => openConversation(id) }, household.conversations.get(id)?.title ?? "another conversation"),
    ]));
  }

  function card(approval) {
    const choice = (decision, label, title, kind) => h("button", { class: kind, title, disabled: decision !== "deny", onclick: () => decide(decision) }, label);
    const covers = approval.covers ?? approval.requested_by ?? "whoever asked";
    const mayLast = approval.covers !== null;
    const end = h("span.end");
    const call = h("div.call", { tabindex: 0, role: "group", "aria-label": "What would run" },
      approval.reason && h("p", marked(beginning(approval))), argumentsOf(approval.arguments), end);
    const hint = h("p.quiet.small", { hidden: true }, "Read to the end of the text to allow it.");
    const summary = h("summary", icon("tool"), h("span", h("strong", ...marked(visible(asker(approval)))), ...marked(visible(channel(approval.channel))), " asks to run ", h("code", ...marked(visible(approval.tool)))));
    const element = h("details.approval", summary,
      h("p.from.quiet.small"),
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
}

const asker = (approval) => approval.requested_by ?? "Somebody";

/** Where a request came from. */
function channel(name = "") {
  if (name?.startsWith("webhook:")) return ` through the webhook ${name.slice(8)}`;
  return { schedule: " by a reminder", openai_api: " through the model API", ollama_api: " through the model API" }[name] ?? "";
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
