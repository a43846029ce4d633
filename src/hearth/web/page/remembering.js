// A memory by form: its text, and who sees it.

import { h } from "./dom.js";
import { dialogForm, field, readers } from "./forms.js";
import { say } from "./more.js";

/** Asks for a new memory, or changes one. Resolves to whether there is another one now. */
export async function edit(household, one) {
  const text = h("textarea", { rows: 4, maxlength: 4000, required: true, value: one?.content ?? "", placeholder: say("remembering.example") });
  // Whose it is says who sees it.
  const isOwn = !one || one.owner === household.identity.user;
  const who = isOwn && await readers(household, one?.audience ?? "private");
  return dialogForm({ title: one ? say("remembering.change") : say("remembering.add"), action: say("common.save"), send },
    field(say("remembering.text"), text), who && who.element);

  async function send() {
    const content = text.value.trim();
    const fields = { ...(content !== one?.content && { content }), ...(who && { audience: who.audience() }) };
    await (one ? household.request("update_memory", { memory_id: one.memory_id, ...fields }) : household.request("add_memory", fields));
  }
}
