// Users and tokens, for admins.

import { h, card, moment, ask, copyButton, iconButton, options, rowList } from "./dom.js";
import { pageAddress, showLink } from "./link.js";
import { changes, fill, row } from "./list.js";

const ROLES = [["viewer", "Viewer: read-only"], ["user", "User: can chat"], ["admin", "Admin: can do everything"]];
const NUMBER = new Intl.NumberFormat();

/** The page. */
export async function show(household) {
  const users = rowList();
  const tokens = rowList();
  const secret = h("p", { role: "status" });
  const { tried, remover, watch } = changes(household, draw);
  await draw();
  const name = h("input", { type: "text", required: true, maxlength: 64, autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
  const display = h("input", { type: "text", maxlength: 64, autocomplete: "off" });
  const password = h("input", { type: "password", minlength: 8, autocomplete: "new-password" });
  const role = h("select", options(ROLES, "user"));
  const child = h("input", { type: "checkbox" });
  const purpose = h("input", { type: "text", required: true, maxlength: 64, autocomplete: "off" });
  const owner = h("select", options(ROLES));
  return { close: watch("people"), element: h("div.page",
    card("People", users, h("h2", "Add a person"),
      form("Add", add, h("label", "Name", name, h("span.help", "To sign in with: letters and digits")), h("label", "What people call them", display), h("label", "Role", role), h("label.check", child, "A child: with limits"),
        h("label", "Password", password, h("span.help", "At least 8 characters. Leave it empty to get a link, with which they choose their own.")))),
    card("Tokens", h("p.help", "A token lets a program or a display sign in as you, with this role."), tokens,
      form("Create", create, h("label", "Name", purpose), h("label", "Role", owner)), secret)) };

  async function add() {
    const person = { name: name.value.trim(), role: role.value, child: child.checked, ...(display.value.trim() && { display_name: display.value.trim() }) };
    if (password.value) await household.request("add_user", { ...person, password: password.value });
    else showLink(await household.request("invite_user", { ...person, url: pageAddress() }));
  }

  async function reset(name) {
    const sure = await ask({ title: `New password for ${name}?`, text: "Makes a link that sets one. The old password works until then.", action: "Make a link" });
    if (sure) await tried(async () => showLink(await household.request("reset_password", { name, url: pageAddress() })));
  }

  async function create() {
    const { token } = await household.request("create_token", { name: purpose.value.trim(), role: owner.value });
    secret.replaceChildren("Copy it now. It will not be shown again: ", h("code", token), " ", copyButton(() => token));
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
    fill(tokens, made.tokens, (one) => row(h("strong", one.name), [`${one.user} · ${one.role}`, one.tools && ` · only ${one.tools.join(", ") || "no tools"}`,
      one.only && ` · only ${one.only}`, one.speaks_for && ` · speaks for ${one.speaks_for.join(", ") || "people who are removed"}`, one.expires_at && [" · expires ", moment(one.expires_at)]].flat(),
      dropper("Revoke", one.name, "Open connections are closed immediately.", "revoke_token", { token_id: one.token_id })), "There are no tokens.");
  }

  /** All about one person: the role, what limits them, and what they have used. */
  function person({ name, ...one }, link, used) {
    const role = h("select", { "aria-label": `Role of ${name}`, onchange: () => change(name, one.role, role) }, options(ROLES.map(([value, words]) => [value, words.split(":")[0]]), one.role));
    const most = one.limits?.monthly_tokens;
    return row([h("strong", one.display_name ?? name), " ", one.is_program && h("span.badge", "program"), one.is_invited && h("span.badge", "invited"), one.limits && h("span.badge", "limited")], [
      link ? [link.is_reset ? "New password" : "Invited", " · link works until ", moment(link.expires_at)] : [one.display_name !== name && `${name} · `, "since ", moment(one.created_at)], limits(one.limits),
      used || most ? h("span.bars", h("span", "This month"), h("progress", { max: String(most ?? Math.max(used, 1)), value: String(used), "aria-label": `Used by ${name} this month` }),
        h("span", most ? `${NUMBER.format(used)} of ${NUMBER.format(most)} tokens` : `${NUMBER.format(used)} tokens`)) : null].flat().filter(Boolean),
      h("span.row.wrap", role,
        link && dropper("Revoke", name, link.is_reset ? "The link will not work any more." : "The link will not work any more, and the person is removed.", "revoke_invitation", { name }),
        iconButton("edit", `Limits of ${name}`, "Limits", () => limit(name, one.limits ?? {})),
        !one.is_program && iconButton("key", `New password for ${name}`, "New password", () => reset(name)),
        !(one.is_invited && link) && dropper("Remove", name, "All reminders and tokens are deleted for good, and the conversations and memories that nobody else sees. Those that were shared stay, without an owner.", "remove_user", { name })));
  }

  /** Asks what limits a person. */
  function limit(name, known) {
    const tokens = h("input", { type: "number", min: 1, value: known.monthly_tokens ?? "", placeholder: "No limit" });
    const words = h("textarea", { rows: 4, maxlength: 10000, value: known.instructions ?? "", placeholder: "Such as: Answers for a nine year old." });
    const form = h("form", { method: "dialog" }, h("h2", `Limits of ${name}`),
      h("label", "Tokens a month", tokens), h("label", "Instructions to the assistant", words),
      h("div.row.end", h("button.plain", { onclick: () => dialog.close() }, "Cancel"), h("button", { type: "submit", class: "primary" }, "Save")));
    const dialog = h("dialog", { "aria-label": `Limits of ${name}` }, form);
    form.addEventListener("submit", () => tried(() => household.request("set_limits", { name, limits: { monthly_tokens: tokens.value ? Number(tokens.value) : null, instructions: words.value.trim() || null } })));
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }

  async function change(name, was, role) {
    const sure = await ask({ title: `Make ${name} ${role.value}?`, text: "Their sessions end, and they sign in again.", action: "Change" });
    if (!sure || !await tried(() => household.request("set_role", { name, role: role.value }))) role.value = was;
  }

  function dropper(action, name, text, type, fields) {
    return remover(action, { label: `${action} ${name}`, title: `${action} ${name}?`, text }, type, fields);
  }

  /** What limits a person, in short. */
  function limits(known) {
    const parts = [known?.tools && `${known.tools.length} tools`, known?.permission_mode && `tools: ${known.permission_mode}`, known?.instructions && "instructions of their own"].filter(Boolean);
    return parts.length ? ` · ${parts.join(", ")}` : null;
  }
}
