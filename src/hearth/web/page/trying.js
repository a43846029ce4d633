// A test of a webhook account: a message through it, followed to the delivery of the reply.

import { h } from "./dom.js";
import { dialogForm } from "./forms.js";
import { pieces, say } from "./more.js";
import { sentence } from "./session.js";

/** How often it is asked how far the reply is. */
const EVERY = 500;

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
