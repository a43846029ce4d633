// What an admin sets for one person: the display name, limits, and how the phone is notified.

import { h, complain, options } from "./dom.js";
import { dialogForm, field, tick, ticks } from "./forms.js";
import { say } from "./more.js";

/** Asks for the display name and the limits of a person. Resolves to whether they were saved. */
export async function edit(household, { name, display_name: called, limits }) {
  const known = limits ?? {};
  const { tools } = await household.request("list_tools");
  const display = h("input", { type: "text", maxlength: 64, value: called, autocomplete: "off" });
  const tokens = h("input", { type: "number", min: 1, value: known.monthly_tokens ?? "", placeholder: say("common.no_limit") });
  const words = h("textarea", { rows: 4, maxlength: 10000, value: known.instructions ?? "", placeholder: say("people.instructions_example") });
  const mode = h("select", options([["", say("person.mode_usual")], ["ask", say("person.mode_ask")], ["allow", say("person.mode_allow")], ["deny", say("person.mode_deny")]], known.permission_mode ?? ""));
  // Those that are not offered to the admin stay, too.
  const offered = [...tools.map((one) => [one.name, one.label]), ...(known.tools ?? []).filter((tool) => !tools.some((one) => one.name === tool)).map((tool) => [tool, tool])];
  const some = ticks(say("app.page.tools"), "tool", offered, known.tools ?? tools.map((one) => one.name));
  const all = tick(say("person.all_tools"), { checked: !known.tools, onchange: draw });
  draw();
  return dialogForm({ title: called || name, action: say("common.save"), send },
    field(say("person.display_name"), display, say("person.display_name_help", { name })), field(say("people.tokens_a_month"), tokens, say("person.tokens_help")),
    field(say("people.instructions"), words), field(say("person.mode"), mode, say("person.mode_help")), all, some.element);

  function draw() {
    some.element.hidden = all.firstChild.checked;
  }

  async function send() {
    const wanted = { monthly_tokens: tokens.value ? Number(tokens.value) : null, instructions: words.value.trim() || null, permission_mode: mode.value || null, tools: all.firstChild.checked ? null : some.chosen() };
    const isSame = (key) => JSON.stringify(wanted[key]) === JSON.stringify(known[key] ?? null);
    const changed = Object.fromEntries(Object.entries(wanted).filter(([key]) => !isSame(key)));
    if (display.value.trim() !== called) await household.request("set_display_name", { name, display_name: display.value.trim() === name ? "" : display.value.trim() });
    if (Object.keys(changed).length) await household.request("set_limits", { name, limits: changed });
  }
}

/** Asks how a person's phone is notified. Resolves to whether it was saved. */
export function editPhone(household, { name, limits }) {
  const known = limits?.notifications ?? {};
  const present = known.ntfy ? "ntfy" : known.gotify ? "gotify" : "";
  const service = h("select", { onchange: draw }, options([["", say("person.no_phone")], ["ntfy", "ntfy"], ["gotify", "Gotify"]], present));
  const url = h("input", { type: "url", value: known[present]?.url ?? "", spellcheck: "false" });
  const secret = h("input", { type: "password", autocomplete: "off" });
  const label = h("span");
  const content = tick(say("person.with_content"), { checked: known.content });
  const quiet = h("input", { type: "text", value: known.quiet_hours ?? "", placeholder: "22:00-07:00", pattern: "\\d?\\d:\\d\\d-\\d?\\d:\\d\\d" });
  const fields = [field(say("person.address"), url), h("label", label, secret), content, field(say("account.quiet_hours"), quiet, say("person.quiet_help"))];
  const note = h("p", { role: "status" });
  const test = h("button", { onclick: tryOut, hidden: !present }, say("person.test_phone"));
  draw();
  return dialogForm({ title: say("person.phone_title", { name }), action: say("common.save"), send }, h("p.help", say("person.phone_about")), field(say("person.service"), service), ...fields, test, note);

  function draw() {
    for (const one of fields) one.hidden = !service.value;
    url.placeholder = service.value === "ntfy" ? "ntfy.sh" : "gotify.example";
    label.textContent = service.value === "ntfy" ? say("person.topic") : say("person.token");
    secret.required = Boolean(service.value);
    url.required = service.value === "gotify";
  }

  /** Sends one, as it is set now. */
  async function tryOut() {
    note.textContent = say("person.sending");
    try {
      const { results } = await household.request("test_notification", { name });
      note.className = results.every((one) => one.is_sent) ? "good" : "problem";
      note.textContent = results.map((one) => `${one.service}: ${one.message}`).join(" ");
    } catch (error) {
      note.textContent = "";
      complain(error);
    }
  }

  async function send() {
    const way = { ...(url.value.trim() && { url: url.value.trim() }), [service.value === "ntfy" ? "topic" : "token"]: secret.value.trim() };
    const notifications = service.value ? { [service.value]: way, content: content.firstChild.checked, ...(quiet.value.trim() && { quiet_hours: quiet.value.trim() }) } : null;
    await household.request("set_limits", { name, limits: { notifications } });
  }
}
