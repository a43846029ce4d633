// Reminders and routines by form, and what became of their runs.

import { h, called, moment, options, toast } from "./dom.js";
import { dialogForm, field, ticks } from "./forms.js";
import { count, listed, locale, pieces, say } from "./more.js";

const FULL = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "short" });

/** Asks for a reminder or a routine, and sets it. Resolves to whether one was set. */
export async function add(household) {
  const me = household.identity.user;
  const [{ people }, { lists }] = await Promise.all([household.read("list_people"), household.read("list_lists")]);
  const accounts = (household.config.channels ?? []).flatMap((one) => Object.keys(one.type === "webhook" ? one.accounts : {}));
  const choice = (value, label, meaning) => h("label.choice", h("input", { type: "radio", name: "kind", value, checked: value === "say", onchange: draw }), h("span", h("strong", label), h("br"), meaning));
  const kinds = h("fieldset", h("legend", say("scheduling.kind")),
    choice("say", say("scheduling.reminder"), say("scheduling.reminder_help")), choice("prompt", say("scheduling.routine"), say("scheduling.routine_help")));
  const text = h("textarea", { rows: 2, maxlength: 4000, required: true });
  const occasion = h("select", { onchange: draw }, options([["day", say("scheduling.at_time")], ["at", say("scheduling.in_words")], ["event", say("scheduling.before_event")],
    ...(lists.length ? [["list", say("scheduling.on_list")]] : []), ...(accounts.length ? [["webhook", say("scheduling.on_webhook")]] : [])]));
  const wheres = {
    day: field(say("scheduling.at_time"), h("input", { type: "datetime-local" }), [say("scheduling.clock"), household.config.time_zone && ` (${household.config.time_zone})`]),
    at: field(say("scheduling.at"), h("input", { type: "text", autocomplete: "off" }), say("scheduling.at_help")),
    event: field(say("scheduling.minutes"), h("input", { type: "number", min: 0, max: 10080, value: 30 })),
    list: field(say("scheduling.list"), h("select", options(lists.map(({ list }) => [list, list])))),
    webhook: field(say("senders.account"), h("select", options(accounts.map((name) => [name, name])))),
  };
  const who = ticks(say("scheduling.people"), "person", people.filter(({ role }) => role !== "viewer").map(({ name }) => [name, called(name)]), [me]);
  const kind = () => kinds.querySelector(":checked").value;
  const input = (name) => wheres[name].querySelector(":is(input,select)");
  draw();
  return dialogForm({ title: say("scheduling.add"), action: say("scheduling.set"), send },
    kinds, field(say("scheduling.text"), text), field(say("scheduling.when"), occasion), ...Object.values(wheres), who.element);

  function draw() {
    for (const [name, element] of Object.entries(wheres)) {
      element.hidden = name !== occasion.value;
      input(name).required = !element.hidden;
    }
    who.element.hidden = kind() !== "say" || people.length < 2;
  }

  async function send() {
    const chosen = who.element.hidden ? [me] : who.chosen();
    if (!chosen.length) throw new Error(say("scheduling.nobody"));
    const value = input(occasion.value).value.trim();
    const { next_at: next, when } = await household.request("create_schedule", {
      [kind()]: text.value.trim(), ...(["day", "at"].includes(occasion.value) ? { at: value } : { on: `${occasion.value} ${value}` }),
      ...(chosen.length === 1 && chosen[0] === me ? {} : { people: chosen }),
    });
    const time = next ? FULL.format(new Date(next)) : when;
    // What is for others is theirs, and not in this list.
    toast(chosen.includes(me) ? say("scheduling.is_set", { time }) : say("scheduling.is_set_for", { time, people: listed(chosen.map(called)) }));
  }
}

/** Shows the latest runs: when, what came of each and why, and what it cost. */
export async function showRuns(household, one) {
  const { runs } = await household.request("list_schedule_runs", { schedule_id: one.schedule_id });
  const outcomes = {
    running: say("scheduling.running"), told: say("scheduling.told"), replied: say("scheduling.replied"), silent: say("scheduling.silent"),
    unchanged: say("scheduling.unchanged"), failed: say("scheduling.failed"), cancelled: say("scheduling.cancelled"),
  };
  const row = ({ at, outcome, input_tokens: sent, output_tokens: answered }) => h("li", h("div.grow", outcomes[outcome] ?? outcome,
    h("p.quiet.small", full(at), sent || answered ? ` · ${count("common.tokens", sent + answered)}` : "")));
  await dialogForm({ title: say("scheduling.runs") }, h("p.quiet", { dir: "auto" }, one.say ?? one.prompt),
    runs.length ? h("ul.rows", runs.map(row)) : h("p", say("scheduling.no_runs")),
    one.conversation_id ? h("p", pieces("scheduling.in_conversation", { link: h("a", { href: `#/c/${one.conversation_id}`, onclick: ({ target }) => target.closest("dialog").close() }, say("common.conversation")) })) : null);
}

/** The day and the time. */
function full(timestamp) {
  const shown = moment(timestamp);
  shown.textContent = shown.title;
  return shown;
}
