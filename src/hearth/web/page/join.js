// What a link leads to by which a person chooses a password.

import { h, sign } from "./dom.js";
import { useLink } from "./session.js";

/** Lets the person with the link choose a password; then calls `start`. */
export async function join(root, secret, start, showSignIn) {
  let invited;
  try {
    invited = await useLink(secret);
  } catch (error) {
    return showSignIn(error.message);
  }
  document.title = "Choose a password · Hearth";
  const problem = h("p.problem", { role: "alert", id: "problem" });
  const field = (label, more) => h("input", { type: "password", autocomplete: "new-password", minlength: 8, required: true, "aria-label": label, "aria-describedby": "problem", ...more });
  const password = field("Password", { autofocus: true });
  const again = field("Password, once more");
  const stay = h("input", { type: "checkbox", checked: true });
  const button = h("button", { type: "submit", class: "primary" }, "Sign in");
  const form = h("form", sign(64), h("h1", invited.is_reset ? "A new password" : `Welcome, ${invited.display_name}`),
    h("p.quiet", "Choose a password for Hearth, your home’s AI assistant. This link works only once."),
    h("label", "Your name for signing in", h("input", { value: invited.name, readonly: true, autocomplete: "username" })),
    h("label", "Password", password, h("span.help", "At least 8 characters")), h("label", "Once more", again),
    h("label.check", stay, "Stay signed in on this device"), problem, button);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (password.value !== again.value) {
      problem.textContent = "The passwords do not match.";
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
