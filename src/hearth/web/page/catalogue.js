// Adding a tool of the catalogue: what it asks for, a trial, and what its tools may do.

import { h, card, options } from "./dom.js";
import { sentence } from "./session.js";
import { say } from "./more.js";

/** The form, which calls `added` when a tool was added. */
export async function form(household, added) {
  const { tools } = await household.request("list_available_tools");
  const which = h("select", { "aria-label": say("catalogue.tool") }, options([["", say("catalogue.choose")], ...tools.map((one) => [one.name, one.about])]));
  const place = h("div");
  which.addEventListener("change", () => place.replaceChildren(...fields(tools.find((one) => one.name === which.value))));
  return card(say("catalogue.add_tool"), which, place);

  function fields(entry) {
    if (!entry) return [];
    const inputs = {};
    const note = h("p", { role: "status" });
    const choices = h("select", { "aria-label": say("catalogue.which"), hidden: true });
    const add = h("button", { type: "submit", class: "primary" }, say("catalogue.try"));
    const anyway = h("button", { hidden: true, onclick: () => send(true) }, say("catalogue.anyway"));
    const rows = entry.fields.map((field) => {
      const input = h("input", { type: field.is_secret ? "password" : "text", value: field.default ?? "", required: !field.is_optional, autocomplete: "off", spellcheck: "false" });
      inputs[field.name] = input;
      return h("label", field.question, input);
    });
    const element = h("form", entry.steps && h("p.help", entry.steps), rows, choices, h("div.row.wrap", add, anyway), note);
    element.addEventListener("input", (event) => {
      if (event.target !== choices) choices.hidden = true;
      anyway.hidden = true;
      tell("", "");
    });
    element.addEventListener("submit", (event) => {
      event.preventDefault();
      send(false);
    });
    return [element];

    async function send(untried) {
      const answers = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value.trim()]));
      if (!choices.hidden) Object.assign(answers, JSON.parse(choices.value));
      const request = { name: entry.name, answers };
      add.disabled = true;
      tell("quiet", say("catalogue.trying"));
      try {
        if (!untried) {
          const tried = await household.request("add_tool", { ...request, test: true });
          if (tried.choices.length > 1 && choices.hidden) {
            choices.replaceChildren(...options(tried.choices.map((one) => [JSON.stringify(one.answers), one.label])));
            choices.hidden = false;
            tell("quiet", say("catalogue.which_meant"));
            return;
          }
          anyway.hidden = tried.works;
          if (!tried.works) return tell("problem", say("catalogue.broken", { problem: sentence(tried.message) }));
          tell("good", tried.message.slice(0, 400));
        }
        const made = await household.request("add_tool", request);
        const rights = Object.entries(made.tool_permissions).map(([tool, right]) => say(`catalogue.right.${right}`, { tool }));
        await added(say("catalogue.added", { name: made.name, rights: rights.join(", ") }));
      } catch (error) {
        tell("problem", error.message);
      } finally {
        add.disabled = false;
      }
    }

    function tell(kind, text) {
      note.className = kind;
      note.textContent = text;
    }
  }
}
