// Schedules: pausing and deleting reminders and routines. The assistant creates them.

import { h, moment, rowList } from "./dom.js";
import { changes, fill, row } from "./list.js";

/** The page. */
export async function show(household) {
  const rows = rowList();
  const { tried, remover, watch } = changes(household, draw);
  await draw();
  return {
    element: h("div.page", h("p.quiet", "The assistant runs these for you. To add one, say “remind me at six to …” or “every weekday at half past seven …” in a conversation."), rows),
    close: watch("schedule"),
  };

  async function draw() {
    const { schedules } = await household.request("list_schedules");
    fill(rows, schedules, scheduleRow, "Nothing is scheduled.");
  }

  function scheduleRow(one) {
    const step = one.paused ? "Resume" : "Pause";
    const about = [
      one.paused ? "Paused" : one.next_at ? ["Next: ", time(one.next_at)] : "Finished",
      one.cron && ` · ${one.when}`,
      one.last_at && [" · last: ", time(one.last_at)],
      one.owner && ` · ${one.owner}`,
      one.conversation_id && [" · ", h("a", { href: `#/c/${one.conversation_id}` }, "conversation")],
    ];
    return row([one.webhook && h("span.badge", { title: "Replies are sent to this webhook account" }, one.webhook), one.prompt], about.flat(),
      (household.maySend || one.owner === household.identity?.user) && h("span.row",
        household.maySend && h("button", { "aria-label": `${step}: ${one.prompt}`, onclick: () => tried(() => household.request("pause_schedule", { schedule_id: one.schedule_id, paused: !one.paused })) }, step),
        remover("Delete", { what: one.prompt, title: "Delete this reminder?" }, "delete_schedule", { schedule_id: one.schedule_id })));
  }
}

/** The day and the time. */
function time(timestamp) {
  const shown = moment(timestamp);
  shown.textContent = shown.title;
  return shown;
}
