// What the day brings, above the composer of a new conversation, and what this person
// often begins one with. Loaded where there is something of it.

import { h, icon, ICONS, complain, moment } from "./dom.js";
import { count, locale, say } from "./words.js";

Object.assign(ICONS, {
  event: "M4 6h16v14H4zM4 10h16M8 3v4M16 3v4",
});

/** Most entries of one kind. */
const MOST = 4;
const CLOCK = new Intl.DateTimeFormat(locale, { timeStyle: "short" });

/** Shows it; `send` begins a conversation with a text. */
export function drawHome(place, household, today, send) {
  const rows = [
    ...today.approvals.map((one) => row("tool", one.reason, say("home.asks"), conversation(one))),
    ...today.schedules.map((one) => reminder(household, one)),
    ...today.events.map((one) => row("event", one.title, [timesOf(one), one.location].filter(Boolean).join(" · "))),
    ...today.unread.slice(0, MOST).map((one) => row("chats", one.title, say("home.unread"), conversation(one))),
    ...today.lists.slice(0, MOST).map((one) => row("lists", one.list, count("home.open", one.unchecked), `#/lists/${encodeURIComponent(one.list)}`)),
  ];
  place.replaceChildren(
    ...(rows.length ? [h("ul.rows.today", { "aria-label": say("home.today") }, rows)] : []),
    ...(household.maySend && today.suggestions.length ? [h("div.row.wrap.centre.suggestions", { role: "group", "aria-label": say("home.often") },
      today.suggestions.map((text) => h("button", { dir: "auto", onclick: () => send(text) }, text)))] : []));
}

const conversation = (one) => `#/c/${one.conversation_id}`;

function row(sign, what, about, link, ...more) {
  const words = [icon(sign), h("span.grow", { dir: "auto" }, what), h("span.quiet.small", about)];
  return h("li", link ? h("a.row.grow", { href: link }, words) : h("div.row.grow", words), more);
}

/** One that is due today, or was told and is not done. */
function reminder(household, one) {
  const isTold = !one.next_at && one.told_at;
  const place = h("span");
  if (isTold && household.maySend) {
    import("./told.js").then(({ doneAndSnooze }) => place.append(doneAndSnooze(household, one.schedule_id, (send) => send().catch(complain))), () => {});
  }
  return row("reminders", one.say ?? one.prompt, isTold ? say("home.told") : one.next_at ? moment(one.next_at) : one.when, "#/reminders", isTold && place);
}

function timesOf({ starts_at: start, ends_at: end, first_day: isWhole }) {
  if (isWhole) return say("home.all_day");
  return CLOCK.formatRange(new Date(start), new Date(end));
}
