// Who sees a conversation or a memory: in words, and as an icon.

import { complain, h, icon, lazily, called } from "./dom.js";
import { listed, say } from "./words.js";

const sharing = lazily(() => import("./sharing.js"));
const ICON = { private: "lock", household: "home" };

/** Who sees it, in words. */
export function readers({ audience, owner }, me) {
  if (audience === "household") return say("audience.household");
  const seers = [owner ?? me, ...(audience === "private" ? [] : audience)];
  const others = listed(seers.filter((name) => name !== me).map(called));
  if (!others) return say("audience.only_you");
  if (seers.includes(me)) return say("audience.you_and", { people: others });
  return say(seers.length === 1 ? "audience.only_one" : "audience.only", { people: others });
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
  const label = h("span.names", Array.isArray(conversation.audience) ? [conversation.owner, ...conversation.audience].filter((name) => name !== me).map(called).join(", ") : conversation.audience === "household" ? say("audience.to_household") : say("audience.private"));
  const mark = icon(ICON[conversation.audience] ?? "people");
  if (conversation.owner !== me || !household.maySend) return h("span.audience.row", { title: words }, mark, label, h("span.unseen", words));
  return h("button.plain.audience", { title: say("audience.change", { readers: words }), "aria-label": say("audience.change_from", { readers: words, now: label.textContent }), onclick: () => sharing(({ share }) => share(household, conversation).catch(complain)) }, mark, label);
}
