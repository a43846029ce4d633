// Who may sign in, and with which tokens. For admins.

import { h, card, icon, moment, ask, toast, copyButton } from "./dom.js";

const ROLES = [["viewer", "Viewer: reads along"], ["user", "User: reads and chats"], ["admin", "Admin: everything"]];

/** The page. */
export async function show(household) {
  const request = (type, fields) => household.connection.request(type, fields);
  const users = h("ul", { class: "rows" });
  const tokens = h("ul", { class: "rows" });
  const secret = h("p", { role: "status" });
  await draw();
  const name = h("input", { type: "text", required: true, maxlength: 64, autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
  const password = h("input", { type: "password", required: true, minlength: 8, autocomplete: "new-password" });
  const role = h("select", {}, ROLES.map(([value, label]) => h("option", { value, selected: value === "user" }, label)), h("option", { value: "" }, "As it is: set a new password"));
  const purpose = h("input", { type: "text", required: true, maxlength: 64, autocomplete: "off" });
  const owner = h("select", {}, ROLES.map(([value, label]) => h("option", { value }, label)));
  return { element: h("div", { class: "page" },
    card("People", users, h("h2", {}, "Add somebody"),
      form("Save", () => request(role.value ? "add_user" : "set_password", { name: name.value.trim(), password: password.value, role: role.value }),
        h("label", {}, "Name", name), h("label", {}, "Password", password, h("span", { class: "help" }, "At least 8 characters")), h("label", {}, "Role", role))),
    card("Tokens", h("p", { class: "help" }, "A token signs a program or a display in, as you and with this role."), tokens,
      form("Create", create, h("label", {}, "What it is for", purpose), h("label", {}, "Role", owner)), secret)) };

  async function create() {
    const { token } = await request("create_token", { name: purpose.value.trim(), role: owner.value });
    secret.replaceChildren("It is shown only now: ", h("code", {}, token), " ", copyButton(() => token));
  }

  function form(label, send, ...fields) {
    const button = h("button", { type: "submit", class: "primary" }, label);
    const made = h("form", {}, fields, button);
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
      toast(error.message);
      return false;
    }
  }

  async function draw() {
    const [people, made] = await Promise.all([request("list_users"), request("list_tokens")]);
    users.replaceChildren(...people.users.map((one) => row(one.name, [one.role, " · since ", moment(one.created_at)],
      "Remove", "remove_user", { name: one.name })));
    tokens.replaceChildren(...made.tokens.map((one) => row(one.name, [`${one.user} · ${one.role}`, one.expires_at && [" · until ", moment(one.expires_at)]].flat(),
      "Revoke", "revoke_token", { token_id: one.token_id })));
    if (!made.tokens.length) tokens.append(h("li", {}, "There are none."));
  }

  function row(title, about, action, type, fields) {
    const drop = async () => {
      if (await ask({ title: `${action} ${title}?`, text: "Open connections are closed at once.", action, danger: true })) await tried(() => request(type, fields));
    };
    return h("li", {}, h("div", { class: "grow" }, h("strong", {}, title), h("p", { class: "quiet small" }, about)),
      h("button", { class: "icon-button", "aria-label": `${action} ${title}`, title: action, onclick: drop }, icon("trash")));
  }
}
