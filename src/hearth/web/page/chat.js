// One conversation: its messages, replies in progress, and the composer.

import { h, icon, sign, dayName, timeOfDay, announce, copyButton, commands, iconButton, complain, toast } from "./dom.js";
import { markdown, write } from "./markdown.js";
import { audienceControl } from "./audience.js";
import { argumentsOf } from "./approvals.js";
import { rename, remove } from "./conversations.js";

const PAGE = 50;
const DRAFT = "hearth.draft.";
const CUT_BY = {
  length: "Cut off: the model reached its limit.",
  content_filter: "Cut off by the provider’s content filter.",
  refusal: "The model refused to go on.",
  interrupted: "This reply was not finished.",
};

/** The view of a conversation, or of a new one when `id` is null. `sought` is the message to scroll to. */
export function chat({ household, go, id, sought }) {
  const messages = new Map();
  const log = h("ol.messages", { role: "log", "aria-live": "off", "aria-label": "Messages" });
  const live = h("ol.messages.live");
  const older = h("div.older");
  const content = h("div.content", older, log, live);
  const scroller = h("div.scroller", { tabindex: -1 }, content);
  const down = h("button.down", { "aria-label": "Scroll to the newest message", hidden: true, onclick: () => toEnd(true) }, icon("back"));
  const title = h("h1", "");
  const controls = h("span.row");
  const composing = composer();
  const element = h("section.chat", { "aria-label": "Conversation" }, scroller, down, composing.element);
  const written = new Map();
  const shown = new WeakMap();
  let hasMore = false;
  let loading = false;
  let isAtEnd = id !== null;
  let isGone = false;
  let lastTop = 0;
  let frame = 0;

  const stop = new AbortController();
  const listen = (name, handler) => household.addEventListener(name, handler, { signal: stop.signal });
  listen("message", ({ detail }) => { if (detail.conversation === id) arrived(detail.message); });
  listen("turn", ({ detail }) => { if (detail.conversation === id) turnChanged(detail); });
  listen("sent", ({ detail }) => sentChanged(detail));
  listen("conversations", head);
  listen("deleted", ({ detail }) => { if (detail.id === id) gone(detail.why); });
  listen("reload", () => { if (id) catchUp().catch(lost); else if (!composing.first) welcome(); });
  listen("config", () => { if (!id && !composing.first) welcome(); });
  listen("approvals", schedule);
  scroller.addEventListener("scroll", () => {
    // Only scrolling up leaves the end; new content does not.
    if (scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 60) isAtEnd = true;
    else if (scroller.scrollTop < lastTop - 1) isAtEnd = false;
    lastTop = scroller.scrollTop;
    down.hidden = isAtEnd;
    if (scroller.scrollTop < 600) loadOlder();
  }, { passive: true });
  const watcher = new ResizeObserver(() => { if (isAtEnd) toEnd(); });
  watcher.observe(content);
  watcher.observe(scroller);

  head();
  if (id) begin();
  else welcome();
  return { element, title, controls, focus: composing.focus, close };

  function close() {
    stop.abort();
    watcher.disconnect();
    cancelAnimationFrame(frame);
    composing.keep();
  }

  function head() {
    const known = household.conversations.get(id);
    title.textContent = id ? known?.title ?? "Conversation" : "New conversation";
    document.title = id && known ? `${known.title} · Hearth` : "Hearth";
    const account = known?.channel?.startsWith("webhook:") ? known.channel.slice(8) : null;
    controls.replaceChildren(...(known ? [
      ...(account ? [h("span.badge", { title: "This conversation came from a webhook" }, account)] : []),
      ...[audienceControl(household, known)].filter(Boolean),
      ...(household.mayChange(known) ? [
        iconButton("edit", "Rename conversation", "Rename", () => rename(household, known)),
        iconButton("trash", "Delete conversation", "Delete", () => remove(household, known, go)),
      ] : []),
    ] : []));
  }

  async function begin() {
    log.append(h("li.note", "Loading…"));
    const begun = household.turnsOf(id).filter((turn) => turn.message);
    for (const turn of begun) add(turn.message);
    schedule();
    try {
      await catchUp();
      if (sought) await seek();
    } catch (error) {
      // A new conversation may not be committed on the server yet.
      if (error.code === "not_found" && begun.length) return;
      if (error.code === "not_found") household.lose(id);
      else log.replaceChildren(h("li.note", { role: "alert" }, error.message));
    }
    composing.draw();
  }

  function lost(error) {
    if (error.code === "not_found" && !household.conversations.get(id)?.isProvisional) household.lose(id);
  }

  function gone(why) {
    isGone = true;
    hasMore = false;
    drawOlder();
    log.replaceChildren(h("li.note", { role: "alert" }, why));
    schedule();
  }

  /** Loads the newest page: at first, and after an interruption. */
  async function catchUp() {
    const page = await household.read("get_messages", { conversation_id: id, limit: PAGE });
    const overlaps = messages.size === 0 || page.messages.some((one) => messages.has(one.id));
    if (!overlaps || messages.size === 0) {
      messages.clear();
      log.replaceChildren();
      hasMore = page.has_more;
    }
    for (const one of page.messages) add(one);
    drawOlder();
    const newest = page.messages.at(-1);
    if (newest?.role === "user" && newest.turn_id) household.lookUp(newest.turn_id, id).catch(() => {});
    schedule();
    if (isAtEnd) toEnd();
  }

  async function loadOlder(limit = PAGE) {
    if (!hasMore || loading) return;
    loading = true;
    drawOlder();
    try {
      const before = log.firstElementChild?.dataset.id ?? [...messages.keys()][0];
      const page = await household.read("get_messages", { conversation_id: id, before, limit });
      const anchor = log.querySelector("li[data-id]");
      const top = anchor?.getBoundingClientRect().top ?? 0;
      // Otherwise the browser's own scroll anchoring would move it again.
      scroller.style.overflowAnchor = "none";
      const rows = page.messages.filter((one) => !messages.has(one.id)).map((one) => {
        const row = messageRow(one);
        messages.set(one.id, row);
        return row;
      });
      log.prepend(...rows);
      hasMore = page.has_more;
      days();
      if (anchor && !isAtEnd) scroller.scrollTop += anchor.getBoundingClientRect().top - top;
      requestAnimationFrame(() => { scroller.style.overflowAnchor = ""; });
    } catch (error) {
      complain(error);
    }
    loading = false;
    drawOlder();
  }

  function drawOlder() {
    older.replaceChildren(...(hasMore ? [h("button.plain", { disabled: loading, onclick: () => loadOlder() }, loading ? "Loading…" : "Load earlier messages")] : []));
  }

  async function seek() {
    isAtEnd = false;
    for (let pages = 0; !messages.has(sought) && hasMore && pages < 40; pages += 1) await loadOlder(500);
    const row = messages.get(sought);
    if (!row) return;
    row.scrollIntoView({ block: "center" });
    row.classList.add("sought");
  }

  function add(message, tools) {
    if (messages.has(message.id)) return;
    const row = messageRow(message, tools);
    messages.set(message.id, row);
    const later = [...log.children].reverse();
    const before = later.find((other) => other.dataset.id < message.id);
    if (before) before.after(row);
    else log.prepend(row);
    for (const note of log.querySelectorAll("li.note")) note.remove();
    days();
  }

  /** A heading where a new day begins. */
  function days() {
    let last = null;
    for (const row of log.children) {
      const day = new Date(row.dataset.at).toDateString();
      if (day !== last) row.dataset.day = dayName(row.dataset.at);
      else delete row.dataset.day;
      last = day;
    }
  }

  function arrived(message) {
    const turn = household.turns.get(message.turn_id);
    add(message, turn?.tools);
    if (message.role === "assistant") {
      dropLive(message.turn_id);
      announce(`Hearth: ${message.content.slice(0, 1000)}`);
    }
    household.markRead(document.hidden ? null : id);
    schedule();
  }

  function messageRow(message, tools) {
    const isMine = message.role === "user";
    const row = h("li", { class: `message ${isMine ? "person" : "assistant"}` },
      h("div.who",
        isMine ? h("strong", message.speaker ?? "Unknown") : [sign(20), h("strong", "Hearth")],
        timeOfDay(message.timestamp),
        isMine ? null : copyButton(() => message.content)),
      message.in_reply_to && h("p.quiet.small.question", questionOf(message)),
      tools?.size ? toolList(tools) : null,
      h("div.text", isMine ? message.content : markdown(message.content)),
      message.finish_reason && cutOff(message));
    row.dataset.id = message.id;
    row.dataset.at = message.timestamp;
    return row;
  }

  /** Says why a reply is not whole, and offers to go on. */
  function cutOff({ id: reply, finish_reason: reason }) {
    const isLast = () => [...messages.keys()].every((other) => other <= reply);
    const go = () => isLast() ? household.send("Continue where you stopped.", id) : toast("Other messages came after this reply.");
    return h("div.row.wrap.cut",
      h("span.quiet", CUT_BY[reason] ?? "This reply is not whole."),
      household.maySend && reason !== "refusal" && h("button", { onclick: go }, "Continue"));
  }

  /** Names the question of a reply that came after later messages. */
  function questionOf({ in_reply_to: question }) {
    const asked = messages.get(question)?.querySelector(".text").textContent;
    const words = asked ? `“${asked.length > 80 ? `${asked.slice(0, 80)}…` : asked}”` : "an earlier message";
    return ["In reply to ", h("a", { href: `#/c/${id}/${question}` }, words)];
  }

  function turnChanged(turn) {
    if (turn.state === "done") dropLive(turn.id);
    else if (turn.state === "failed") announce(turn.isCancelled ? "Stopped." : `Failed: ${turn.error}`);
    schedule();
  }

  function sentChanged(message) {
    // The first message of a new conversation now has a conversation.
    if (!id && message === composing.first && message.conversation) return go(message.conversation, null, true);
    if (message.conversation === id) schedule();
  }

  /** Draws the turns in progress once in the next frame. */
  function schedule() {
    if (frame) return;
    frame = requestAnimationFrame(() => {
      const begun = performance.now();
      drawLive();
      // Long replies take their time, of which other things get most.
      const took = performance.now() - begun;
      if (took < 20) frame = 0;
      else setTimeout(() => { frame = 0; if (!stop.signal.aborted) schedule(); }, 3 * took);
    });
  }

  function dropLive(turn) {
    written.get(turn)?.remove();
    written.delete(turn);
  }

  function drawLive() {
    const rows = [];
    for (const message of household.outgoing) {
      if (message.conversation === id && (!message.turn || message.error)) rows.push(outgoingRow(message));
    }
    for (const turn of id ? household.turnsOf(id) : []) {
      if (turn.state !== "done") rows.push(liveRow(turn));
    }
    live.replaceChildren(...rows);
    composing.draw();
  }

  function outgoingRow(message) {
    return h("li", { class: `message person ${message.error ? "failed" : "sending"}` },
      h("div.who", h("strong", household.identity?.user ?? "You"), h("span.quiet.small", message.error ? "not sent" : "sending…")),
      h("div.text", message.text),
      message.error && failure(message.error, () => { household.discard(message); household.send(message.text, id); }, () => household.discard(message)));
  }

  function failure(text, again, discard) {
    return h("div.failure", { role: "alert" }, h("p", text),
      h("div.row.wrap",
        again && h("button", { onclick: again }, icon("retry"), "Try again"),
        discard && h("button.plain", { onclick: discard }, "Discard")));
  }

  /** A reply in progress. The element is kept, so that open details stay open. */
  function liveRow(turn) {
    let row = written.get(turn.id);
    if (!row) {
      row = h("li.message.assistant",
        h("div.who", sign(20), h("strong", "Hearth")),
        h("div.tools-place"), h("div.text"), h("div.state"));
      written.set(turn.id, row);
    }
    const [, tools, text, state] = row.children;
    redraw(tools, JSON.stringify([...turn.tools]), () => turn.tools.size ? [toolList(turn.tools)] : []);
    if (shown.get(row) !== turn.text) {
      shown.set(row, turn.text);
      write(text, turn.text);
    }
    if (turn.state === "failed") {
      const question = [...messages.values()].reverse().find((one) => one.classList.contains("person"));
      const again = household.maySend && question && (() => {
        household.turns.delete(turn.id);
        dropLive(turn.id);
        household.send(question.querySelector(".text").textContent, id);
      });
      const words = turn.isCancelled ? "Stopped." : turn.error;
      redraw(state, words, () => [turn.isCancelled ? h("p.quiet", words) : failure(words, again)]);
    } else {
      const waits = [...household.approvals.values()].some((one) => one.turn_id === turn.id);
      const isBusy = [...turn.tools.values()].some((call) => !call.result);
      const words = waits ? "Waiting for your approval"
        : household.waiting.has(turn.id) ? "Waiting for the approval of somebody who may give it"
        : isBusy ? "Working"
        : turn.text ? "" : turn.hasGap ? "Writing" : "Thinking";
      redraw(state, words, () => words ? [h("p.thinking", words)] : []);
    }
    return row;
  }

  function welcome() {
    const hour = new Date().getHours();
    const greeting = hour < 5 ? "Hello" : hour < 12 ? "Good morning" : hour < 18 ? "Good afternoon" : "Good evening";
    const name = household.identity?.user;
    log.replaceChildren(h("li.welcome",
      sign(56),
      h("h2", name ? `${greeting}, ${name}` : greeting),
      household.maySend || !household.identity
        ? h("p", "Ask a question, or ask me to remember something.")
        : h("p", "You are a guest: you read the conversations that are shared with you."),
      household.maySend && h("div.row.wrap.centre",
        ...["What time is it?", "Remember that the bins go out on Monday", "What do you remember about the bins?"].map((text) =>
          h("button", { onclick: () => composing.send(text) }, text))),
      household.config?.provider === "offline" && connectModel(household.isAdmin)));
  }

  function toEnd(isAsked) {
    if (isAsked) isAtEnd = true;
    scroller.scrollTop = scroller.scrollHeight;
  }

  function composer() {
    const field = h("textarea", { rows: 1, placeholder: "Message Hearth", "aria-label": "Message", enterkeyhint: "send", autocomplete: "off", value: sessionStorage.getItem(DRAFT + (id ?? "new")) ?? "" });
    const button = h("button", { type: "submit", class: "primary send", "aria-label": "Send" }, icon("send"));
    const form = h("form.composer", h("div.field", field, button), h("p.hint", h("kbd", "Enter"), " to send, ", h("kbd", "Shift+Enter"), " for a new line"));
    const self = { element: form, first: null, draw, send, keep, focus: () => field.focus({ preventScroll: true }) };
    const isTouch = matchMedia("(pointer: coarse)").matches;

    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const turn = running();
      if (turn && !field.value.trim()) household.stop(turn).catch(complain);
      else send(field.value);
    });
    field.addEventListener("input", () => { grow(); draw(); });
    field.addEventListener("keydown", (event) => {
      // On a phone, Enter must start a new line.
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !isTouch) {
        event.preventDefault();
        if (field.value.trim()) send(field.value);
      } else if (event.key === "Escape") {
        const turn = running();
        if (turn) household.stop(turn).catch(complain);
      }
    });
    queueMicrotask(() => { grow(); draw(); });
    return self;

    function running() {
      return id ? household.turnsOf(id).find((turn) => turn.state === "running") : undefined;
    }

    function send(text) {
      if (!text.trim() || !household.maySend || isGone) return;
      const message = household.send(text.trim(), id);
      if (!id) self.first = message;
      field.value = "";
      keep();
      grow();
      if (!id) log.replaceChildren();
      schedule();
      toEnd(true);
    }

    function draw() {
      const isAllowed = household.maySend && !isGone;
      const turn = running();
      const stops = Boolean(turn) && !field.value.trim();
      field.disabled = household.identity !== null && !isAllowed;
      field.placeholder = field.disabled ? (isGone ? "This conversation was deleted" : "Your role is read-only") : "Message Hearth";
      button.disabled = !isAllowed || (!stops && !field.value.trim());
      const label = stops ? "Stop" : "Send";
      if (button.getAttribute("aria-label") !== label) {
        button.setAttribute("aria-label", label);
        button.title = stops ? "Stop (Esc)" : "";
        button.replaceChildren(icon(stops ? "stop" : "send"));
      }
    }

    function grow() {
      field.style.height = "auto";
      field.style.height = `${Math.min(field.scrollHeight + 2, innerHeight * 0.4)}px`;
    }

    function keep() {
      if (field.value.trim()) sessionStorage.setItem(DRAFT + (id ?? "new"), field.value);
      else sessionStorage.removeItem(DRAFT + (id ?? "new"));
    }
  }
}

