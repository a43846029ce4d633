// The list of conversations: search, rename, delete, and loading more on scrolling.

import { audienceIcon } from "./audience.js";
import { h, icon, moment, ask, iconButton, complain, roving } from "./dom.js";
import { locale, say } from "./words.js";

const MONTH = new Intl.DateTimeFormat(locale, { month: "long", year: "numeric" });

/** The list with its search field. `go` opens a conversation, or a new one for null. */
export function conversations(household, go) {
  const field = h("input", { type: "search", placeholder: say("common.search"), "aria-label": say("conversations.search"), autocomplete: "off", enterkeyhint: "search" });
  const list = h("div.list", { role: "group", "aria-label": say("conversations.conversations") });
  const links = () => [...list.querySelectorAll("a, .put-away")];
  const refresh = roving(list, links, (link) => [...link.parentElement.querySelectorAll(".actions button")]);
  const put = h("button.plain.put-away", { onclick: () => household.showArchived(!household.showsArchived).then(() => { put.textContent = household.showsArchived ? say("conversations.hide_archived") : say("conversations.show_archived"); }, complain) }, say("conversations.show_archived"));
  const scroller = h("div.list-scroll", list);
  let found = null;
  let asked = 0;
  let loading = false;

  scroller.addEventListener("scroll", () => {
    if (!field.value && scroller.scrollTop + scroller.clientHeight > scroller.scrollHeight - 300) more();
  });
  field.addEventListener("input", () => {
    const number = ++asked;
    found = null;
    draw();
    if (field.value.trim().length < 2) return;
    setTimeout(() => { if (number === asked) find(number); }, 200);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      field.value = "";
      asked += 1;
      found = null;
      draw();
      field.blur();
      event.stopPropagation();
    } else if (event.key === "ArrowDown" || event.key === "Enter") {
      const first = list.querySelector("a");
      if (first && event.key === "Enter") first.click();
      else first?.focus();
      event.preventDefault();
    }
  });
  list.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" || event.target !== links()[0]) return;
    field.focus();
    event.preventDefault();
  });
  const search = h("div.search", icon("search"), field, h("kbd", "Ctrl K"));
  household.addEventListener("conversations", draw);
  household.addEventListener("approvals", draw);
  draw();

  return { element: h("div.conversations", search, scroller), field, draw };

  async function more() {
    if (loading || !household.cursor) return;
    loading = true;
    try {
      await household.loadMoreConversations();
    } catch (error) {
      complain(error);
    }
    loading = false;
  }

  async function find(number) {
    try {
      const { messages } = await household.request("search_messages", { query: field.value.trim(), limit: 30 });
      if (number !== asked) return;
      found = messages;
    } catch (error) {
      if (number !== asked) return;
      found = [];
      complain(error);
    }
    draw();
  }

  function draw() {
    search.hidden = household.isGuest;
    const words = field.value.trim().toLowerCase();
    const matching = household.list().filter((one) => !words || one.title.toLowerCase().includes(words));
    const focused = list.contains(document.activeElement) ? document.activeElement.closest("li")?.dataset.id : null;
    const groups = [];
    for (const one of matching) {
      const name = words ? say("conversations.conversations") : one.pinned ? say("conversations.pinned") : period(one.updated_at);
      if (groups.at(-1)?.name !== name) groups.push({ name, rows: [] });
      groups.at(-1).rows.push(row(one));
    }
    // The server knows the titles that are not loaded.
    const titles = found?.filter((hit) => !hit.message_id && !matching.some((one) => one.id === hit.conversation_id)) ?? [];
    if (words && titles.length && !groups.length) groups.push({ name: say("conversations.conversations"), rows: [] });
    if (words) groups[0]?.rows.push(...titles.map(foundRow));
    const hits = found?.filter((hit) => hit.message_id);
    if (words && hits?.length) groups.push({ name: say("conversations.messages"), rows: hits.map(foundRow) });
    const empty = words
      ? (!found && words.length > 1 ? say("conversations.searching") : !matching.length && found && !found.length && say("conversations.no_results"))
      : !matching.length && (household.isGuest ? say("conversations.none_shared") : say("conversations.none"));
    list.replaceChildren(
      ...groups.flatMap(({ name, rows }) => [h("p.period", { "aria-hidden": "true" }, name), h("ul", { "aria-label": name }, rows)]),
      ...(empty ? [h("p.empty", empty)] : []),
      ...(words || household.isGuest || (!matching.length && !household.showsArchived) ? [] : [put]));
    refresh(list.querySelector("[aria-current]"));
    if (focused) list.querySelector(`li[data-id="${CSS.escape(focused)}"] a`)?.focus();
  }

  function row(one) {
    const isOpen = household.open === one.id;
    const account = one.channel?.startsWith("webhook:") ? one.channel.slice(8) : null;
    const isUnread = household.unread.has(one.id);
    const isBusy = household.turnsOf(one.id).some((turn) => turn.state === "running");
    const waits = [...household.approvals.values()].some((other) => other.conversation_id === one.id);
    const item = h("li", { class: `${isOpen ? "open" : ""} ${isUnread ? "unread" : ""}` },
      h("a", { href: `#/c/${one.id}`, "aria-current": isOpen ? "page" : null, onclick: (event) => { event.preventDefault(); go(one.id); } },
        audienceIcon(one, household.identity?.user),
        h("span.title", { dir: "auto" }, one.title || say("conversations.untitled")),
        isUnread && h("span.unseen", ` ${say("conversations.unread")}`),
        account && h("span.badge", account),
        one.archived && h("span.badge", say("conversations.archived")),
        h("span.quiet.small", waits ? say("conversations.asks_you") : isBusy ? say("conversations.writing") : moment(one.updated_at))),
      household.mayChange(one) && h("span.actions",
        iconButton("edit", say("conversations.rename_this", { title: one.title }), say("common.rename"), () => rename(household, one)),
        iconButton("trash", say("conversations.delete_this", { title: one.title }), say("common.delete"), () => remove(household, one, go))));
    item.dataset.id = one.id;
    return item;
  }

  function foundRow(hit) {
    const id = hit.conversation_id;
    return h("li.found",
      h("a", { href: `#/c/${id}${hit.message_id ? `/${hit.message_id}` : ""}`, onclick: (event) => { event.preventDefault(); go(id, hit.message_id); } },
        h("span.snippet", { dir: "auto" }, marked(hit.excerpt, field.value)),
        hit.message_id && h("span.quiet.small", hit.title, " · ", moment(hit.timestamp))));
  }
}

