// The state of the page: conversations, turns in progress, messages being sent,
// approvals. Events from the connection update it; the views listen to its events.

import { explain, idempotencyKey } from "./connection.js";
import { names } from "./dom.js";
import { ROLE_KEY } from "./session.js";
import { say } from "./words.js";

const PAGE = 50;

/**
 * Fires `conversations`, `approvals`, `message` {conversation_id, message},
 * `turn` (the turn), `sent` (a message being sent changed), `reload`
 * (everything may have changed), `changed` {id} (a conversation must be read anew), `names` (people are called otherwise), `deleted` {id, why}, `config`, `delivery` and `list`.
 */
export class Household extends EventTarget {
  conversations = new Map();
  /** Where the list goes on: null at its end, undefined before it is loaded. */
  cursor;
  turns = new Map();
  /** Those that this person may answer. */
  approvals = new Map();
  /** Files that wait to be sent, by conversation. */
  unsent = new Map();
  /** Turns that wait for somebody's approval. */
  waiting = new Set();
  /** Messages being sent: {key, text, conversation, attachments, more, turn, error}. */
  outgoing = [];
  unread = new Set();
  /** Turns that are being looked up. */
  #sought = new Set();
  #isReady;
  /** Once it is known who is signed in, and what is set. */
  ready = new Promise((resolve) => { this.#isReady = resolve; });
  config = null;
  open = null;
  showsArchived = false;

  constructor(connection) {
    super();
    this.connection = connection;
    connection.addEventListener("event", ({ detail }) => this.#handle(detail));
    connection.addEventListener("ready", ({ detail }) => this.#ready(detail.lost));
  }

  get identity() {
    return this.connection.identity;
  }

  /** The role, also before the connection is there if this tab was signed in before. */
  get role() {
    return this.identity?.role ?? sessionStorage.getItem(ROLE_KEY);
  }

  get isAdmin() {
    return this.role === "admin";
  }

  get maySend() {
    return Boolean(this.role) && this.role !== "viewer";
  }

  /** A guest reads what is shared with them, and nothing of the household. */
  get isGuest() {
    return this.role === "viewer";
  }

  /** Whether this person may rename and delete a conversation. */
  mayChange({ owner, audience }) {
    if (!this.maySend || !audience) return this.maySend;
    return owner === this.identity.user || (this.isAdmin && (!owner || audience === "household"));
  }

  request(type, fields, options) {
    return this.connection.request(type, fields, options);
  }

  /** A read-only request, which is sent again after an interruption. */
  read(type, fields) {
    return this.request(type, fields, { keep: true });
  }

  /** Conversations: those that are pinned, then newest activity first; those put away only if they are asked for. */
  list() {
    return [...this.conversations.values()]
      .filter((one) => this.showsArchived || !one.archived || one.id === this.open)
      .sort((one, other) => Number(other.pinned ?? false) - Number(one.pinned ?? false) || (one.updated_at < other.updated_at ? 1 : -1));
  }

  /** Loads also what was put away, or leaves it out again. */
  async showArchived(isShown) {
    this.showsArchived = isShown;
    if (isShown) this.#keep(await this.read("list_conversations", { limit: 500, archived: true }));
    this.#emit("conversations");
  }

  #keep({ conversations }) {
    for (const one of conversations) {
      this.conversations.set(one.id, one);
      if (one.unread && (one.id !== this.open || document.hidden)) this.unread.add(one.id);
      else this.unread.delete(one.id);
    }
  }

  /** Learns what people are called. */
  async #nameThem() {
    const { people } = await this.read("list_people");
    names.clear();
    for (const one of people) names.set(one.name, one.display_name);
    this.#emit("names");
  }

  async loadConversations() {
    const page = await this.read("list_conversations", { limit: PAGE });
    this.#keep(page);
    if (this.cursor === undefined) this.cursor = page.next_cursor;
    this.#emit("conversations");
  }

  /** Loads one that the list may not have: an old or an archived one. */
  async know(id) {
    if (this.conversations.has(id)) return;
    this.#keep(await this.read("list_conversations", { conversation_id: id }));
    this.#emit("conversations");
  }

  async loadMoreConversations() {
    if (!this.cursor) return;
    const cursor = this.cursor;
    const page = await this.read("list_conversations", { limit: PAGE, cursor });
    if (this.cursor !== cursor) return;
    this.#keep(page);
    this.cursor = page.next_cursor;
    this.#emit("conversations");
  }

  async rename(id, title) {
    await this.request("rename_conversation", { conversation_id: id, title });
    this.#changed(id, { title });
  }

  /** Changes whether it is pinned or put away, for this person, or its model and instructions, for all. */
  async update(id, what) {
    const now = await this.request("update_conversation", { conversation_id: id, ...what });
    this.#changed(id, { pinned: false, archived: false, model: null, instructions: null, ...now });
  }

  /** Whether this person may replace and delete a message. */
  mayEdit({ speaker, conversation_id: id }, conversation = id) {
    const known = this.conversations.get(conversation);
    return this.maySend && (speaker === this.identity?.user || Boolean(known && this.mayChange(known)));
  }

  async share(id, audience) {
    const now = await this.request("share_conversation", { conversation_id: id, audience });
    this.#changed(id, { audience: now.audience });
  }

  async remove(id) {
    await this.request("delete_conversation", { conversation_id: id });
    this.#unask(id);
    this.#forget(id, say("household.deleted"));
  }

  /** A conversation is not there any more, or not for this person, who may still answer what it asks. */
  lose(id) {
    const asks = [...this.approvals.values()].some((one) => one.conversation_id === id);
    this.#forget(id, asks ? say("household.only_asks") : say("household.unseen"));
  }

  #changed(id, what) {
    const known = this.conversations.get(id);
    if (known) Object.assign(known, what);
    this.#emit("conversations");
  }

  #forget(id, why) {
    for (const turn of this.turnsOf(id)) this.turns.delete(turn.id);
    this.unread.delete(id);
    if (this.conversations.delete(id) || this.open === id) this.#emit("deleted", { id, why });
    this.#emit("approvals");
    this.#emit("conversations");
  }