/** Redraws only when `content` changes, so that buttons keep the focus. */
function redraw(place, content, make) {
  if (place.dataset.content === content) return;
  place.dataset.content = content;
  place.replaceChildren(...make());
}

/** The tool calls of a turn, each with its details. */
function toolList(tools) {
  return h("ul.tools", [...tools.values()].map(({ tool, arguments: given, result }) =>
    h("li", { class: result ? (result.ok ? "ok" : "bad") : "busy" },
      h("details",
        h("summary", icon(result ? (result.ok ? "check" : "cross") : "tool"), h("code", tool),
          h("span.quiet", result ? (result.ok ? "done" : "failed") : "running…")),
        argumentsOf(given),
        result && h("pre", { tabindex: 0 }, result.summary)))));
}

/** How to connect a model. */
export function connectModel(isAdmin) {
  return h("section.card.first",
    h("h2", "No language model is connected yet"),
    h("p", "The built-in offline provider answers from a few rules, so that you can try everything. To use a model from Ollama, run this on the machine where Hearth runs:"),
    commands("hearth config set model NAME", "hearth config set provider ollama"),
    isAdmin
      ? h("p", "Or choose the provider and model on the ", h("a", { href: "#/settings" }, "settings page"), ".")
      : h("p", "An admin can also do this in the settings."));
}
