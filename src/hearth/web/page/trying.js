// Adding a webhook account, and a test of one: a message through it, followed to the delivery
// of the reply.

import { h, copyButton } from "./dom.js";
import { dialogForm, field, readers, tick, ticks } from "./forms.js";
import { pieces, say } from "./more.js";
import { sentence, serverURL } from "./session.js";

/** How often it is asked how far the reply is. */
const EVERY = 500;

/** Asks for what an account needs, adds it, and shows once what the other program must know. */
export async function addAccount(household) {
  const text = (properties) => h("input", { autocomplete: "off", spellcheck: "false", required: true, ...properties });
  const name = text({ type: "text", maxlength: 64, pattern: "[\\w.\\-]+", autocapitalize: "none" });
  const url = text({ type: "url", placeholder: "http://127.0.0.1:8123/api/webhook/hearth" });
  const formats = ticks(say("trying.formats"), "accept", ["json", "form", "text", "get"].map((one) => [one, one.toUpperCase()]), ["json"]);
  const secret = tick(say("trying.with_secret"), { checked: true });
  const who = await readers(household, "household", undefined, undefined, ["household", "people"]);
  const incoming = () => `/webhook/${name.value.trim()}`;
  let made = null;
  const send = async () => {
    const audience = who.audience();
    const account = { incoming_path: incoming(), outgoing_url: url.value.trim(), accept: formats.chosen(), audience: Array.isArray(audience) ? [household.identity.user, ...audience] : audience };
    if (secret.firstChild.checked) account.secret = made = newSecret();
    await household.request("add_webhook_account", { name: name.value.trim(), account });
  };
  if (!await dialogForm({ title: say("trying.add_account"), action: say("common.add"), send }, field(say("common.name"), name), field(say("trying.url"), url), formats.element, secret, who.element)) return;
  const address = serverURL(incoming().slice(1)).href;
  const line = (label, value) => h("p", label, h("br"), h("code", value), " ", copyButton(() => value));
  await dialogForm({ title: say("trying.added", { name: name.value.trim() }) }, line(say("trying.send_to"), address), made && line(say("trying.secret_once"), made));
}

/** A secret that nobody guesses. */
const newSecret = () => Array.from(crypto.getRandomValues(new Uint8Array(24)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Sends the test, and shows how far it is until it is over or the dialog is closed. */
export async function tryAccount(household, name) {
  const steps = h("fieldset", { role: "status" });
  const step = (kind, ...words) => steps.append(h("p", { class: kind }, ...words));
  let isOver = false;
  const closed = dialogForm({ title: say("trying.title", { name }) }, steps).then(() => { isOver = true; });
  try {
    const { turn_id: turn, incoming_path: path } = await household.request("test_webhook_account", { name, send: true });
    step("", say("trying.accepted", { path }));
    while (!isOver) {
      const { deliveries } = await household.request("list_deliveries", { limit: 50 });
      const found = deliveries.find((one) => one.turn_id === turn && (one.state === "delivered" || one.last_error));
      if (found) {
        isOver = true;
        told(found);
      } else {
        await new Promise((resolve) => setTimeout(resolve, EVERY));
      }
    }
  } catch (error) {
    step("problem", error.message);
  }
  await closed;

  function told(one) {
    if (one.state === "delivered") return step("good", say("trying.delivered"));
    step("problem", say("trying.failed", { problem: sentence(one.last_error) }));
    step("quiet", ...pieces("trying.again", { link: h("a", { href: `#/c/${one.conversation_id}`, onclick: ({ target }) => target.closest("dialog").close() }, say("common.conversation")) }));
  }
}
