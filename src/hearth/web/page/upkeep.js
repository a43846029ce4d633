// What keeps a household going: backups, how long conversations are kept, the time zone, voice.

import { h, ask, card, complain, iconButton, rowList, toast } from "./dom.js";
import { field, ownerForm, ownerLines } from "./forms.js";
import { changes, fill, row } from "./list.js";
import { locale, pieces, say } from "./more.js";
import { sentence } from "./session.js";

/** How often it is asked how far a backup is. */
const EVERY = 1000;
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
  const stop = watch("config");
  return { element: h("div.page", backupCard(config.backup), retentionCard(config), zoneCard(config), voiceCard(config.voice), noticeCard()), close: () => {
    clearTimeout(later);
    stop();
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
    return card(say("upkeep.backups"), h("p.help", keep ? say("upkeep.backups_about", { keep, at }) : say("upkeep.backups_off")), backups, place, h("div.row.wrap", start), state,
      ownerLines(say("upkeep.backups_owner"), "hearth config set backup.keep 7", "hearth config set backup.at 03:30", "hearth config set backup.directory /mnt/disk/hearth"),
      ownerLines(say("upkeep.encrypt_owner"), "hearth backup --new-key backup.key", "hearth config set backup.encrypt_to age1…"),
      ownerLines(say("upkeep.backup_copy"), "hearth backup hearth-backup.db"));
  }

  function retentionCard({ retention }) {
    const days = h("input", { type: "number", min: 1, max: 36500, value: retention?.conversations_days ?? "", placeholder: say("upkeep.for_ever") });
    return form(say("upkeep.retention"), say("upkeep.retention_about"), [field(say("upkeep.days"), days)], async () => {
      const wanted = days.value ? Number(days.value) : null;
      const isSure = wanted === null || await ask({ title: say("upkeep.retention_sure", { days: wanted }), text: say("upkeep.retention_warning"), action: say("common.save"), danger: true });
      if (isSure) await update({ retention: { conversations_days: wanted } });
    });
  }

  function zoneCard({ time_zone: now }) {
    const zones = h("datalist", { id: "zones" }, Intl.supportedValuesOf("timeZone").map((value) => h("option", { value })));
    const zone = h("input", { type: "text", list: "zones", value: now ?? "", placeholder: say("upkeep.zone_usual"), autocomplete: "off", spellcheck: "false" });
    return form(say("upkeep.zone"), say("upkeep.zone_about"), [field(say("upkeep.zone"), zone), zones], () => update({ time_zone: zone.value.trim() || null }));
  }

  function voiceCard(voice) {
    const listens = Boolean(voice?.transcription);
    const speaks = Boolean(voice?.speech);
    return card(say("upkeep.voice"), h("p", listens ? say("upkeep.listens") : say("upkeep.does_not_listen")), h("p", speaks ? say("upkeep.speaks") : say("upkeep.does_not_speak")),
      speaks && h("div.row.wrap", h("button", { onclick: () => tried(async () => (await import("./voice.js")).speak(household, say("upkeep.spoken"))) }, say("upkeep.hear"))),
      ownerForm(say("upkeep.voice_owner"), ([url]) => ["transcription", "speech"].map((what) => `hearth config set voice.${what}.url ${url}`),
        { label: say("person.address"), input: h("input", { type: "url", spellcheck: "false" }), example: "http://127.0.0.1:8000/v1" }));
  }

  function noticeCard() {
    return card(say("upkeep.notifications"), h("p", pieces("upkeep.notifications_about", { people: h("a", { href: "#/people" }, say("app.page.people")), account: h("a", { href: "#/account" }, say("app.page.account")) })),
      ownerLines(say("upkeep.notifications_owner"), "hearth config set notifications.push_contact mailto:you@example.com"));
  }

  async function update(config) {
    await household.request("update_config", { config });
    toast(say("upkeep.saved"));
  }

  function form(title, about, fields, send) {
    const made = h("form", fields, h("button", { type: "submit", class: "primary" }, say("common.save")));
    made.addEventListener("submit", (event) => {
      event.preventDefault();
      tried(send);
    });
    return card(title, h("p.help", about), made);
  }
}
