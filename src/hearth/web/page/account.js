// A person's own account.

import { h, card, moment, ask, toast, rowList, called } from "./dom.js";
import { changes, fill, row, sure } from "./list.js";

/** The page. */
export async function show(household) {
  const user = household.identity.user;
  const tokens = rowList();
  const memories = rowList();
  const { tried, remover } = changes(household, draw);
  const { download, mayUpload, upload } = await import("./exporting.js");
  const chosen = h("input", { type: "file", hidden: true, "aria-label": "File to import", onchange: () => chosen.files[0] && tried(async () => toast(await upload(chosen.files[0]))) });
  const [push, theme] = await Promise.all([household.maySend && import("./push.js"), import("./theme.js").then(({ themeCard }) => themeCard()), draw()]);
  return { element: h("div.page",
    push && push.pushCard(household),
    card("Name", h("p.help", `What others and the assistant call you. You sign in as ${user}.`),
      form("Save", rename, h("label", "Name", h("input", { type: "text", maxlength: 64, value: called(user) })))),
    theme,
    household.maySend && card("Quiet hours", h("p.help", "When your phones and browsers are quiet: reminders come without a sound, and the rest comes afterwards. Leave both empty for what your household has set."),
      form("Set", setQuietHours, timeOf("From"), timeOf("Until"))),
    card("Password", form("Change", changePassword, secret("Current password", "current-password"), secret("New password", "new-password", 8))),
    card("Another device", h("p.help", "The address of this page as a QR code, for a phone or a tablet."),
      h("button", { onclick: () => tried(async () => (await import("./link.js")).showAddress(household)) }, "Show the code")),
    card("Signed in", h("p.help", "Your sessions, and the tokens of your programs."), tokens,
      h("button", { onclick: signOutEverywhere }, "Sign out everywhere")),
    household.maySend && card("What is remembered about you", memories),
    card("Your data", h("p.help", "All that is yours as one file: conversations with their files, memories, reminders. What you import, also from ChatGPT or Claude, is private to you."),
      h("button", { onclick: () => tried(() => download(household, `hearth-${user}.jsonl`)) }, "Export"),
      household.maySend && mayUpload() && h("button", { onclick: () => chosen.click() }, "Import"), chosen),
    card("Delete account", h("p.help", "Deletes you and everything that is yours, also what you shared: conversations, memories, reminders, tokens. It cannot be undone."),
      form("Delete my account", deleteAccount, secret("Password", "current-password")))) };

  async function draw() {
    const [own, known] = await Promise.all([household.request("list_own_tokens"), household.maySend ? household.request("list_memories", { own: true }) : { memories: [] }]);
    fill(tokens, own.tokens, (one) => {
      const what = one.name === "session" ? "Session" : one.name;
      return row(what, [one.is_current && "this one · ", one.user !== user && `of ${one.user}, speaks for you · `, "since ", moment(one.created_at), one.expires_at && [" · until ", moment(one.expires_at)]].flat(),
        remover("End", { what }, "revoke_own_token", { token_id: one.token_id }));
    });
    fill(memories, known.memories, (one) => row(one.content, moment(one.created_at), remover("Forget", { what: one.content }, "delete_memory", { memory_id: one.id })), "Nothing.");
  }

  async function rename([name]) {
    await household.request("set_display_name", { display_name: name.trim() === user ? "" : name.trim() });
    await household.nameThem();
    toast(`You are called ${called(user)} now.`);
  }

  async function changePassword([old, fresh]) {
    await household.request("change_password", { old_password: old, new_password: fresh });
    toast("Your password is changed. Your other sessions have ended.");
  }

  async function setQuietHours([from, until]) {
    const { quiet_hours: hours } = await household.request("set_quiet_hours", { quiet_hours: from && until ? `${from}-${until}` : null });
    toast(hours ? `Quiet from ${hours.replace("-", " to ")}.` : "There are no quiet hours.");
  }

  function timeOf(label) {
    return h("label", label, h("input", { type: "time" }));
  }

  async function signOutEverywhere() {
    if (await sure("Sign out everywhere?", "All your sessions end, this one too. Tokens of programs stay.", "Sign out")) await tried(() => household.request("sign_out_everywhere", {}));
  }

  async function deleteAccount([password]) {
    const name = await ask({ title: "Delete your account?", text: `Type your name, ${user}, to delete everything that is yours.`, value: "", action: "Delete", danger: true });
    if (name === user) await household.request("delete_account", { password });
    else if (name !== null) throw new Error("That is not your name. Nothing was deleted.");
  }

  function secret(label, autocomplete, minlength) {
    return h("label", label, h("input", { type: "password", autocomplete, minlength, required: true }), minlength && h("span.help", `At least ${minlength} characters`));
  }

  function form(label, send, ...fields) {
    const button = h("button", { type: "submit", class: send === deleteAccount ? "danger" : "primary" }, label);
    const made = h("form", fields, button);
    made.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      await tried(() => send(fields.map((field) => field.querySelector("input").value))) && made.reset();
      button.disabled = false;
    });
    return made;
  }
}
