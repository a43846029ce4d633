// Schedules: pausing and deleting reminders and routines. The assistant creates them.

import { called, complain, h, moment, rowList } from "./dom.js";
import { changes, fill, row } from "./list.js";
import { answer, doneAndSnooze } from "./told.js";

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
    element: h("div.page", h("p.quiet", "To add one, say “remind me at six to …” or “every weekday at half past seven …” in a conversation."), rows),
    close: watch("schedule"),
  };

  async function draw() {
    const { schedules } = await household.request("list_schedules");
    fill(rows, schedules, scheduleRow, "Nothing is scheduled.");
  }

  function scheduleRow(one) {
    const step = one.asks ? "Allow" : one.paused ? "Resume" : "Pause";
    const what = one.say ?? one.prompt;
    const run = one.last_run;
    const about = [
      one.asks ? `${called(one.owner)} wants to remind you, now and later` : one.paused ? "Paused" : one.next_at ? ["Next: ", time(one.next_at)] : one.told_at ? ["Told: ", time(one.told_at)] : one.on ? "Waits" : "Over",
      (one.cron || one.on) && ` · ${one.when}`,
      one.last_at && [" · last: ", time(one.last_at)],
      run && OUTCOMES[run.outcome] && ` (${OUTCOMES[run.outcome]}${run.input_tokens ? `, ${run.input_tokens + run.output_tokens} tokens` : ""})`,
      one.owner && ` · ${called(one.owner)}`,
      one.conversation_id && [" · ", h("a", { href: `#/c/${one.conversation_id}` }, "conversation")],
    ];
    return row([one.webhook && h("span.badge", { title: "Replies are sent to this webhook account" }, one.webhook), what], about.flat(),
      (household.maySend || one.owner === household.identity?.user) && h("span.row",
        household.maySend && one.told_at && doneAndSnooze(household, one.schedule_id, tried),
        household.maySend && (one.next_at || one.on) && h("button", { "aria-label": `${step}: ${what}`, onclick: () => tried(() => household.request("pause_schedule", { schedule_id: one.schedule_id, paused: !one.paused })) }, step),
        remover("Delete", { what, title: "Delete this reminder?" }, "delete_schedule", { schedule_id: one.schedule_id })));
  }
}

/** What became of a run, where that is no message in the conversation. */
const OUTCOMES = { silent: "nothing to tell", unchanged: "nothing had changed", failed: "failed", cancelled: "stopped", running: "running" };

/** The day and the time. */
function time(timestamp) {
  const shown = moment(timestamp);
  shown.textContent = shown.title;
  return shown;
}
