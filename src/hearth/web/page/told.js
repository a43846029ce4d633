// A reminder that was told: finishing it, and putting it off.

import { h, complain } from "./dom.js";
import { say } from "./more.js";

/** The buttons; `tried` reports what fails. */
export function doneAndSnooze(household, id, tried) {
  const send = (action) => () => tried(() => answer(household, id, action));
  return h("span.row",
    h("button", { onclick: send("done") }, say("common.done")),
    h("button", { onclick: send("again") }, say("told.later")));
}

/** What a button says, here or of a notification: "done" or "again". */
export const answer = (household, id, action) => household.request(action === "done" ? "finish_reminder" : "snooze_reminder", { schedule_id: id });

/** Shows one over any page until somebody answers it, here or elsewhere. */
export function showTold(household, { schedule_id: id, conversation_id: conversation, say: text }) {
  const place = document.querySelector(".told") ?? document.body.appendChild(h("div.told", { role: "status" }));
  const what = conversation ? h("a", { href: `#/c/${conversation}` }, text) : text;
  const row = h("div", what, doneAndSnooze(household, id, (send) => send().then(close, complain)));
  row.dataset.schedule = id;
  place.querySelector(`[data-schedule="${id}"]`)?.remove();
  place.append(row);
  household.addEventListener("schedule", answered);

  async function answered({ detail }) {
    if (detail?.schedule_id !== id) return;
    const { schedules } = await household.request("list_schedules").catch(() => ({ schedules: [] }));
    if (!schedules.some((one) => one.schedule_id === id && one.told_at)) close();
  }

  function close() {
    household.removeEventListener("schedule", answered);
    row.remove();
    if (!place.children.length) place.remove();
  }
}
