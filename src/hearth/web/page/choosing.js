// What people choose of a conversation: its model, its instructions, another answer, and
// what is deleted of it. Loaded when somebody does.

import { ask, complain, options } from "./dom.js";
import { say } from "./more.js";

/**
 * Asks for a model: one of those that the settings offer or, if they offer none, one that the
 * provider lists or an admin names. Resolves to null when cancelled.
 */
async function askModel(household, usual, { text, empty, value, ...more }) {
  const { config, isAdmin } = household;
  let models = config?.models ?? [];
  if (!models.length && isAdmin) ({ models } = await household.request("update_config", { config: {}, test: true }).catch(() => ({ models })));
  if (!models.length) return ask({ ...more, text: isAdmin ? `${text} ${say("choosing.name_of_provider")}` : text, value: isAdmin ? value : undefined });
  const names = [...new Set([...(empty ? [] : [usual]), ...models])].filter(Boolean).map((name) => [name, name]);
  return ask({ ...more, text, value, choices: options(empty ? [["", empty], ...names] : names, value) });
}

/** Asks for the model of another reply, and calls `answer` with it: null for the usual one. */
export async function chooseModel(household, id, answer) {
  const usual = household.conversations.get(id)?.model || household.config?.model || "";
  const name = await askModel(household, usual, { title: say("message.other_model"), text: say("choosing.kept"), value: usual, action: say("message.again") });
  if (name) answer(name === true || name === usual ? null : name);
}

/** Asks for the model of a conversation, and calls `use` with it. */
export async function nameModel(household, usual, use) {
  const name = await askModel(household, usual, { title: say("choosing.name_model"), text: say("choosing.name_model_about"), value: usual, action: say("choosing.use") });
  if (name) use(name);
}

/** The model that answers in a conversation. */
export async function setModel(household, { id, model = "" }) {
  const usual = household.config?.model;
  const value = await askModel(household, usual, { title: say("choosing.model_here"), text: say("choosing.model_text"), empty: say("choosing.usual", { model: usual }), value: model ?? "", action: say("common.save"), mayBeEmpty: true });
  if (value !== null) household.update(id, { model: value }).catch(complain);
}

/** What the assistant follows in a conversation. */
export async function setInstructions(household, { id, instructions }) {
  const value = await ask({ title: say("choosing.instructions"), text: say("choosing.instructions_text"), value: instructions ?? "", action: say("common.save"), lines: 5, mayBeEmpty: true });
  if (value !== null) household.update(id, { instructions: value }).catch(complain);
}

/** Deletes a message; `question` is the one that it answers, or it itself. */
export async function removeMessage(household, message, question) {
  const text = question?.versions?.length > 1
    ? say("choosing.delete_version")
    : say("choosing.delete_pair");
  const sure = await ask({ title: say("choosing.delete_title"), text, action: say("common.delete"), danger: true });
  if (sure) household.request("delete_message", { message_id: message.id }).catch(complain);
}
