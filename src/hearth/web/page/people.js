// Users and tokens, for admins.

import { h, card, moment, ask, copyButton, iconButton, options, complain } from "./dom.js";

const ROLES = [["viewer", "Viewer: read-only"], ["user", "User: can chat"], ["admin", "Admin: can do everything"]];

/** The page. */
export async function show(household) {
  const users = h("ul.rows");
  const tokens = h("ul.rows");
  const secret = h("p", { role: "status" });
  await draw();
  const name = h("input", { type: "text", required: true, maxlength: 64, autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
  const password = h("input", { type: "password", required: true, minlength: 8, autocomplete: "new-password" });
  const role = h("select", options(ROLES, "user"), h("option", { value: "" }, "Unchanged: only set a new password"));
  const purpose = h("input", { type: "text", required: true, maxlength: 64, autocomplete: "off" });
  const owner = h("select", options(ROLES));
  return { element: h("div.page",
    card("People", users, h("h2", "Add a person"),
      form("Save", () => household.request(role.value ? "add_user" : "set_password", { name: name.value.trim(), password: password.value, role: role.value }),
        h("label", "Name", name), h("label", "Password", password, h("span.help", "At least 8 characters")), h("label", "Role", role))),
    card("Tokens", h("p.help", "A token lets a program or a display sign in as you, with this role."), tokens,
      form("Create", create, h("label", "Name", purpose), h("label", "Role", owner)), secret)) };

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

  async function tried(send) {
    try {
      await send();
      await draw();
      return true;
    } catch (error) {
      complain(error);
      return false;
    }
  }

  async function draw() {
    const [people, made] = await Promise.all([household.request("list_users"), household.request("list_tokens")]);
    users.replaceChildren(...people.users.map((one) => row(one.name, [one.role, " · since ", moment(one.created_at)],
      "Remove", "remove_user", { name: one.name })));
    tokens.replaceChildren(...made.tokens.map((one) => row(one.name, [`${one.user} · ${one.role}`, one.expires_at && [" · expires ", moment(one.expires_at)]].flat(),
      "Revoke", "revoke_token", { token_id: one.token_id })));
    if (!made.tokens.length) tokens.append(h("li", "There are no tokens."));
  }

  function row(title, about, action, type, fields) {
    const drop = async () => {
      if (await ask({ title: `${action} ${title}?`, text: "Open connections are closed immediately.", action, danger: true })) await tried(() => household.request(type, fields));
    };
    return h("li", h("div.grow", h("strong", title), h("p.quiet.small", about)),
      iconButton("trash", `${action} ${title}`, action, drop));
  }
}
