// Who sees a conversation or a memory: in words, as an icon, and the dialog that changes it.

import { h, icon } from "./dom.js";

const ICON = { private: "lock", household: "home" };
const CHOICES = [
  ["private", "Only me", "Nobody else finds or reads it here, admins neither. Whoever owns the machine can read its files."],
  ["household", "The household", "Everybody but guests reads all of it, continues it, and finds it in searches."],
  ["people", "People I name", "They read all of it, also what was said before. A guest reads only such conversations."],
];

/** Who sees it, in words. */
export function readers({ audience, owner }, me) {
  if (audience === "household") return "Everybody in the household sees this";
  const isMine = !owner || owner === me;
  const people = [isMine ? "you" : owner, ...(audience === "private" ? [] : audience.map((name) => (name === me ? "you" : name)))];
  return `Only ${people.join(", ").replace(/, ([^,]*)$/, " and $1")} ${people.length === 1 && !isMine ? "sees" : "see"} this`;
}

/** An icon that tells who sees it; nothing where the server does not say. */
export function audienceIcon(thing, me) {
  if (!thing?.audience) return null;
  const words = readers(thing, me);
  return h("span.audience", { title: words }, icon(ICON[thing.audience] ?? "people"), h("span.unseen", words));
}

/** The control beside the title of a conversation: its owner changes who sees it. */
export function audienceControl(household, conversation) {
  if (!conversation?.audience) return null;
  const me = household.identity?.user;
  const words = readers(conversation, me);
  const label = h("span.names", Array.isArray(conversation.audience) ? [conversation.owner, ...conversation.audience].filter((name) => name !== me).join(", ") : conversation.audience === "household" ? "Household" : "Private");
  const mark = icon(ICON[conversation.audience] ?? "people");
  if (conversation.owner !== me || !household.maySend) return h("span.audience.row", { title: words }, mark, label, h("span.unseen", words));
  return h("button.plain.audience", { title: `${words}. Change it`, "aria-label": `${words}. Change it: ${label.textContent}`, onclick: () => share(household, conversation) }, mark, label);
}

/** Asks who may see a conversation. */
function share(household, conversation) {
  const now = conversation.audience;
  const chosen = Array.isArray(now) ? "people" : now;
  const names = h("input", { type: "text", value: Array.isArray(now) ? now.join(", ") : "", "aria-label": "Names, separated by commas", placeholder: "Names, separated by commas", autocapitalize: "none", spellcheck: "false" });
  const problem = h("p.problem", { role: "alert" });
  const form = h("form", { method: "dialog" },
    h("h2", "Who sees this conversation?"),
    h("fieldset", CHOICES.map(([value, label, meaning]) => h("label.choice",
      h("input", { type: "radio", name: "audience", value, checked: value === chosen, onchange: draw }),
      h("span", h("strong", label), h("br"), meaning)))),
    names, problem,
    h("div.row.end",
      h("button.plain", { onclick: () => dialog.close() }, "Cancel"),
      h("button", { type: "submit", class: "primary" }, "Save")));
  const dialog = h("dialog", { "aria-label": "Who sees this conversation?" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const choice = form.elements.audience.value;
    const people = names.value.split(/[\s,]+/).filter(Boolean);
    if (choice === "people" && !people.length) return void (problem.textContent = "Name at least one person.");
    try {
      await household.share(conversation.id, choice === "people" ? people : choice);
      dialog.close();
    } catch (error) {
      problem.textContent = error.message;
    }
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  draw();
  dialog.showModal();

  function draw() {
    names.hidden = form.elements.audience.value !== "people";
    if (!names.hidden && dialog.open) names.focus();
  }
}