function marked(text, query) {
  const words = query.split(/[^\p{L}\p{N}]+/u).filter((word) => word.length > 2);
  if (!words.length) return [text];
  const parts = text.split(new RegExp(`(?<![\\p{L}\\p{N}])((?:${words.join("|")})[\\p{L}\\p{N}]*)`, "iu"));
  return parts.map((part, place) => place % 2 ? h("mark", part) : part);
}

/** The heading above the conversations of a day, a week or a month. */
function period(timestamp) {
  const date = new Date(timestamp);
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(date).setHours(0, 0, 0, 0)) / 86400000);
  return days <= 0 ? say("common.today") : days === 1 ? say("common.yesterday") : days < 8 ? say("conversations.last_week") : days < 31 ? say("conversations.last_month") : MONTH.format(date);
}

/** Asks for a new title. */
export async function rename(household, conversation) {
  const title = await ask({ title: say("conversations.rename_title"), value: conversation.title, action: say("common.rename") });
  if (!title || title === conversation.title) return;
  household.rename(conversation.id, title).catch(complain);
}

/** Deletes a conversation after a confirmation. */
export async function remove(household, conversation, go) {
  const sure = await ask({ title: say("conversations.delete_title"), text: say("conversations.delete_text", { title: conversation.title }), action: say("common.delete"), danger: true });
  if (!sure) return;
  try {
    await household.remove(conversation.id);
    if (household.open === conversation.id) go(null);
  } catch (error) {
    complain(error);
  }
}
