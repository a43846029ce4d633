// Who sees a conversation or a memory: in words, and as an icon.

import { complain, h, icon, lazily, called } from "./dom.js";

const sharing = lazily(() => import("./sharing.js"));
const ICON = { private: "lock", household: "home" };

/** Who sees it, in words. */
export function readers({ audience, owner }, me) {
  if (audience === "household") return "Everybody in the household sees this";
  const isMine = !owner || owner === me;
  const people = [isMine ? "you" : called(owner), ...(audience === "private" ? [] : audience.map((name) => (name === me ? "you" : called(name))))];
  return `Only ${people.join(", ").replace(/, ([^,]*)$/, " and $1")} ${people.length === 1 && !isMine ? "sees" : "see"} this`;
}

/** An icon that tells who sees it; nothing where the server does not say. */
export function audienceIcon(thing, me) {
  if (!thing?.audience) return null;
  const words = readers(thing, me);
  return h("span.audience", { title: words }, icon(ICON[thing.audience] ?? "people"), h("span.unseen", words));
}

/** The control beside the title of a conversation: its owner changes who sees it. */
export function audienceControl(household, conversation) {
  if (!conversation?.audience) return null;
  const me = household.identity?.user;
  const words = readers(conversation, me);
  const label = h("span.names", Array.isArray(conversation.audience) ? [conversation.owner, ...conversation.audience].filter((name) => name !== me).map(called).join(", ") : conversation.audience === "household" ? "Household" : "Private");
  const mark = icon(ICON[conversation.audience] ?? "people");
  if (conversation.owner !== me || !household.maySend) return h("span.audience.row", { title: words }, mark, label, h("span.unseen", words));
  return h("button.plain.audience", { title: `${words}. Change it`, "aria-label": `${words}. Change it: ${label.textContent}`, onclick: () => sharing(({ share }) => share(household, conversation).catch(complain)) }, mark, label);
}
