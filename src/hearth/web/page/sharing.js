// The dialog in which the owner of a conversation says who sees it. Loaded when opened.

import { h, called } from "./dom.js";

const CHOICES = [
  ["private", "Only me", "Nobody else finds or reads it here, admins neither. Whoever owns the machine can read its files."],
  ["household", "The household", "Everybody but guests reads all of it, continues it, and finds it in searches."],
  ["people", "Some people", "They read all of it, also what was said before. A guest reads only such conversations."],
];

/** Asks who may see a conversation. */
export async function share(household, conversation) {
  const now = conversation.audience;
  const chosen = Array.isArray(now) ? "people" : now;
  const people = (await household.read("list_people")).people.filter(({ name }) => name !== household.identity.user);
  const names = h("fieldset.persons", { "aria-label": "People" }, people.length ? people.map(({ name, role }) => h("label.check",
    h("input", { type: "checkbox", name: "person", value: name, checked: chosen === "people" && now.includes(name) }), called(name), role === "viewer" && h("span.quiet.small", "guest")))
    : h("p.quiet", "There is nobody else yet."));
  const earlier = h("p.quiet", { hidden: true }, "It has earlier versions of messages, which can be read, too.");
  const problem = h("p.problem", { role: "alert" });
  const form = h("form", { method: "dialog" },
    h("h2", "Who sees this conversation?"),
    h("fieldset", CHOICES.map(([value, label, meaning]) => h("label.choice",
      h("input", { type: "radio", name: "audience", value, checked: value === chosen, onchange: draw }),
      h("span", h("strong", label), h("br"), meaning)))),
    names, earlier, problem,
    h("div.row.end",
      h("button.plain", { onclick: () => dialog.close() }, "Cancel"),
      h("button", { type: "submit", class: "primary" }, "Save")));
  const dialog = h("dialog", { "aria-label": "Who sees this conversation?" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const choice = form.elements.audience.value;
    const people = [...names.querySelectorAll(":checked")].map((one) => one.value);
    if (choice === "people" && !people.length) return void (problem.textContent = "Choose at least one person.");
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
  household.read("get_messages", { conversation_id: conversation.id, limit: 1, hidden: true })
    .then(({ messages }) => { earlier.hidden = !messages.length; }, () => {});

  function draw() {
    names.hidden = form.elements.audience.value !== "people";
  }
}
