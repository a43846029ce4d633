// What forms have in common: fields, dialogs, who sees a thing, and lines for the terminal.

import { h, called, commands, complainIn } from "./dom.js";
import { say } from "./more.js";

/** A field with its label, and perhaps help. */
export const field = (label, input, help) => h("label", label, input, help && h("span.help", help));

/** Something to tick. */
export const tick = (label, properties) => h("label.check", h("input", { type: "checkbox", ...properties }), ...[label].flat());

/** A group of ticks for values of a kind. `chosen()` are the values of those that are ticked. */
export function ticks(legend, name, pairs, chosen) {
  const element = h("fieldset.persons", h("legend", legend), pairs.map(([value, ...label]) => tick(label, { name, value, checked: chosen.includes(value) })));
  return { element, chosen: () => [...element.querySelectorAll(":checked")].map((one) => one.value) };
}

/** Shows a form in a dialog, and there what goes wrong. Resolves to whether it was sent. */
export function dialogForm({ title, action, send }, ...fields) {
  return new Promise((resolve) => {
    const problem = h("p.problem", { role: "alert" });
    const button = action && h("button", { type: "submit", class: "primary" }, action);
    const form = h("form", { method: "dialog" }, h("h2", title), ...fields, problem,
      h("div.row.end", h("button.plain", { onclick: () => dialog.close() }, action ? say("common.cancel") : say("common.close")), button));
    const dialog = h("dialog", { "aria-label": title }, form);
    let isSent = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      problem.textContent = "";
      try {
        await send();
        isSent = true;
        dialog.close();
      } catch (error) {
        complainIn(problem, error);
      }
      button.disabled = false;
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(isSent);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** The fields that say who sees a thing, with ticks for some people. `means` says what each choice is; `audience()` is what was chosen. */
export async function readers(household, now, legend = say("forms.readers"), means = (choice) => say(`forms.means.${choice}`), offered = ["private", "household", "people"]) {
  const { people } = await household.read("list_people");
  const others = people.filter(({ name }) => name !== household.identity.user);
  const isSome = Array.isArray(now);
  const some = ticks(say("app.page.people"), "person", others.map(({ name, role }) => [name, called(name), role === "viewer" && h("span.quiet.small", say("common.role.viewer"))]), isSome ? now : []);
  if (!others.length) some.element.append(h("p.quiet", say("sharing.nobody")));
  const choices = h("fieldset", legend && h("legend", legend), offered.map((choice) => h("label.choice",
    h("input", { type: "radio", name: "audience", value: choice, checked: choice === (isSome ? "people" : now), onchange: draw }),
    h("span", h("strong", say(`sharing.choice.${choice}`)), h("br"), means(choice)))));
  const picked = () => choices.querySelector(":checked").value;
  draw();
  return { element: h("fieldset", choices, some.element), audience };

  function draw() {
    some.element.hidden = picked() !== "people";
  }

  function audience() {
    if (picked() !== "people") return picked();
    const names = some.chosen();
    if (!names.length) throw new Error(say("sharing.choose_one"));
    return names;
  }
}

/** What only the owner of the machine may do, with the lines to type there. */
export const ownerLines = (text, ...lines) => [h("p.help", text), commands(...lines)];
