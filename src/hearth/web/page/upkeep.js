// What keeps a household going: backups, how long conversations are kept, the time zone, voice.

import { h, ask, card, complain, iconButton, rowList, toast } from "./dom.js";
import { field, ownerLines } from "./forms.js";
import { changes, fill, row } from "./list.js";
import { locale, pieces, say } from "./more.js";
import { sentence } from "./session.js";

/** How often it is asked how far a backup is. */
const EVERY = 1000;
/** How long speech may take. */
const SPEECH = 70000;
const SIZE = new Intl.NumberFormat(locale, { style: "unit", unit: "megabyte", maximumFractionDigits: 1 });
const NIGHT = new Intl.DateTimeFormat(locale, { dateStyle: "long", timeZone: "UTC" });

/** The page. */
export async function show(household) {
  const backups = rowList();
  const place = h("p.quiet");
  const state = h("p", { role: "status" });
  const start = h("button", { class: "primary", onclick: () => tried(() => household.request("start_backup")) }, say("upkeep.start_backup"));
  const { tried, watch } = changes(household, draw);
  let later;
  await draw();
  const { config } = household;
  const voice = h("section.card");
  let voiceShown;
  drawVoice();
  const stops = [watch("config"), changes(household, drawVoice).watch("config")];
  return { element: h("div.page", backupCard(config.backup), retentionCard(config), zoneCard(config), voice, noticeCard(config)), close: () => {
    clearTimeout(later);
    stops.forEach((stop) => stop());
  } };

  async function draw() {
    clearTimeout(later);
    const known = await household.request("list_backups");
    const isLate = state.textContent !== "" && !known.is_running;
    start.disabled = known.is_running;
    state.className = known.problem ? "problem" : "quiet";
    state.textContent = known.is_running ? say("upkeep.backing_up") : known.problem ? say("upkeep.backup_failed", { problem: sentence(known.problem) }) : isLate ? say("upkeep.backed_up") : "";
    // Only what is encrypted is given away, and of that the newest.
    const newest = known.backups.find(({ name }) => name.endsWith(".age"));
    fill(backups, known.backups, (one) => row(NIGHT.format(new Date(one.night)), `${one.name} · ${SIZE.format(one.bytes / 1048576)}`, one === newest && downloadButton(one.name)), say("upkeep.no_backups"));
    place.textContent = say("upkeep.place", { directory: known.directory });
    if (known.is_running) later = setTimeout(() => draw().catch(() => {}), EVERY);
  }

  function downloadButton(name) {
    const label = say("upkeep.download");
    const button = iconButton("download", label, label, async () => {
      button.disabled = true;
      try {
        await (await import("./exporting.js")).downloadBackup(household, name);
      } catch (error) {
        complain(error);
      }
      button.disabled = false;
    });
    return button;
  }

  function backupCard({ keep, at }) {
    const nights = h("input", { type: "number", min: 0, max: 1000, required: true, value: keep });
    const hour = h("input", { type: "time", required: true, value: at });
    return card(say("upkeep.backups"), backups, place, h("div.row.wrap", start), state,
      form([field(say("upkeep.kept"), nights, say("upkeep.kept_help")), field(say("upkeep.at"), hour)], () => update({ "backup.keep": Number(nights.value), "backup.at": hour.value })),
      ownerLines(say("upkeep.backups_owner"), "hearth config set backup.directory /mnt/disk/hearth"),
      ownerLines(say("upkeep.encrypt_owner"), "hearth backup --new-key backup.key", "hearth config set backup.encrypt_to age1…"),
      ownerLines(say("upkeep.backup_copy"), "hearth backup hearth-backup.db"));
  }

  function retentionCard({ retention }) {
    const days = h("input", { type: "number", min: 1, max: 36500, value: retention?.conversations_days ?? "", placeholder: say("upkeep.for_ever") });
    return card(say("upkeep.retention"), h("p.help", say("upkeep.retention_about")), form([field(say("upkeep.days"), days)], async () => {
      const wanted = days.value ? Number(days.value) : null;
      const isSure = wanted === null || await ask({ title: say("upkeep.retention_sure", { days: wanted }), text: say("upkeep.retention_warning"), action: say("common.save"), danger: true });
      if (isSure) await update({ retention: { conversations_days: wanted } });
    }));
  }

  function zoneCard({ time_zone: now }) {
    const zones = h("datalist", { id: "zones" }, Intl.supportedValuesOf("timeZone").map((value) => h("option", { value })));
    const zone = text(now, { list: "zones", placeholder: say("upkeep.zone_usual") });
    return card(say("upkeep.zone"), h("p.help", say("upkeep.zone_about")), form([field(say("upkeep.zone"), zone), zones], () => update({ time_zone: zone.value.trim() || null })));
  }

  /** The servers of speech, each with a form, and how they sound and listen. */
  async function drawVoice() {
    const { transcription, speech } = household.config.voice;
    const now = JSON.stringify(household.config.voice);
    // What somebody writes there outlasts a change of something else.
    if (now === voiceShown) return;
    voiceShown = now;
    const heard = h("p", { role: "status" });
    const test = h("button", { onclick: () => tried(async () => { heard.textContent = await hear(transcription); }) }, say("upkeep.hear"));
    voice.replaceChildren(h("h2", say("upkeep.voice")), h("p.help", say("upkeep.voice_about")),
      server("transcription", transcription, "language", say("upkeep.spoken_language")), server("speech", speech, "voice", say("upkeep.voice_name")),
      ...(speech ? [h("div.row.wrap", test), heard] : []));
  }

  function server(what, known, last, label) {
    const url = text(known?.url, { type: "url", placeholder: "http://127.0.0.1:8000/v1" });
    const model = text(known?.model);
    const more = text(known?.[last]);
    const key = text("", { type: "password", placeholder: say(known?.api_key_set ? "settings.key_set" : "settings.key_unset") });
    const fields = [field(say("person.address"), url), field(say("common.model"), model), field(label, more), field(say("settings.api_key"), key)];
    return h("details", { open: Boolean(known) }, h("summary", say(`upkeep.${what}`)), form(fields, () => {
      const at = `voice.${what}`;
      const address = url.value.trim();
      return update(!address ? { [at]: null } : {
        [`${at}.url`]: address, [`${at}.model`]: model.value.trim() || null, [`${at}.${last}`]: more.value.trim() || null, ...(key.value && { [`${at}.api_key`]: key.value }),
      });
    }));
  }

  /** Has a sentence spoken, and, where something listens, says what it understood. */
  async function hear(listens) {
    const spoken = say("upkeep.spoken");
    if (listens) {
      const { audio, media_type } = await household.request("speak", { text: spoken }, { timeout: SPEECH });
      const { text } = await household.request("transcribe", { audio, media_type }, { timeout: SPEECH });
      return say("upkeep.understood", { text });
    }
    await (await import("./voice.js")).speak(household, spoken);
    return "";
  }

  function noticeCard({ notifications }) {
    const contact = text(notifications.push_contact.replace("mailto:", ""), { required: true });
    return card(say("upkeep.notifications"), h("p", pieces("upkeep.notifications_about", { people: h("a", { href: "#/people" }, say("app.page.people")), account: h("a", { href: "#/account" }, say("app.page.account")) })),
      form([field(say("upkeep.contact"), contact, say("upkeep.contact_help"))], () => update({ "notifications.push_contact": contact.value.includes(":") ? contact.value.trim() : `mailto:${contact.value.trim()}` })));
  }

  function text(value, more) {
    return h("input", { type: "text", value: value ?? "", autocomplete: "off", spellcheck: "false", ...more });
  }

  async function update(config) {
    await household.request("update_config", { config });
    toast(say("upkeep.saved"));
  }

  function form(fields, send) {
    const made = h("form", fields, h("button", { type: "submit", class: "primary" }, say("common.save")));
    made.addEventListener("submit", (event) => {
      event.preventDefault();
      tried(send);
    });
    return made;
  }
}
