// Users and tokens, for admins.

import { h, card, complain, facts, lazily, moment, ask, copyButton, iconButton, options, rowList } from "./dom.js";
import { pageAddress, showLink } from "./link.js";
import { changes, fill, onlyTools, row } from "./list.js";
import { count, listed, locale, pieces, say } from "./more.js";

const ROLES = ["viewer", "user", "admin"].map((role) => [role, say(`people.role.${role}`), say(`people.role_means.${role}`)]);
const forOne = lazily(() => import("./person.js"));
const NUMBER = new Intl.NumberFormat(locale);

/** The page. */
export async function show(household) {
  const users = rowList();
  const tokens = rowList();
  const secret = h("p", { role: "status" });
  const { tried, remover, watch } = changes(household, draw);
  await draw();
  const meanings = ROLES.map(([role, , meaning]) => [role, meaning]);
  const name = h("input", { type: "text", required: true, maxlength: 64, autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
  const display = h("input", { type: "text", maxlength: 64, autocomplete: "off" });
  const password = h("input", { type: "password", minlength: 8, autocomplete: "new-password" });
  const role = h("select", options(meanings, "user"));
  const child = h("input", { type: "checkbox" });
  const purpose = h("input", { type: "text", required: true, maxlength: 64, autocomplete: "off" });
  const owner = h("select", options(meanings));
  return { close: watch("people"), element: h("div.page",
    card(say("app.page.people"), users, h("h2", say("people.add")),
      form(say("common.add"), add, h("label", say("common.name"), name, h("span.help", say("people.name_help"))), h("label", say("people.display_name"), display), h("label", say("people.role"), role), h("label.check", child, h("span", say("people.child"), h("br"), h("span.help", say("people.child_help")))),
        h("label", say("common.password"), password, h("span.help", say("people.password_help"))))),
    card(say("people.tokens"), h("p.help", say("people.tokens_help")), tokens,
      form(say("people.create"), create, h("label", say("common.name"), purpose), h("label", say("people.role"), owner)), secret)) };

  async function add() {
    const person = { name: name.value.trim(), role: role.value, child: child.checked, ...(display.value.trim() && { display_name: display.value.trim() }) };
    if (password.value) await household.request("add_user", { ...person, password: password.value });
    else showLink(await household.request("invite_user", { ...person, url: pageAddress() }));
  }

  async function reset(name) {
    const sure = await ask({ title: say("people.new_password_title", { name }), text: say("people.new_password_text"), action: say("people.make_link") });
    if (sure) await tried(async () => showLink(await household.request("reset_password", { name, url: pageAddress() })));
  }

  async function create() {
    const { token } = await household.request("create_token", { name: purpose.value.trim(), role: owner.value });
    secret.replaceChildren(...pieces("people.copy_now", { token: h("code", token) }), " ", copyButton(() => token));
  }

  function form(label, send, ...fields) {
    const button = h("button", { type: "submit", class: "primary" }, label);
    const made = h("form", fields, button);
    made.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      await tried(send) && made.reset();
      button.disabled = false;
    });
    return made;
  }

  async function draw() {
    const [people, made, open, used] = await Promise.all([
      household.request("list_users"), household.request("list_tokens"), household.request("list_invitations"), household.request("get_usage", { by: "purpose", limit: 500 })]);
    const month = used.usage[0]?.month;
    const tokensOf = (name) => used.usage.filter((one) => one.month === month && one.person === name).reduce((sum, one) => sum + one.input + one.output, 0);
    fill(users, people.users, (one) => person(one, open.invitations.find((link) => link.name === one.name), tokensOf(one.name)));
    fill(tokens, made.tokens, (one) => row(h("strong", one.name), facts(one.user, say(`common.role.${one.role}`), onlyTools(one.tools),
      one.only && say("common.only", { what: one.only }), one.speaks_for && say("people.speaks_for", { people: one.speaks_for.join(", ") || say("people.removed_people") }), one.expires_at && pieces("people.expires", { time: moment(one.expires_at) })),
      dropper("revoke", one.name, say("people.revoke_text"), "revoke_token", { token_id: one.token_id })), say("people.no_tokens"));
  }

  /** All about one person: the role, what limits them, and what they have used. */
  function person({ name, ...one }, link, used) {
    const role = h("select", { "aria-label": say("people.role_of", { name }), onchange: () => change(name, one.role, role) }, options(ROLES, one.role));
    const most = one.limits?.monthly_tokens;
    return row([h("strong", one.display_name ?? name), " ", one.is_program && h("span.badge", say("people.program")), one.is_invited && h("span.badge", say("people.invited")), one.limits && h("span.badge", say("people.limited"))], [
      facts(...(link ? [say(link.is_reset ? "people.new_password" : "people.was_invited"), pieces("people.link_until", { time: moment(link.expires_at) })] : [one.display_name !== name && name, pieces("common.since", { time: moment(one.created_at) })]), ...limits(one.limits)),
      used || most ? h("span.bars", h("span", say("people.this_month")), h("progress", { max: String(most ?? Math.max(used, 1)), value: String(used), "aria-label": say("people.used_by", { name }) }),
        h("span", most ? count("people.used_of", most, { used: NUMBER.format(used) }) : count("common.tokens", used))) : null].flat().filter(Boolean),
      h("span.row.wrap", role,
        link && dropper("revoke", name, say(link.is_reset ? "people.revoke_link" : "people.revoke_invitation"), "revoke_invitation", { name }),
        h("span.row", iconButton("edit", say("person.settings_of", { name }), say("person.settings"), () => setting("edit", { name, ...one })),
        !one.is_program && iconButton("reminders", say("person.phone_of", { name }), say("person.phone"), () => setting("editPhone", { name, ...one })),
        !one.is_program && iconButton("key", say("people.new_password_for", { name }), say("people.new_password"), () => reset(name)),
        !(one.is_invited && link) && dropper("remove", name, () => belongings(name), "remove_user", { name }))));
  }

  /** Asks for what an admin sets for a person. */
  function setting(what, one) {
    forOne(({ [what]: ask }) => ask(household, one).then((isSaved) => isSaved && draw()).catch(complain));
  }

  async function change(name, was, role) {
    const sure = await ask({ title: say(`people.make.${role.value}`, { name }), text: say("people.make_text"), action: say("common.change") });
    if (!sure || !await tried(() => household.request("set_role", { name, role: role.value }))) role.value = was;
  }

  /** What ends something, by its name: `deed` is a key of `people.deed`. */
  function dropper(deed, name, text, type, fields) {
    return remover(say(`people.deed.${deed}`), { label: say(`people.deed_of.${deed}`, { name }), title: say(`people.deed_sure.${deed}`, { name }), text }, type, fields);
  }

  /** What goes with a person, and what stays. */
  async function belongings(name) {
    const had = await household.request("get_belongings", { name });
    const all = (key, pairs) => {
      const things = pairs.filter(([of]) => had[of]).map(([of, label]) => `${label} (${NUMBER.format(had[of])})`);
      return things.length && say(key, { things: listed(things) });
    };
    const talks = say("conversations.conversations");
    const notes = say("app.page.memories");
    const kept = [["private_conversations", talks], ["private_memories", notes], ["files", say("people.files")], ["schedules", say("app.page.reminders")], ["calendars", say("app.page.calendars")], ["tokens", say("people.tokens")]];
    return [all("people.goes", kept), all("people.stays", [["shared_conversations", talks], ["shared_memories", notes]])].filter(Boolean).join(" ") || say("people.nothing_goes");
  }

  /** What limits a person, in short. */
  function limits(known) {
    return [known?.tools && count("people.tools", known.tools.length), known?.permission_mode && say(`person.mode_${known.permission_mode}`), known?.instructions && say("people.own_instructions")];
  }
}
