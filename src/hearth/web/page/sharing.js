// The dialog in which the owner of a conversation says who sees it. Loaded when opened.

import { h } from "./dom.js";
import { dialogForm, readers } from "./forms.js";
import { say } from "./more.js";

/** Asks who may see a conversation. */
export async function share(household, { id, audience }) {
  const who = await readers(household, audience, null, (choice) => say(`sharing.means.${choice}`));
  const earlier = h("p.quiet", { hidden: true }, say("sharing.earlier"));
  household.read("get_messages", { conversation_id: id, limit: 1, hidden: true })
    .then(({ messages }) => { earlier.hidden = !messages.length; }, () => {});
  await dialogForm({ title: say("sharing.title"), action: say("common.save"), send: () => household.share(id, who.audience()) }, who.element, earlier);
}
