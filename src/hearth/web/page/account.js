// A person's own account.

import { h, card, facts, moment, ask, options, toast, rowList, called } from "./dom.js";
import { changes, fill, row, sure } from "./list.js";
import { LANGUAGES, adopt, pieces, say } from "./more.js";

/** The page. */
export async function show(household) {
  const user = household.identity.user;
  const tokens = rowList();
  const memories = rowList();
  const { tried, remover } = changes(household, draw);
  const { download, mayUpload, upload } = await import("./exporting.js");
  const chosen = h("input", { type: "file", hidden: true, "aria-label": say("account.import_file"), onchange: () => chosen.files[0] && tried(bringIn) });
  const done = h("progress", { max: "1", value: "0", "aria-label": say("account.importing") });
  const state = h("p.quiet", { role: "status" });
  const { trustCard } = await import("./trust.js");
  const [push, theming, trust, linked, quiet] = await Promise.all([household.maySend && import("./push.js"), import("./theme.js"), trustCard(household),
    household.maySend && import("./senders.js").then(({ sendersCard }) => sendersCard(household)), household.maySend && household.request("get_quiet_hours"), draw()]);
  const [from, until] = (quiet && quiet.quiet_hours || "-").split("-");
  return { element: h("div.page",
    push && push.pushCard(household),
    card(say("common.name"), h("p.help", say("account.name_help", { user })),
      form(say("common.save"), rename, h("label", say("common.name"), h("input", { type: "text", maxlength: 64, value: called(user) })))),
    card(say("theme.title"), h("p.help", say("theme.about")), themes(theming)),
    card(say("account.language"), h("p.help", say("account.language_help")), languages()),
    household.maySend && card(say("account.quiet_hours"), h("p.help", say("account.quiet_help")),
      form(say("account.set"), setQuietHours, timeOf(say("account.from"), from), timeOf(say("account.until"), until))),
    linked,
    card(say("common.password"), form(say("common.change"), changePassword, secret(say("account.current_password"), "current-password"), secret(say("account.new_password"), "new-password", 8))),
    card(say("link.another_device"), h("p.help", say("account.another_device_help")),
      h("button", { onclick: () => tried(async () => (await import("./link.js")).showAddress(household)) }, say("account.show_code"))),
    trust,
    card(say("account.signed_in"), h("p.help", say("account.signed_in_help")), tokens,
      h("button", { onclick: signOutEverywhere }, say("account.sign_out_everywhere"))),
    household.maySend && card(say("account.memories"), memories),
    card(say("account.data"), h("p.help", say("account.data_help")),
      h("button", { onclick: () => tried(() => download(household, `hearth-${user}.jsonl`)) }, say("common.export")),
      household.maySend && mayUpload() && h("button", { onclick: () => chosen.click() }, say("account.import")), chosen, state),
    card(say("account.delete"), h("p.help", say("account.delete_help")),
      form(say("account.delete_mine"), deleteAccount, secret(say("common.password"), "current-password")))) };

  async function draw() {
    const [own, known] = await Promise.all([household.request("list_own_tokens"), household.maySend ? household.request("list_memories", { own: true }) : { memories: [] }]);
    fill(tokens, own.tokens, (one) => {
      const what = one.name === "session" ? say("account.session") : one.name;
      return row(what, facts(one.is_current && say("account.this_one"), one.user !== user && say("account.speaks_for_you", { user: one.user }), pieces("common.since", { time: moment(one.created_at) }), one.expires_at && pieces("account.until_then", { time: moment(one.expires_at) })),
        remover(say("account.end"), { what }, "revoke_own_token", { token_id: one.token_id }));
    });
    fill(memories, known.memories, (one) => row(one.content, moment(one.created_at), remover(say("common.forget"), { what: one.content }, "delete_memory", { memory_id: one.id })), say("account.nothing"));
  }

  /** Imports the chosen file, and shows how far it is. */
  async function bringIn() {
    done.value = 0;
    state.replaceChildren(say("account.importing"), " ", done);
    try {
      toast(await upload(chosen.files[0], (part) => { done.value = part; }));
    } finally {
      state.replaceChildren();
      // The same file may be chosen again.
      chosen.value = "";
    }
  }

  async function rename([name]) {
    const named = await household.request("set_display_name", { display_name: name.trim() === user ? "" : name.trim() });
    toast(say("account.renamed", { name: named.display_name }));
  }

  async function changePassword([old, fresh]) {
    await household.request("change_password", { old_password: old, new_password: fresh });
    toast(say("account.password_changed"));
  }

  async function setQuietHours([from, until]) {
    const { quiet_hours: hours } = await household.request("set_quiet_hours", { quiet_hours: from && until ? `${from}-${until}` : null });
    const [begin, end] = hours?.split("-") ?? [];
    toast(hours ? say("account.quiet", { begin, end }) : say("account.no_quiet"));
  }

  /** The languages, each by its own name. */
  function languages() {
    const named = LANGUAGES.map((one) => [one, new Intl.DisplayNames(one, { type: "language" }).of(one)]);
    const chosen = h("select", { "aria-label": say("account.language"), onchange: () => tried(async () => {
      const { language } = await household.request("set_language", { language: chosen.value || null });
      adopt(language);
    }) }, options([["", say("account.language_of_browser")], ...named], household.identity.language ?? ""));
    return chosen;
  }

  function timeOf(label, value) {
    return h("label", label, h("input", { type: "time", value }));
  }

  function themes({ THEMES, kept, keepTheme }) {
    const chosen = h("select", { "aria-label": say("theme.title"), onchange: () => keepTheme(chosen.value) }, options(THEMES.map((name) => [name, say(`theme.${name}`)]), kept()));
    return chosen;
  }

  async function signOutEverywhere() {
    if (await sure(say("account.sign_out_everywhere_title"), say("account.sign_out_everywhere_text"), say("common.sign_out"))) await tried(() => household.request("sign_out_everywhere", {}));
  }

  async function deleteAccount([password]) {
    const name = await ask({ title: say("account.delete_title"), text: say("account.delete_text", { user }), value: "", action: say("common.delete"), danger: true });
    if (name === user) await household.request("delete_account", { password });
    else if (name !== null) throw new Error(say("account.not_your_name"));
  }

  function secret(label, autocomplete, minlength) {
    return h("label", label, h("input", { type: "password", autocomplete, minlength, required: true }), minlength && h("span.help", say("common.at_least", { count: minlength })));
  }

  function form(label, send, ...fields) {
    const button = h("button", { type: "submit", class: send === deleteAccount ? "danger" : "primary" }, label);
    const made = h("form", fields, button);
    made.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      const inputs = fields.map((field) => field.querySelector("input"));
      if (await tried(() => send(inputs.map((input) => input.value)))) for (const input of inputs) if (input.type === "password") input.value = "";
      button.disabled = false;
    });
    return made;
  }
}
