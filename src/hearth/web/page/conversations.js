// The list of conversations: search, rename, delete, and loading more on scrolling.

import { audienceIcon } from "./audience.js";
import { h, icon, moment, ask, iconButton, complain } from "./dom.js";

/** The list with its search field. `go` opens a conversation, or a new one for null. */
export function conversations(household, go) {
  const field = h("input", { type: "search", placeholder: "Search", "aria-label": "Search conversations (Ctrl+K)", autocomplete: "off", enterkeyhint: "search" });
  const list = h("ul.list", { "aria-label": "Conversations" });
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
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const links = [...list.querySelectorAll("a")];
    const next = links.indexOf(document.activeElement) + step;
    if (next < 0) field.focus();
    else links[next]?.focus();
    event.preventDefault();
  });
  const search = h("div.search", icon("search"), field, h("kbd", "Ctrl K"));
  household.addEventListener("conversations", draw);
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
    const focused = document.activeElement?.closest?.("li")?.dataset.id;
    const rows = matching.map(row);
    if (words) {
      rows.push(...(found ?? []).map(foundRow));
      if (!matching.length && found && !found.length) rows.push(h("li.empty", "No results."));
      if (!found && words.length > 1) rows.push(h("li.empty", "Searching…"));
    } else if (!rows.length) {
      rows.push(h("li.empty", household.isGuest ? "Conversations that are shared with you appear here." : "Your conversations appear here."));
    }
    list.replaceChildren(...rows);
    if (focused) list.querySelector(`li[data-id="${CSS.escape(focused)}"] a`)?.focus();
  }

  function row(one) {
    const isOpen = household.open === one.id;
    const account = one.channel?.startsWith("webhook:") ? one.channel.slice(8) : null;
    const isUnread = household.unread.has(one.id);
    const isBusy = household.turnsOf(one.id).some((turn) => turn.state === "running");
    const item = h("li", { class: `${isOpen ? "open" : ""} ${isUnread ? "unread" : ""}` },
      h("a", { href: `#/c/${one.id}`, "aria-current": isOpen ? "page" : null, onclick: (event) => { event.preventDefault(); go(one.id); } },
        h("span.title", one.title || "Untitled"),
        h("span.quiet.small", audienceIcon(one, household.identity?.user), account && h("span.badge", account), moment(one.updated_at), isBusy && " · writing…", isUnread && h("span.unseen", " unread"))),
      household.mayChange(one) && h("span.actions",
        iconButton("edit", `Rename ${one.title}`, "Rename", () => rename(household, one)),
        iconButton("trash", `Delete ${one.title}`, "Delete", () => remove(household, one, go))));
    item.dataset.id = one.id;
    return item;
  }

  function foundRow(message) {
    const id = message.conversation_id;
    return h("li",
      h("a", { href: `#/c/${id}/${message.id}`, onclick: (event) => { event.preventDefault(); go(id, message.id); } },
        h("span.snippet", snippet(message.content, field.value.trim())),
        h("span.quiet.small", household.conversations.get(id)?.title ?? "", " · ", moment(message.timestamp))));
  }
}

function snippet(text, words) {
  const flat = text.replace(/\s+/g, " ");
  const place = flat.toLowerCase().indexOf(words.toLowerCase());
  if (place < 0) return [flat.slice(0, 120)];
  const begin = Math.max(0, place - 40);
  return [(begin ? "…" : "") + flat.slice(begin, place), h("mark", flat.slice(place, place + words.length)), flat.slice(place + words.length, place + words.length + 80)];
}

/** Asks for a new title. */
export async function rename(household, conversation) {
  const title = await ask({ title: "Rename conversation", value: conversation.title, action: "Rename" });
  if (!title || title === conversation.title) return;
  household.rename(conversation.id, title).catch(complain);
}

/** Deletes a conversation after a confirmation. */
export async function remove(household, conversation, go) {
  const sure = await ask({ title: "Delete conversation?", text: `“${conversation.title}” and its messages will be deleted permanently.`, action: "Delete", danger: true });
  if (!sure) return;
  try {
    await household.remove(conversation.id);
    if (household.open === conversation.id) go(null);
  } catch (error) {
    complain(error);
  }
}
