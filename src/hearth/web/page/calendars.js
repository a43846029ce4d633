// Calendars that are kept elsewhere: adding, changing and removing them, and what comes.

import { audienceIcon } from "./audience.js";
import { h, called, icon, iconButton, moment, rowList } from "./dom.js";
import { dialogForm, field, readers, tick } from "./forms.js";
import { changes, fill, row } from "./list.js";
import { count, locale, pieces, say } from "./more.js";
import { sentence } from "./session.js";

/** Most events that are shown. */
const EVENTS = 20;
const DAY = new Intl.DateTimeFormat(locale, { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });
const TIME = new Intl.DateTimeFormat(locale, { weekday: "short", day: "numeric", month: "short", hour: "numeric", minute: "2-digit" });

/** The page. */
export async function show(household) {
  const me = household.identity.user;
  const rows = rowList();
  const events = h("ul.rows");
  const { remover, watch } = changes(household, draw);
  await draw();
  return {
    element: h("div.page", h("p.quiet", say("calendars.about")), h("div.row", h("button.primary", { onclick: () => edit() }, icon("plus"), say("calendars.add"))),
      rows, h("h2", say("calendars.next")), events),
    close: watch("calendar", "reload"),
  };

  async function draw() {
    const [known, next] = await Promise.all([household.request("list_calendars"), household.request("list_events")]);
    fill(rows, known.calendars, calendar, say("calendars.none"));
    fill(events, next.events.slice(0, EVENTS), (one) => row(one.title, [when(one), one.location, one.calendar].filter(Boolean).join(" · ")), say("calendars.no_events"));
  }

  function calendar(one) {
    const states = { waiting: say("calendars.waiting"), ok: say("calendars.ok"), failing: say("calendars.failing") };
    const what = [h("strong", one.name), " ", h("span.badge", states[one.state]), one.problem && h(one.state === "failing" ? "p.problem.small" : "p.quiet.small", sentence(one.problem))];
    const about = [audienceIcon(one, me), one.owner === me ? null : `${called(one.owner)} · `, one.url, ` · ${count("calendars.events", one.events)}`,
      one.read_at && [" · ", ...pieces("calendars.read", { time: moment(one.read_at) })], one.read_only && ` · ${say("calendars.read_only")}`].flat();
    return row(what, about, one.owner === me && h("span.row",
      iconButton("edit", say("calendars.change_named", { name: one.name }), say("common.change"), () => edit(one)),
      remover(say("common.remove"), { label: say("calendars.remove_named", { name: one.name }), title: say("calendars.remove_named", { name: one.name }), text: say("calendars.remove_text") }, "remove_calendar", { calendar_id: one.calendar_id })));
  }

  /** Asks for what a calendar has, and adds or changes it. */
  async function edit(one) {
    const text = (type, value, more) => h("input", { type, value: value ?? "", autocomplete: "off", spellcheck: "false", ...more });
    const name = text("text", one?.name, { required: true, maxlength: 100 });
    const url = text("url", one?.url, { required: true, placeholder: "cloud.example/remote.php/dav" });
    const username = text("text", one?.username, { autocapitalize: "none" });
    const password = text("password", "", { autocomplete: "new-password", placeholder: one?.password_set ? say("calendars.keep_password") : "" });
    const minutes = text("number", one?.refresh_minutes, { min: 5, max: 1440, placeholder: "15" });
    const readOnly = tick(say("calendars.is_read_only"), { checked: one?.read_only });
    const who = await readers(household, one?.audience ?? "private");
    const isSent = await dialogForm({ title: one ? say("calendars.change_named", { name: one.name }) : say("calendars.add"), action: say("common.save"), send },
      field(say("common.name"), name), field(say("calendars.url"), url, say("calendars.url_help")),
      field(say("calendars.username"), username, say("calendars.username_help")), field(say("common.password"), password),
      who.element, readOnly, field(say("calendars.minutes"), minutes));
    if (isSent) await draw();

    async function send() {
      const fields = { name: name.value.trim(), url: url.value.trim(), username: username.value.trim(), password: password.value, refresh_minutes: Number(minutes.value) };
      // What is empty stays as it is.
      for (const key of Object.keys(fields)) if (!fields[key] || fields[key] === one?.[key]) delete fields[key];
      Object.assign(fields, { audience: who.audience(), read_only: readOnly.firstChild.checked });
      await (one ? household.request("update_calendar", { calendar_id: one.calendar_id, ...fields }) : household.request("add_calendar", fields));
    }
  }
}

/** When an event is, in the words of the browser. */
function when({ first_day: first, last_day: last, starts_at: start, ends_at: end }) {
  return first ? DAY.formatRange(new Date(first), new Date(last)) : TIME.formatRange(new Date(start), new Date(end));
}
