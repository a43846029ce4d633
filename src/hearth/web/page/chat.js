// One conversation: its messages, replies in progress, and the composer.

import { h, icon, sign, dayName, announce, commands, lazily, menuButton, roving, complain, complainIn, toast, called } from "./dom.js";
import { write } from "./markdown.js";
import { drawApprovals } from "./approvals.js";
import { audienceControl } from "./audience.js";
import { composer } from "./composer.js";
import { rename, remove } from "./conversations.js";
import { fileList, messageRow, thoughtsOf, toolList } from "./message.js";
import { say } from "./words.js";

const PAGE = 50;
/** Most messages that the document has: those farther away leave it again. */
const MOST = 250;
const exporting = lazily(() => import("./exporting.js"));
const homing = lazily(() => import("./home.js"));
const choosing = lazily(() => import("./choosing.js"));

/** The view of a conversation, or of a new one when `id` is null. `sought` is the message to scroll to. */
export function chat({ household, go, id, sought }) {
  const messages = new Map();
  /** The turns of replies that came meanwhile, by message: the server keeps no thoughts and calls. */
  const turns = new Map();
  const log = h("ol.messages");
  const live = h("ol.messages.live");
  const older = h("div.older");
  const content = h("div.content", older, h("div", { role: "log", "aria-live": "off", "aria-label": say("conversations.messages") }, log), live);
  const scroller = h("div.scroller", { tabindex: -1 }, content);
  const down = h("button.down", { "aria-label": say("chat.to_newest"), hidden: true, onclick: () => toEnd(true) }, icon("back"));
  const heading = h("h1", { dir: "auto" });
  const model = h("p.quiet.small.model");
  const title = h("div.heading", heading, model);
  const refresh = roving(log, () => [...log.children].filter((one) => one.dataset.id), (row) => [...row.querySelectorAll(":scope > .deeds button")]);
  const controls = h("span.row");
  const home = h("div.home");
  const element = h("section.chat", { "aria-label": say("chat.conversation") }, scroller, down);
  const written = new Map();
  const shown = new WeakMap();
  let hasMore = false;
  /** Whether there are newer messages than those that are shown. */
  let hasNewer = false;
  let loading = false;
  /** The message that stays in the middle until somebody scrolls. */
  let pinned = null;
  let isWhole = false;
  /** What came while newer messages than those that are shown were not loaded. */
  let unseen = [];
  let isAtEnd = id !== null;
  let isGone = false;
  let isControlsStale = false;
  let lastTop = 0;
  let frame = 0;
  /** The first message of a new conversation, and its model if that is not the usual one. */
  let opening = null;
  let fresh = null;
  const composing = composer({
    household, id, send, target: element,
    running: () => (id ? household.turnsOf(id).find((turn) => turn.state === "running") : undefined),
    state: () => (isGone ? say("chat.read_only") : null),
    model: { now: modelNow, choose: chooseModel },
  });
  element.append(composing.element);

  const stop = new AbortController();
  const listen = (name, handler) => household.addEventListener(name, handler, { signal: stop.signal });
  listen("message", ({ detail }) => { if (detail.conversation === id) arrived(detail.message); });
  listen("turn", ({ detail }) => { if (detail.conversation === id) turnChanged(detail); });
  listen("sent", ({ detail }) => sentChanged(detail));
  listen("conversations", () => {
    head();
    composing.draw();
  });
  listen("changed", ({ detail }) => { if (detail.id === id) anew().catch(lost); });
  listen("deleted", ({ detail }) => { if (detail.id === id) gone(detail.why); });
  listen("reload", () => { if (id) catchUp().catch(lost); else if (!opening) welcome(); });
  listen("config", () => {
    head();
    if (!id && !opening) welcome();
    composing.draw();
  });
  listen("approvals", schedule);
  for (const name of ["list", "schedule", "message"]) listen(name, lookAtDay);
  scroller.addEventListener("scroll", () => {
    // Only scrolling up leaves the end; new content does not.
    const below = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    if (below < 60) isAtEnd = !hasNewer;
    else if (scroller.scrollTop < lastTop - 1) isAtEnd = false;
    lastTop = scroller.scrollTop;
    down.hidden = isAtEnd;
    if (pinned) return;
    if (scroller.scrollTop < 600) loadOlder();
    else if (below < 600) loadNewer();
  }, { passive: true });
  for (const name of ["wheel", "touchmove", "keydown", "pointerdown"]) element.addEventListener(name, () => { pinned = null; }, { passive: true });
  // Rows have their true heights only once they are seen.
  const watcher = new ResizeObserver(() => {
    if (isAtEnd) toEnd();
    else pinned?.scrollIntoView({ block: "center" });
  });
  watcher.observe(content);
  watcher.observe(scroller);
  controls.addEventListener("focusout", ({ relatedTarget }) => {
    if (isControlsStale && !controls.contains(relatedTarget)) head();
  });

  head();
  if (id) begin();
  else welcome();
  return { element, title, controls, focus: composing.focus, close };

  function close() {
    stop.abort();
    watcher.disconnect();
    cancelAnimationFrame(frame);
    composing.close();
  }

  function head() {
    const known = household.conversations.get(id);
    heading.textContent = id ? known?.title ?? say("chat.conversation") : say("common.new_conversation");
    describe();
    document.title = id && known ? `${known.title} · Hearth` : "Hearth";
    // An open menu would close under the hand, and the focus be lost.
    isControlsStale = controls.contains(document.activeElement);
    if (isControlsStale) return;
    const account = known?.channel?.startsWith("webhook:") ? known.channel.slice(8) : null;
    controls.replaceChildren(...(known ? [
      ...(account ? [h("span.badge", { title: say("chat.from_webhook") }, account)] : []),
      ...[audienceControl(household, known)].filter(Boolean),
      menuButton("more", say("chat.more"), [
        household.mayChange(known) && ["edit", say("common.rename"), () => rename(household, known)],
        household.maySend && ["pin", say(known.pinned ? "chat.unpin" : "chat.pin"), () => household.update(id, { pinned: !known.pinned }).catch(complain)],
        household.maySend && ["archive", say(known.archived ? "chat.unarchive" : "chat.archive"), () => household.update(id, { archived: !known.archived }).catch(complain)],
        household.mayChange(known) && (household.isAdmin || household.config?.models?.length) && ["settings", say("common.model"), () => choosing(({ setModel }) => setModel(household, known))],
        household.mayChange(known) && ["help", say("chat.instructions"), () => choosing(({ setInstructions }) => setInstructions(household, known))],
        ["download", say("common.export"), () => exporting(({ save }) => save(household, known))],
        ["print", say("chat.print"), () => exporting(({ print }) => print(loadAll))],
        household.mayChange(known) && ["trash", say("common.delete"), () => remove(household, known, go)],
      ]),
    ] : []));
  }

  /** The model that answers, where this person may choose another one. */
  function modelNow() {
    const known = household.conversations.get(id);
    if (id && !(known && household.mayChange(known))) return null;
    return known?.model || fresh || household.config?.model;
  }

  function chooseModel(name) {
    if (name === null) return choosing(({ nameModel }) => nameModel(household, modelNow(), chooseModel));
    const other = name === household.config?.model ? "" : name;
    if (id) household.update(id, { model: other }).catch(complain);
    else fresh = other;
    describe();
    composing.draw();
  }

  /** Which model answers. */
  function describe() {
    const { provider, model: usual } = household.config ?? {};
    const name = household.conversations.get(id)?.model || fresh || usual;
    model.textContent = !provider ? "" : provider === "offline" ? say("chat.no_model") : name;
    model.title = provider ? say("chat.model_of", { provider }) : "";
  }

  async function begin() {
    log.append(h("li.note", say("common.loading")));
    const begun = household.turnsOf(id).filter((turn) => turn.message);
    for (const turn of begun) add(turn.message);
    schedule();
    try {
      await (sought ? seek() : catchUp());
    } catch (error) {
      // A new conversation may not be committed on the server yet.
      if (error.code === "not_found" && begun.length) return;
      if (error.code === "not_found") household.lose(id);
      else tell(error, () => {
        log.replaceChildren();
        begin();
      });
    }
    composing.draw();
  }

  function lost(error) {
    if (error.code === "not_found" && !household.conversations.get(id)?.isProvisional) household.lose(id);
  }

  function gone(why) {
    isGone = true;
    hasMore = hasNewer = false;
    drawOlder();
    tell({ message: why });
    schedule();
  }

  /** Says what is wrong where the messages would be, and perhaps offers to try again. */
  function tell(error, again) {
    const text = h("p", { role: "alert" });
    complainIn(text, error);
    log.replaceChildren(h("li.note", text, again && h("button", { onclick: again }, icon("retry"), say("common.try_again"))));
  }

  function read(more) {
    return household.read("get_messages", { conversation_id: id, limit: PAGE, ...more });
  }

  /** Loads the newest page: at first, and after an interruption. */
  async function catchUp() {
    const [page] = await Promise.all([read(), household.know(id)]);
    const overlaps = page.messages.some((one) => messages.has(one.id));
    // Who reads far from the end stays there.
    if (hasNewer && !overlaps) return;
    if (!overlaps) replace(page);
    else if (page.messages[0].id <= log.firstElementChild?.dataset.id) hasMore = page.has_more;
    hasNewer = false;
    drawOlder();
    for (const one of page.messages) add(one);
    addUnseen();
    const newest = page.messages.at(-1);
    if (newest?.role === "user" && newest.turn_id) household.lookUp(newest.turn_id, id).catch(() => {});
    schedule();
    if (isAtEnd) toEnd();
  }

  /** Shows these messages and no others. */
  function replace(page) {
    messages.clear();
    log.replaceChildren();
    hasMore = page.has_more;
    hasNewer = page.has_more_after ?? false;
    for (const one of page.messages) add(one);
    addUnseen();
    drawOlder();
    schedule();
  }

  /** Adds what came meanwhile, once the end is loaded. */
  function addUnseen() {
    if (hasNewer) return;
    for (const one of unseen) add(one);
    unseen = [];
  }

  /** Reads it again, because messages were replaced or deleted. */
  async function anew() {
    const limit = Math.max(PAGE, messages.size);
    const middle = hasNewer && [...log.children].find((row) => row.getBoundingClientRect().bottom > scroller.getBoundingClientRect().top);
    const page = await (middle ? read({ around: middle.dataset.id, limit }).catch(() => read()) : read({ limit }));
    const top = scroller.scrollTop;
    replace(page);
    if (isAtEnd) toEnd();
    else if (middle) messages.get(middle.dataset.id)?.scrollIntoView();
    else scroller.scrollTop = top;
  }

  async function loadOlder(limit = PAGE) {
    if (!hasMore) return;
    await load({ before: log.querySelector("li[data-id]")?.dataset.id, limit }, (page, rows) => {
      log.prepend(...rows);
      hasMore = page.has_more;
      // Who has gone to the end meanwhile stays there.
      if (!isAtEnd) trim("lastElementChild");
    });
  }

  async function loadNewer() {
    if (!hasNewer) return;
    await load({ around: log.lastElementChild.dataset.id, limit: 2 * PAGE }, (page, rows) => {
      log.append(...rows);
      hasNewer = page.has_more_after;
      addUnseen();
      trim("firstElementChild");
    });
  }

  /** Takes what is too far away at this end out of the document. */
  function trim(end) {
    while (!isWhole && log.children.length > MOST) {
      const row = log[end];
      messages.delete(row.dataset.id);
      row.remove();
      if (end === "firstElementChild") hasMore = true;
      else hasNewer = true;
    }
  }

  /** Loads more, and has `show` add its rows without moving what one reads. */
  async function load(more, show) {
    if (loading) return;
    loading = true;
    drawOlder();
    try {
      const first = log.firstElementChild;
      const page = await read(more);
      // Others were put in their place meanwhile.
      if (first !== log.firstElementChild) return;
      const rows = page.messages.filter((one) => !messages.has(one.id)).map((one) => {
        const row = rowOf(one);
        messages.set(one.id, row);
        return row;
      });
      const middle = scroller.getBoundingClientRect().top;
      const anchor = [...log.children].find((row) => row.getBoundingClientRect().bottom > middle);
      const top = anchor?.getBoundingClientRect().top ?? 0;
      // Otherwise the browser's own scroll anchoring would move it again.
      scroller.style.overflowAnchor = "none";
      show(page, rows);
      days();
      if (anchor && !isAtEnd) scroller.scrollTop += anchor.getBoundingClientRect().top - top;
      requestAnimationFrame(() => { scroller.style.overflowAnchor = ""; });
    } catch (error) {
      complain(error);
    } finally {
      loading = false;
      drawOlder();
      schedule();
    }
  }

  /** Loads everything, for printing. */
  async function loadAll() {
    isWhole = true;
    if (hasNewer) replace(await read());
    for (let pages = 0; hasMore && pages < 40; pages += 1) await loadOlder(500);
    isWhole = false;
  }

  function drawOlder() {
    older.replaceChildren(...(hasMore ? [h("button.plain", { disabled: loading, onclick: () => loadOlder() }, loading ? say("common.loading") : say("chat.load_earlier"))] : []));
  }

  /** Opens it at the message that was looked for; at its end where that is gone. */
  async function seek() {
    const [page] = await Promise.all([read({ around: sought }).catch(() => null), household.know(id)]);
    if (!page) return catchUp();
    isAtEnd = false;
    replace(page);
    pinned = messages.get(sought);
    pinned.scrollIntoView({ block: "center" });
    pinned.classList.add("sought");
    if (!hasNewer) await catchUp();
  }

  function add(message) {
    if (messages.has(message.id)) return;
    const row = rowOf(message);
    messages.set(message.id, row);
    const later = [...log.children].reverse();
    const before = later.find((other) => other.dataset.id < message.id);
    if (before) before.after(row);
    else log.prepend(row);
    for (const note of log.querySelectorAll("li.note")) note.remove();
    days();
  }

  function rowOf(message) {
    return messageRow(message, { household, id, turn: turns.get(message.id), find: (other) => messages.get(other), quote: composing.quote, goOn, edit: composing.edit, again, remove: removeMessage, select });
  }

  /** The message that this one answers, if it is loaded. */
  function questionOf(reply) {
    const rows = [...log.children].filter((row) => row.message);
    const earlier = rows.slice(0, rows.findIndex((row) => row.message.id === reply.id)).reverse();
    return (messages.get(reply.in_reply_to) ?? earlier.find((row) => row.message.role === "user"))?.message;
  }

  /** Another reply to the question of this one; `chooses` asks of which model. */
  function again(reply, chooses) {
    const question = questionOf(reply);
    if (!question) return;
    if (chooses) choosing(({ chooseModel }) => chooseModel(household, id, (model) => answerAnew(household, id, question, model)));
    else answerAnew(household, id, question);
  }

  function removeMessage(message) {
    const question = message.role === "user" ? message : questionOf(message);
    choosing(({ removeMessage: remove }) => remove(household, message, question));
  }

  function select(version) {
    household.request("select_version", { message_id: version }).catch(complain);
  }

  /** Asks for the rest of a reply that was cut off. */
  function goOn(reply) {
    if (!hasNewer && [...messages.keys()].every((other) => other <= reply)) household.send(say("chat.go_on"), id);
    else toast(say("chat.others_came"));
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
    refresh(log.querySelector("li[data-id]:last-child"));
  }

  function arrived(message) {
    const turn = message.role === "assistant" && household.turns.get(message.turn_id);
    if (turn) {
      turns.set(message.id, turn);
      // A reply may have been read before the events of its turn came.
      messages.get(message.id)?.remove();
      messages.delete(message.id);
    }
    // A new version takes the place of the earlier one and of what followed it.
    if (message.versions?.length > 1) anew().catch(lost);
    else if (hasNewer) unseen = [...unseen.slice(-PAGE), message];
    else add(message);
    if (message.role === "assistant") {
      dropLive(message.turn_id);
      announce(`Hearth: ${message.content.slice(0, 1000)}`);
    }
    household.markRead(document.hidden ? null : id, true);
    schedule();
  }

  function turnChanged(turn) {
    if (turn.state === "done") dropLive(turn.id);
    else if (turn.state === "failed") announce(turn.isCancelled ? say("chat.stopped") : say("chat.failed", { problem: turn.error }));
    schedule();
  }

  function sentChanged(message) {
    // The first message of a new conversation now has a conversation.
    if (!id && message === opening && message.conversation) {
      if (fresh) household.update(message.conversation, { model: fresh }).catch(complain);
      return go(message.conversation, null, true);
    }
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
    live.hidden = hasNewer;
    // A turn that has waited for long is not the newest.
    for (const one of isGone ? [] : household.approvals.values()) {
      if (one.conversation_id === id) household.lookUp(one.turn_id, id).catch(() => {});
    }
    for (const message of household.outgoing) {
      if (message.conversation === id && (!message.turn || message.error)) rows.push(outgoingRow(message));
    }
    const turns = id ? household.turnsOf(id) : [];
    // Who may not read a conversation may have to answer what it asks.
    for (const { conversation_id: asks, turn_id: turn } of isGone ? household.approvals.values() : []) {
      if (asks === id && !turns.some((known) => known.id === turn)) turns.push({ id: turn, tools: new Map(), text: "" });
    }
    for (const turn of turns) {
      // What was said before a stop is a message, and says itself that it was stopped.
      if (turn.state !== "done" && !(turn.isCancelled && turn.isStored)) rows.push(liveRow(turn));
    }
    // What is there already keeps the focus.
    if (rows.length !== live.children.length || rows.some((row, at) => row !== live.children[at])) live.replaceChildren(...rows);
    composing.draw();
  }

  function outgoingRow(message) {
    return h("li", { class: `message person ${message.error ? "failed" : "sending"}` },
      h("div.who", h("strong", called(household.identity?.user) ?? say("chat.you")), h("span.quiet.small", say(message.error ? "chat.not_sent" : "chat.sending"))),
      fileList(household, message.attachments),
      h("div.text", message.text),
      message.error && failure(message.error, () => { household.discard(message); household.send(message.text, id, message.attachments, message.more); }, () => household.discard(message)));
  }

  /** Says what has failed, and offers an admin where that is mended. */
  function failure(error, again, discard) {
    const text = h("p");
    complainIn(text, error);
    return h("div.failure", { role: "alert" }, text,
      h("div.row.wrap",
        again && h("button", { onclick: again }, icon("retry"), say("common.try_again")),
        discard && h("button.plain", { onclick: discard }, say("chat.discard"))));
  }

  /** A reply in progress. The element is kept, so that open details stay open. */
  function liveRow(turn) {
    let row = written.get(turn.id);
    if (!row) {
      row = h("li.message.assistant",
        h("div.who", sign(20), h("strong", "Hearth")),
        h("div"), h("div.tools-place"), h("div.asks"), h("div.text"), h("div.state"));
      written.set(turn.id, row);
    }
    const [, thoughts, tools, asks, text, state] = row.children;
    if (turn.thoughts) {
      if (!thoughts.firstChild) thoughts.append(thoughtsOf(turn));
      const pre = thoughts.querySelector("pre");
      if (pre.textContent !== turn.thoughts) pre.textContent = turn.thoughts;
    }
    redraw(tools, JSON.stringify([...turn.tools]), () => turn.tools.size ? [toolList(turn.tools)] : []);
    drawApprovals(asks, household, turn.id);
    if (shown.get(row) !== turn.text) {
      shown.set(row, turn.text);
      write(text, turn.text);
    }
    if (turn.state === "failed") {
      const question = [...messages.values()].reverse().find((one) => one.classList.contains("person"));
      const again = household.maySend && question && (() => {
        household.turns.delete(turn.id);
        dropLive(turn.id);
        answerAnew(household, id, question.message);
      });
      const words = turn.isCancelled ? say("chat.stopped") : turn.error;
      redraw(state, `${words} ${Boolean(again)}`, () => [turn.isCancelled ? h("div.row.wrap.cut", h("span.quiet", words), again && h("button", { onclick: again }, icon("retry"), say("common.try_again"))) : failure({ message: words, code: turn.code, key: turn.key, request: "chat" }, again)]);
    } else {
      const waits = [...household.approvals.values()].some((one) => one.turn_id === turn.id);
      const isBusy = [...turn.tools.values()].some((call) => !call.result);
      const words = waits ? say("chat.waits")
        : household.waiting.has(turn.id) ? say("chat.waits_for_others")
        : isBusy ? say("chat.working")
        : turn.waits ? say("chat.busy", { seconds: turn.waits })
        : turn.text ? "" : say("chat.thinking");
      redraw(state, words, () => words ? [h("p.thinking", words)] : []);
    }
    return row;
  }

  function welcome() {
    const hour = new Date().getHours();
    const greeting = hour < 5 ? "hello" : hour < 12 ? "morning" : hour < 18 ? "afternoon" : "evening";
    const name = called(household.identity?.user);
    log.replaceChildren(h("li.welcome",
      sign(56),
      h("h2", name ? say(`chat.greeting.${greeting}`, { name }) : say(`chat.greeting_all.${greeting}`)),
      household.maySend || !household.identity
        ? h("p", say("chat.ask"))
        : h("p", say("chat.guest")),
      home,
      household.config?.provider === "offline" && connectModel(household.isAdmin, household.identity?.admin)));
    lookAtDay();
  }

  /** Shows what the day brings, if it brings anything. */
  async function lookAtDay() {
    if (id || opening || !household.identity) return;
    const today = await household.read("today").catch(() => ({}));
    const isEmpty = !Object.values(today).some((one) => Array.isArray(one) && one.length);
    if (isEmpty || stop.signal.aborted) return void home.replaceChildren();
    homing(({ drawHome }) => drawHome(home, household, today, composing.send));
  }

  function toEnd(isAsked) {
    if (isAsked) {
      pinned = null;
      if (hasNewer) return void read().then(replace).then(() => toEnd(true)).catch(complain);
      isAtEnd = true;
    }
    scroller.scrollTop = scroller.scrollHeight;
  }

  function send(text, attachments, more) {
    const message = household.send(text.trim(), id, attachments, fresh ? { ...more, model: fresh } : more);
    if (!id) {
      opening = message;
      log.replaceChildren();
    }
    schedule();
    toEnd(true);
  }
}

/** Asks a question once more. The earlier version is kept, with what followed it. */
function answerAnew(household, id, question, model) {
  household.send(question.content, id, question.attachments, { replaces: question.id, ...(model && { model }) });
}

/** Redraws only when `content` changes, so that buttons keep the focus. */
function redraw(place, content, make) {
  if (place.dataset.content === content) return;
  place.dataset.content = content;
  place.replaceChildren(...make());
}

/** How to connect a model: first what a person with a phone can do. */
export function connectModel(isAdmin, admin) {
  return h("section.card.first",
    h("h2", say("chat.no_model_yet")),
    h("p", say("chat.rules_answer")),
    isAdmin
      ? h("p", h("a.button", { href: "#/settings" }, say("chat.choose_provider")))
      : h("p", admin ? say("chat.admin_connects", { admin }) : say("chat.an_admin_connects")),
    isAdmin && h("details", h("summary", say("chat.in_terminal")),
      h("p", say("chat.ollama")),
      commands("hearth config set model NAME", "hearth config set provider ollama")));
}
