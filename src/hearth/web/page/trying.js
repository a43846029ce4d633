// A test of a webhook account: a message through it, followed to the delivery of the reply.

import { h } from "./dom.js";
import { dialogForm } from "./forms.js";
import { pieces, say } from "./more.js";
import { sentence } from "./session.js";

/** Sends the test, and shows how far it is until it is over or the dialog is closed. */
export async function tryAccount(household, name) {
  const steps = h("fieldset", { role: "status" });
  const step = (kind, ...words) => steps.append(h("p", { class: kind }, ...words));
  let isOver = false;
  household.addEventListener("delivery", follow);
  let turn = null;
  const shown = dialogForm({ title: say("trying.title", { name }) }, steps);
  try {
    const sent = await household.request("test_webhook_account", { name, send: true });
    turn = sent.turn_id;
    step("", say("trying.accepted", { path: sent.incoming_path }));
    await follow();
  } catch (error) {
    step("problem", error.message);
  }
  await shown;
  household.removeEventListener("delivery", follow);

  async function follow() {
    if (!turn || isOver) return;
    const { deliveries } = await household.request("list_deliveries", { limit: 20 }).catch(() => ({ deliveries: [] }));
    const found = deliveries.find((one) => one.turn_id === turn);
    if (!found || isOver || !(found.state === "delivered" || found.last_error)) return;
    isOver = true;
    if (found.state === "delivered") return step("good", say("trying.delivered"));
    step("problem", say("trying.failed", { problem: sentence(found.last_error) }));
    step("quiet", pieces("trying.again", { link: h("a", { href: `#/c/${found.conversation_id}`, onclick: ({ target }) => target.closest("dialog").close() }, say("common.conversation")) }));
  }
}
