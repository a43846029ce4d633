// The dialog in which the owner of a conversation says who sees it. Loaded when opened.

import { h, called } from "./dom.js";
import { say } from "./more.js";

const CHOICES = ["private", "household", "people"];

/** Asks who may see a conversation. */
export async function share(household, conversation) {
  const now = conversation.audience;
  const chosen = Array.isArray(now) ? "people" : now;
  const people = (await household.read("list_people")).people.filter(({ name }) => name !== household.identity.user);
  const names = h("fieldset.persons", { "aria-label": say("app.page.people") }, people.length ? people.map(({ name, role }) => h("label.check",
    h("input", { type: "checkbox", name: "person", value: name, checked: chosen === "people" && now.includes(name) }), called(name), role === "viewer" && h("span.quiet.small", say("common.role.viewer"))))
    : h("p.quiet", say("sharing.nobody")));
  const earlier = h("p.quiet", { hidden: true }, say("sharing.earlier"));
  const problem = h("p.problem", { role: "alert" });
  const form = h("form", { method: "dialog" },
    h("h2", say("sharing.title")),
    h("fieldset", CHOICES.map((value) => h("label.choice",
      h("input", { type: "radio", name: "audience", value, checked: value === chosen, onchange: draw }),
      h("span", h("strong", say(`sharing.choice.${value}`)), h("br"), say(`sharing.means.${value}`))))),
    names, earlier, problem,
    h("div.row.end",
      h("button.plain", { onclick: () => dialog.close() }, say("common.cancel")),
      h("button", { type: "submit", class: "primary" }, say("common.save"))));
  const dialog = h("dialog", { "aria-label": say("sharing.title") }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const choice = form.elements.audience.value;
    const people = [...names.querySelectorAll(":checked")].map((one) => one.value);
    if (choice === "people" && !people.length) return void (problem.textContent = say("sharing.choose_one"));
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
