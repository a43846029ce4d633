// Schedules: pausing and deleting reminders and routines. The assistant creates them.

import { h, moment, ask, iconButton, complain, rowList } from "./dom.js";

/** The page. */
export async function show(household) {
  const rows = rowList();
  const changed = () => draw().catch(() => {});
  await draw();
  household.addEventListener("schedule", changed);
  return {
    element: h("div.page", h("p.quiet", "The assistant runs these for you. To add one, say “remind me at six to …” or “every weekday at half past seven …” in a conversation."), rows),
    close: () => household.removeEventListener("schedule", changed),
  };

  async function draw() {
    const { schedules } = await household.request("list_schedules");
    rows.replaceChildren(...schedules.map(row));
    if (!schedules.length) rows.append(h("li", "Nothing is scheduled."));
  }

  function row(one) {
    const step = one.paused ? "Resume" : "Pause";
    const about = [
      one.paused ? "Paused" : one.next_at ? ["Next: ", time(one.next_at)] : "Finished",
      one.cron && [" · repeats ", h("span.badge", one.cron)],
      one.last_at && [" · last: ", time(one.last_at)],
      one.owner && ` · ${one.owner}`,
      one.conversation_id && [" · ", h("a", { href: `#/c/${one.conversation_id}` }, "conversation")],
    ];
    return h("li",
      h("div.grow", one.webhook && h("span.badge", { title: "Replies are sent to this webhook account" }, one.webhook), one.prompt, h("p.quiet.small", about.flat())),
      (household.maySend || one.owner === household.identity?.user) && h("span.row",
        household.maySend && h("button", { "aria-label": `${step}: ${one.prompt}`, onclick: () => tried("pause_schedule", { schedule_id: one.schedule_id, paused: !one.paused }) }, step),
        iconButton("trash", `Delete: ${one.prompt}`, "Delete", () => drop(one))));
  }

  async function drop(one) {
    if (await ask({ title: "Delete this reminder?", text: one.prompt, action: "Delete", danger: true })) await tried("delete_schedule", { schedule_id: one.schedule_id });
  }

  async function tried(type, fields) {
    try {
      await household.request(type, fields);
      await draw();
    } catch (error) {
      complain(error);
    }
  }
}

/** The day and the time. */
function time(timestamp) {
  const shown = moment(timestamp);
  shown.textContent = shown.title;
  return shown;
}
