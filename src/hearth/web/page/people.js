// Users and tokens, for admins.

import { h, card, moment, ask, copyButton, iconButton, options, rowList } from "./dom.js";
import { pageAddress, showLink } from "./link.js";
import { changes, fill, row } from "./list.js";

const ROLES = [["viewer", "Viewer: read-only"], ["user", "User: can chat"], ["admin", "Admin: can do everything"]];

/** The page. */
export async function show(household) {
  const users = rowList();
  const links = rowList();
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
    card("People", users, links, h("h2", "Add a person"),
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
    const [people, made, open] = await Promise.all(["list_users", "list_tokens", "list_invitations"].map((type) => household.request(type)));
    fill(users, people.users, ({ name, display_name: display, ...one }) => row(h("strong", display), [display !== name && `${name} · `, one.role, one.is_invited ? " · invited " : " · since ", moment(one.created_at), limits(one.limits)],
      iconButton("key", `New password for ${name}`, "New password", () => reset(name)),
      dropper("Remove", name, "All reminders and tokens are deleted for good, and the conversations and memories that nobody else sees. Those that were shared stay, without an owner.", "remove_user", { name })));
    fill(links, open.invitations, ({ name, is_reset: isReset, expires_at: until }) => row(h("strong", name), [isReset ? "New password" : "Invited", " · link works until ", moment(until)],
      dropper("Revoke", name, isReset ? "The link will not work any more." : "The link will not work any more, and the person is removed.", "revoke_invitation", { name })));
    fill(tokens, made.tokens, (one) => row(h("strong", one.name), [`${one.user} · ${one.role}`, one.tools && ` · only ${one.tools.join(", ") || "no tools"}`,
      one.only && ` · only ${one.only}`, one.speaks_for && ` · speaks for ${one.speaks_for.join(", ") || "people who are removed"}`, one.expires_at && [" · expires ", moment(one.expires_at)]].flat(),
      dropper("Revoke", one.name, "Open connections are closed immediately.", "revoke_token", { token_id: one.token_id })), "There are no tokens.");
  }

  function dropper(action, name, text, type, fields) {
    return remover(action, { label: `${action} ${name}`, title: `${action} ${name}?`, text }, type, fields);
  }

  /** The limits of a person, in short. */
  function limits(known) {
    const parts = [known?.tools && `${known.tools.length} tools`, known?.monthly_tokens && `${known.monthly_tokens} tokens a month`, known?.instructions && "instructions"].filter(Boolean);
    return known && ` · limited${parts.length ? `: ${parts.join(", ")}` : ""}`;
  }
}