  /** What a deleted conversation asked waits no more. */
  #unask(id) {
    for (const [name, one] of this.approvals) if (one.conversation_id === id) this.approvals.delete(name);
  }

  /** Unfinished and failed turns of a conversation. */
  turnsOf(conversation) {
    return [...this.turns.values()].filter((turn) => turn.conversation === conversation);
  }

  /** Loads a turn of which only the id is known. */
  async lookUp(id, conversation) {
    if (this.turns.has(id) || this.#sought.has(id)) return;
    this.#sought.add(id);
    const turn = await this.read("get_turn", { turn_id: id }).finally(() => this.#sought.delete(id));
    if (turn.state === "done") return;
    this.#end(this.#turn(id, conversation, true), turn);
  }

  /** Sends a message with files, and `more` fields such as `replaces`, repeatedly under the same key until there is a response. */
  send(text, conversation, attachments = [], more = {}) {
    const message = { key: idempotencyKey(), text, conversation, attachments, more, turn: null, error: null };
    this.outgoing.push(message);
    this.#emit("sent", message);
    const fields = { message: text, idempotency_key: message.key, surface: "page", ...more };
    if (conversation) fields.conversation_id = conversation;
    if (attachments.length) fields.attachments = attachments.map((one) => one.attachment_id);
    this.request("chat", fields, { keep: true, timeout: 0 }).then(
      (data) => this.#sent(message, data),
      (error) => this.#notSent(message, error),
    );
    return message;
  }

  async stop(turn) {
    await this.request("cancel", { turn_id: turn.id });
  }

  async decide(approval, decision) {
    const fields = { approval_id: approval.approval_id };
    if (decision === "deny") await this.request("deny", fields);
    else await this.request("approve", { ...fields, remember: decision });
    this.approvals.delete(approval.approval_id);
    this.#emit("approvals");
  }

  /** Nothing in a conversation is unread; `isNew` if something has just arrived there. */
  markRead(id, isNew = false) {
    if (!id) return;
    const wasUnread = this.unread.delete(id);
    if (wasUnread) this.#emit("conversations");
    if (wasUnread || isNew) this.request("mark_read", { conversation_id: id }).catch(() => {});
  }

  async #ready(lost) {
    sessionStorage.setItem(ROLE_KEY, this.identity.role);
    names.set(this.identity.user, this.identity.display_name);
    this.#emit("names");
    // Missed chat.delta events are not replayed, so streamed replies have a gap.
    for (const turn of this.turns.values()) turn.hasGap = true;
    if (lost) {
      this.turns.clear();
      this.conversations.clear();
      this.cursor = undefined;
    }
    try {
      const [config] = await Promise.all([
        this.read("get_config"),
        this.#nameThem(),
        this.loadConversations(),
        this.isGuest ? null : this.#loadApprovals(),
      ]);
      this.config = config;
      this.#isReady();
      this.#emit("config");
      await Promise.all([...this.turns.values()].map((turn) => this.#refresh(turn)));
      this.#emit("reload", { lost });
    } catch {
      // The connection was lost again; the next `ready` retries.
    }
  }

  async #refresh(turn) {
    const now = await this.read("get_turn", { turn_id: turn.id });
    if (now.state === "done") {
      this.turns.delete(turn.id);
      this.#emit("turn", { ...turn, state: "done" });
    } else if (turn.state !== "failed") {
      this.#end(turn, now);
    }
  }

  /** Marks a turn without a reply with its state from `get_turn`. */
  #end(turn, { state, code, key, error, response, text = "", seq = 0 }) {
    const isCancelled = state === "cancelled";
    // The reply so far, and the pieces that came while it was asked for.
    if (turn.hasGap) turn.text = text + turn.later.filter((one) => one.seq > seq).map((one) => one.text).join("");
    Object.assign(turn, { hasGap: false, later: [] });
    // What was said so far, even if some of its pieces were missed.
    if (response) turn.text = turn.isStored ? "" : response;
    turn.state = isCancelled || state === "failed" ? "failed" : "running";
    Object.assign(turn, { code, key, error: error && (turn.said ?? explain({ code, message: error, key, admin: this.identity?.admin })), isCancelled });
    this.#emit("turn", turn);
  }

  async #loadApprovals() {
    const { approvals } = await this.read("list_approvals");
    this.waiting = new Set(approvals.map((one) => one.turn_id));
    const mine = approvals.filter((one) => one.may_answer !== false);
    const isNew = mine.find((one) => !this.approvals.has(one.approval_id));
    this.approvals = new Map(mine.map((one) => [one.approval_id, one]));
    this.#emit("approvals", isNew && { isNew: true, approval: isNew });
  }

  #turn(id, conversation, hasGap) {
    let turn = this.turns.get(id);
    if (!turn) {
      turn = { id, conversation, text: "", hasGap, later: [], message: null, tools: new Map(), thoughts: "", state: "running", error: null };
      this.turns.set(id, turn);
    }
    return turn;
  }

  #handle(event) {
    const { turn_id: id, conversation_id: conversation } = event;
    // Whatever follows, the model is not waited for any more.
    if (this.turns.get(id)?.waits) this.turns.get(id).waits = 0;
    switch (event.event) {
      case "message.created":
        return this.#messageCreated(event);
      case "chat.delta": {
        const isKnown = this.turns.has(id);
        const turn = this.#turn(id, conversation, true);
        if (!turn.hasGap) turn.text += event.text;
        else turn.later.push(event);
        if (!isKnown) this.#refresh(turn).catch(() => {});
        return this.#emit("turn", turn);
      }
      case "chat.reasoning": {
        const turn = this.#turn(id, conversation, true);
        turn.thoughts += event.text;
        return this.#emit("turn", turn);
      }
      case "chat.waiting": {
        const turn = this.#turn(id, conversation, true);
        turn.waits = event.seconds;
        clearTimeout(turn.retry);
        turn.retry = setTimeout(() => {
          turn.waits = 0;
          if (this.turns.get(id) === turn) this.#emit("turn", turn);
        }, 1000 * event.seconds);
        return this.#emit("turn", turn);
      }
      case "chat.tool_call": {
        const turn = this.#turn(id, conversation, true);
        if (turn.thoughts) turn.thoughts = `${turn.thoughts.trimEnd()}\n\n`;
        turn.tools.set(event.call_id, { tool: event.tool, arguments: event.arguments, sentence: event.sentence, result: null });
        return this.#emit("turn", turn);
      }
      case "chat.tool_result": {
        const turn = this.#turn(id, conversation, true);
        const call = turn.tools.get(event.call_id);
        if (call) call.result = { ok: event.ok, summary: event.summary, mend: event.needs_admin && { message: this.isAdmin ? "" : say("connection.ask", { admin: this.identity.admin }), request: "tool" } };
        return this.#emit("turn", turn);
      }
      case "chat.done": {
        const turn = this.turns.get(id);
        this.turns.delete(id);
        this.#settled(conversation);
        return turn && this.#emit("turn", { ...turn, state: "done" });
      }
      case "chat.failed": {
        this.#end(this.#turn(id, conversation, true), { state: event.cancelled ? "cancelled" : "failed", code: event.code, key: event.key, error: event.error, response: event.text });
        return this.#settled(conversation);
      }
      case "approval.requested": {
        const call = this.#callOf(event);
        if (call) Object.assign(call, { approval: event.approval_id, isWaiting: true });
        // The asker hears of it, too, who may not be the one to answer.
        this.waiting.add(id);
        this.#emit("approvals");
        return this.#loadApprovals().catch(() => {});
      }
      case "approval.resolved": {
        const call = [...this.turns.get(id)?.tools.values() ?? []].find((one) => one.approval === event.approval_id);
        if (call) Object.assign(call, { decision: event.decision, isWaiting: false });
        this.waiting.delete(id);
        this.approvals.delete(event.approval_id);
        return this.#emit("approvals");
      }
      case "conversation.changed":
        this.loadConversations().catch(() => {});
        return event.marks_only || this.#emit("changed", { id: conversation });
      case "conversation.renamed":
        return this.#changed(conversation, { title: event.title });
      case "conversation.shared":
        return this.#shared(conversation, event);
      case "conversation.deleted": {
        // What is no longer shared is as good as deleted.
        const { owner } = this.conversations.get(conversation) ?? {};
        if (owner && owner !== this.identity?.user) return this.lose(conversation);
        this.#unask(conversation);
        return this.#forget(conversation, say("household.deleted"));
      }
      case "config.updated":
        return this.#configChanged();
      case "list.updated":
        return this.#emit("list", event);
      case "memory.updated":
        return this.#emit("memory", event);
      case "reminder.told":
        return import("./told.js").then(({ showTold }) => showTold(this, event));
      case "schedule.updated":
        return this.#emit("schedule", event);
      case "calendar.updated":
        return this.#emit("calendar", event);
      case "skill.updated":
        return this.#emit("skill", event);
      case "names.updated":
        return this.#nameThem().catch(() => {});
      case "people.updated":
        return this.#emit("people", event);
      case "delivery.updated":
        return this.#emit("delivery", event);
    }
  }

  /** The call of a turn that a request for approval is about. */
  #callOf({ turn_id: id, tool, arguments: given }) {
    return [...this.turns.get(id)?.tools.values() ?? []].find((call) =>
      call.tool === tool && !call.result && !call.approval && JSON.stringify(call.arguments) === JSON.stringify(given));
  }

  /** Other people see a conversation now, perhaps also this person. */
  #shared(id, { owner, audience }) {
    if (this.conversations.has(id)) this.#changed(id, { owner, audience });
    else this.loadConversations().catch(() => {});
  }

  #settled(conversation) {
    this.#emit("conversations");
    if (this.conversations.get(conversation)?.isProvisional) this.loadConversations().catch(() => {});
  }

  #messageCreated({ turn_id: id, conversation_id: conversation, message, isMissed }) {
    if (message.role === "user") {
      // A new message dismisses earlier failures.
      for (const turn of this.turnsOf(conversation)) if (turn.state === "failed") this.turns.delete(turn.id);
      this.#turn(id, conversation, isMissed).message = message;
      const mine = this.outgoing.find((one) => !one.turn && one.text.trim() === message.content.trim()
        && message.speaker === this.identity?.user && (one.conversation ?? conversation) === conversation);
      if (mine) {
        mine.turn = id;
        mine.conversation = conversation;
        this.#emit("sent", mine);
      }
    }
    else if (this.turns.has(id)) this.turns.get(id).isStored = true;
    const known = this.conversations.get(conversation);
    if (known) {
      known.updated_at = message.timestamp;
      known.message_count += 1;
    } else {
      // The server may commit a new conversation only with its reply; until then no
      // list has it.
      this.conversations.set(conversation, {
        id: conversation, title: message.content.trim().split("\n")[0].slice(0, 60), channel: null,
        created_at: message.timestamp, updated_at: message.timestamp, message_count: 1, isProvisional: true,
        owner: message.speaker === this.identity?.user ? message.speaker : null, audience: this.config?.privacy?.conversations,
      });
      this.loadConversations().catch(() => {});
    }
    if (conversation !== this.open || document.hidden) this.unread.add(conversation);
    this.#emit("conversations");
    this.#emit("message", { conversation, message });
  }

  #sent(message, data) {
    message.turn = data.turn_id;
    message.conversation = data.conversation_id;
    this.outgoing = this.outgoing.filter((one) => one !== message);
    this.#emit("sent", message);
  }

  #notSent(message, error) {
    if (error.code === "not_found" && message.conversation) this.lose(message.conversation);
    const turn = this.turns.get(message.turn);
    // A failed turn reports itself to everybody, and here in the person's own language.
    if (turn) {
      turn.said = error.message;
      if (turn.error && turn.error !== turn.said) this.#emit("turn", Object.assign(turn, { error: turn.said }));
    } else if (!message.turn) message.error = error;
    this.outgoing = this.outgoing.filter((one) => one !== message || one.error);
    this.#emit("sent", message);
  }

  /** Discards a message that could not be sent. */
  discard(message) {
    this.outgoing = this.outgoing.filter((one) => one !== message);
    this.#emit("sent", message);
  }

  async #configChanged() {
    this.config = await this.read("get_config");
    this.#emit("config");
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
