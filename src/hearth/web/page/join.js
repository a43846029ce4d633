// What a link leads to by which a person chooses a password.

import { h, sign } from "./dom.js";
import { useLink } from "./session.js";
import { say } from "./more.js";

/** Lets the person with the link choose a password; then calls `start`. */
export async function join(root, secret, start, showSignIn) {
  let invited;
  try {
    invited = await useLink(secret);
  } catch (error) {
    return showSignIn(error.message);
  }
  document.title = `${say("join.title")} · Hearth`;
  const problem = h("p.problem", { role: "alert", id: "problem" });
  const field = (label, more) => h("input", { type: "password", autocomplete: "new-password", minlength: 8, required: true, "aria-label": label, "aria-describedby": "problem", ...more });
  const password = field(say("common.password"), { autofocus: true });
  const again = field(say("join.password_again"));
  const stay = h("input", { type: "checkbox", checked: true });
  const button = h("button", { type: "submit", class: "primary" }, say("common.sign_in"));
  const form = h("form", sign(64), h("h1", invited.is_reset ? say("join.new_password") : say("join.welcome", { name: invited.name })),
    h("p.quiet", say("join.choose")),
    h("label", say("join.your_name"), h("input", { value: invited.name, readonly: true, autocomplete: "username" })),
    h("label", say("common.password"), password, h("span.help", say("common.at_least", { count: 8 }))), h("label", say("join.once_more"), again),
    h("label.check", stay, say("common.stay_signed_in")), problem, button);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (password.value !== again.value) {
      problem.textContent = say("join.no_match");
      return again.select();
    }
    button.disabled = true;
    try {
      await useLink(secret, password.value, stay.checked);
      start();
    } catch (error) {
      problem.textContent = error.message;
      button.disabled = false;
    }
  });
  root.replaceChildren(h("main.sign-in", form));
  password.focus();
}
