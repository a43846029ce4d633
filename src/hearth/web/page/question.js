// What a running tool asks: a form in place of an approval.

import { h, icon, options } from "./dom.js";
import { marked, visible } from "./visible.js";

const TYPES = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

/** Draws a question into its card. */
export function fill(element, household, approval) {
  const { server, message, requestedSchema: { properties, required } } = approval.question;
  const fields = Object.entries(properties).map(([name, schema]) => field(name, schema, required.includes(name)));
  const note = h("p.problem", { role: "alert" });
  const say = (words) => note.replaceChildren(...marked(visible(words)));
  const choice = (words, title, kind, more) => h("button", { class: kind, title, onclick: () => send("deny", more) }, words);
  const buttons = h("div.row.wrap",
    h("button", { type: "submit", class: "primary" }, "Send"),
    choice("Decline", "The tool learns that you do not want to answer", "danger"),
    choice("Cancel", "The tool learns that there is no answer", "", { dismiss: true }));
  const form = h("form.question-form", { novalidate: true }, fields.map((one) => one.element), note, buttons);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const content = {};
    for (const { name, input, value } of fields) {
      if (input && !input.validity.valid) {
        say(`“${label(name, properties[name])}”: ${input.validationMessage}`);
        return input.focus();
      }
      const given = value();
      if (given !== undefined) content[name] = given;
    }
    send("approve", { content });
  });
  element.replaceChildren(
    h("summary", icon("tool"), h("span", h("strong", ...marked(visible(server))), " asks you, through ", h("code", ...marked(visible(approval.tool))))),
    h("p.asked", ...marked(visible(message))),
    h("p.quiet.small", `The tool ${visible(approval.tool)} asks. Do not enter passwords.`),
    form);

  async function send(command, more) {
    say("");
    able(false);
    try {
      await household.request(command, { approval_id: approval.approval_id, ...more });
      household.approvals.delete(approval.approval_id);
      household.dispatchEvent(new CustomEvent("approvals"));
    } catch (error) {
      say(error.message);
      able(true);
    }
  }

  function able(isAble) {
    for (const button of buttons.children) button.disabled = !isAble;
  }
}

const label = (name, schema) => schema.title ?? name;

/** A field: its `element`, the `input` that is checked, and a function for its `value`, undefined for none. */
function field(name, schema, isRequired) {
  const words = [...marked(visible(label(name, schema))), !isRequired && schema.type !== "boolean" && h("span.quiet", " (optional)")];
  const help = schema.description && h("span.help", ...marked(visible(schema.description)));
  if (schema.type === "boolean") {
    const input = h("input", { type: "checkbox", checked: schema.default });
    return { name, element: h("label.check", input, h("span", ...words.filter(Boolean), help && h("br"), help)), value: () => input.checked };
  }
  if (schema.type === "array") {
    const boxes = schema.items.anyOf.map((one) => h("input", { type: "checkbox", value: one.const, checked: schema.default?.includes(one.const) }));
    const element = h("fieldset", h("legend", words), help, boxes.map((box, at) => h("label.check", box, h("span", ...marked(visible(schema.items.anyOf[at].title))))));
    const chosen = () => boxes.filter((box) => box.checked).map((box) => box.value);
    return { name, element, value: () => (chosen().length || isRequired ? chosen() : undefined) };
  }
  const input = schema.oneOf
    ? h("select", { required: isRequired }, options([["", isRequired ? "Choose…" : "—"], ...schema.oneOf.map((one) => [one.const, visible(one.title)])], schema.default ?? ""))
    : h("input", {
      type: schema.type === "string" ? TYPES[schema.format] ?? "text" : "number", required: isRequired && schema.minLength !== 0, autocomplete: "off",
      minlength: schema.minLength, maxlength: schema.maxLength, min: schema.minimum, max: schema.maximum,
      step: schema.type === "integer" ? 1 : schema.type === "number" ? "any" : null, value: local(schema),
    });
  const value = () => {
    if (input.value === "" && !(isRequired && schema.minLength === 0)) return undefined;
    if (schema.type !== "string") return Number(input.value);
    return input.type === "datetime-local" ? new Date(input.value).toISOString() : input.value;
  };
  return { name, input, element: h("label", h("span", ...words.filter(Boolean)), help, input), value };
}

/** The value at first, as its input has it. */
function local({ format, default: value }) {
  if (value === undefined) return "";
  if (format !== "date-time") return String(value);
  const time = new Date(value);
  return new Date(time - time.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
}
