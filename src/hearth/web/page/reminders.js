// Schedules: pausing and deleting reminders and routines. The assistant creates them.

import { facts, h, moment, rowList } from "./dom.js";
import { changes, fill, row } from "./list.js";
import { doneAndSnooze } from "./told.js";
import { count, pieces, say } from "./more.js";

/** The page. */
export async function show(household) {
  const rows = rowList();
  const { tried, remover, watch } = changes(household, draw);
  await draw();
  return {
    element: h("div.page", h("p.quiet", say("reminders.help")), rows),
    close: watch("schedule"),
  };

  async function draw() {
    const { schedules } = await household.request("list_schedules");
    fill(rows, schedules, scheduleRow, say("reminders.none"));
  }

  function scheduleRow(one) {
    const step = say(one.paused ? "reminders.resume" : "reminders.pause");
    const what = one.say ?? one.prompt;
    const run = one.last_run;
    const about = facts(
      one.paused ? say("reminders.paused") : one.next_at ? pieces("reminders.next", { time: time(one.next_at) }) : one.told_at ? pieces("reminders.told", { time: time(one.told_at) }) : say("reminders.waits"),
      (one.cron || one.on) && one.when,
      one.last_at && pieces("reminders.last", { time: time(one.last_at) }),
      OUTCOMES.includes(run?.outcome) && say(`reminders.outcome.${run.outcome}`),
      OUTCOMES.includes(run?.outcome) && run.input_tokens && count("common.tokens", run.input_tokens + run.output_tokens),
      one.owner,
      one.conversation_id && h("a", { href: `#/c/${one.conversation_id}` }, say("common.conversation")));
    return row([one.webhook && h("span.badge", { title: say("reminders.to_webhook") }, one.webhook), what], about,
      (household.maySend || one.owner === household.identity?.user) && h("span.row",
        household.maySend && one.told_at && doneAndSnooze(household, one.schedule_id, tried),
        household.maySend && (one.next_at || one.on) && h("button", { "aria-label": say("list.deed_of", { deed: step, what }), onclick: () => tried(() => household.request("pause_schedule", { schedule_id: one.schedule_id, paused: !one.paused })) }, step),
        remover(say("common.delete"), { what, title: say("reminders.delete_title") }, "delete_schedule", { schedule_id: one.schedule_id })));
  }
}

/** What became of a run, where that is no message in the conversation. */
const OUTCOMES = ["silent", "unchanged", "failed", "cancelled", "running"];

/** The day and the time. */
function time(timestamp) {
  const shown = moment(timestamp);
  shown.textContent = shown.title;
  return shown;
}
