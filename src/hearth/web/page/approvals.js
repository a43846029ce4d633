// Approval requests: a card for each, wherever the turn came from.

import { h, icon, announce, complain } from "./dom.js";

/** Shows the pending approvals in `tray`. */
export function approvals(tray, household, openConversation) {
  household.addEventListener("approvals", ({ detail }) => {
    draw();
    if (detail?.isNew) announce(`The assistant wants to use ${detail.approval.tool}.`);
  });
  household.addEventListener("conversations", draw);
  draw();

  function draw() {
    const kept = new Map([...tray.children].map((card) => [card.dataset.approval, card]));
    const cards = [...household.approvals.values()].map((one) => kept.get(one.approval_id) ?? card(one));
    for (const old of tray.children) if (!cards.includes(old)) old.remove();
    cards.forEach((one, place) => { if (tray.children[place] !== one) tray.append(one); });
    for (const one of cards) place(one);
    tray.hidden = cards.length === 0;
  }

  function place(card) {
    const approval = household.approvals.get(card.dataset.approval);
    const id = approval.conversation_id;
    const conversation = household.conversations.get(id);
    card.querySelector(".from").replaceChildren(...(household.open === id ? [] : [
      "In ", h("a", { href: `#/c/${id}`, onclick: () => openConversation(id) }, conversation?.title ?? "another conversation"),
      ...(conversation?.channel?.startsWith("webhook:") ? [` · webhook ${conversation.channel.slice(8)}`] : []),
    ]));
  }

  function card(approval) {
    const choice = (decision, label, title, kind) => h("button", {
      class: kind, title, onclick: () => decide(decision),
    }, label);
    const element = h("section.approval", { "aria-label": `Approval for ${approval.tool}` },
      h("h2", icon("tool"), "Allow the assistant to use ", h("code", approval.tool), "?"),
      h("p.from.quiet"),
      approval.reason && h("p", approval.reason),
      argumentsOf(approval.arguments),
      h("div.row.wrap",
        choice("once", "Allow once", "This call only", "primary"),
        choice("conversation", "Allow in this conversation", "Every call of this tool in this conversation", ""),
        choice("always", "Always allow", "Every call of this tool from now on. You can change this on the tools page.", ""),
        choice("deny", "Deny", "The assistant continues without this call", "danger")));
    element.dataset.approval = approval.approval_id;
    return element;

    async function decide(decision) {
      for (const button of element.querySelectorAll("button")) button.disabled = true;
      try {
        await household.decide(approval, decision);
      } catch (error) {
        complain(error);
        for (const button of element.querySelectorAll("button")) button.disabled = false;
      }
    }
  }
}

/** The arguments of a call, one per line. */
export function argumentsOf(value) {
  const entries = value !== null && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : [["", value]];
  if (entries.length === 0) return h("p.quiet", "No arguments");
  return h("dl.arguments", entries.flatMap(([name, one]) => [
    h("dt", name), h("dd", typeof one === "string" ? one : JSON.stringify(one)),
  ]));
}
