// Schedules: reminders and routines, and what became of them.

import { called, complain, facts, h, icon, iconButton, lazily, moment, rowList } from "./dom.js";
import { changes, fill, row } from "./list.js";
import { answer, doneAndSnooze } from "./told.js";
import { count, pieces, say } from "./more.js";

const scheduling = lazily(() => import("./scheduling.js"));

/** The page, where a notification's button may have been pressed. */
export async function show(household, pressed, id) {
  const rows = rowList();
  const { tried, remover, watch } = changes(household, draw);
  if (id) {
    history.replaceState(null, "", "#/reminders");
    await answer(household, id, pressed).catch(complain);
  }
  await draw();
  return {
    element: h("div.page", h("p.quiet", say("reminders.help")),
      household.maySend && h("div.row", h("button.primary", { onclick: () => scheduling(({ add }) => add(household).then((isSet) => isSet && draw()).catch(complain)) }, icon("plus"), say("scheduling.add"))), rows),
    close: watch("schedule"),
  };

  async function draw() {
    const { schedules } = await household.request("list_schedules");
    fill(rows, schedules, scheduleRow, say("reminders.none"));
  }

  function scheduleRow(one) {
    const step = say(one.asks ? "reminders.allow" : one.paused ? "reminders.resume" : "reminders.pause");
    const what = one.say ?? one.prompt;
    const run = one.last_run;
    const about = facts(
      one.asks ? say("reminders.asks", { name: called(one.owner) }) : one.paused ? say("reminders.paused") : one.next_at ? pieces("reminders.next", { time: time(one.next_at) }) : one.told_at ? pieces("reminders.told", { time: time(one.told_at) }) : say(one.on ? "reminders.waits" : "reminders.over"),
      (one.cron || one.on) && one.when,
      one.last_at && !one.told_at && pieces("reminders.last", { time: time(one.last_at) }),
      OUTCOMES.includes(run?.outcome) && say(`reminders.outcome.${run.outcome}`),
      OUTCOMES.includes(run?.outcome) && run.input_tokens && count("common.tokens", run.input_tokens + run.output_tokens),
      one.owner && called(one.owner),
      one.conversation_id && h("a", { href: `#/c/${one.conversation_id}` }, say("common.conversation")));
    return row([one.webhook && h("span.badge", { title: say("reminders.to_webhook") }, one.webhook), what], about,
      (household.maySend || one.owner === household.identity?.user) && h("span.row.wrap",
        household.maySend && one.told_at && doneAndSnooze(household, one.schedule_id, tried),
        household.maySend && (one.next_at || one.on) && h("button", { "aria-label": say("list.deed_of", { deed: step, what }), onclick: () => tried(() => household.request("pause_schedule", { schedule_id: one.schedule_id, paused: !one.paused })) }, step),
        h("span.row", one.last_at && iconButton("status", say("scheduling.runs_of", { what }), say("scheduling.runs"), () => scheduling(({ showRuns }) => showRuns(household, one).catch(complain))),
        remover(say("common.delete"), { what, title: say("reminders.delete_title") }, "delete_schedule", { schedule_id: one.schedule_id }))));
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
