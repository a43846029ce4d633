// The WebSocket to the server: requests by id, events in order. Reconnecting after
// an interruption neither loses nor repeats anything.

import { sentence } from "./session.js";
import { say, spoken } from "./words.js";

const LONGEST_WAIT = 30000;
const REQUEST_TIMEOUT = 30000;

/** An error response of the server. */
export class RequestError extends Error {
  /** `admin` can do what one may not do oneself; `key` names the sentence in every language; `request` is what was asked for. */
  constructor(code, message, { key, admin, request } = {}) {
    super(explain({ code, message, key, admin }));
    Object.assign(this, { code, key, request });
  }
}

/** What only an admin can mend: by the keys of errors, and by what those without one name. */
const FOR_ADMINS = /^error\.(budget|files_full)|\badmin|`hearth |\b(limits|voice|backup)\.[a-z]|\bdisk\b|database/;

/** An error as a sentence. In place of what only an admin understands it names one to ask. */
export function explain({ code, message, key = "error.model", admin }) {
  if (admin && code === "server_error" && key.startsWith("error.model")) return say("connection.ask_later", { admin });
  return admin && (code === "unauthorized" || FOR_ADMINS.test(key) || FOR_ADMINS.test(message)) ? `${sentence(message)} ${say("connection.ask", { admin })}` : sentence(message);
}

/**
 * Fires `state` (connecting, open, or waiting because of a `problem`), `ready`
 * (signed in and subscribed; detail.lost when missed events are gone), `event`, and
 * `rejected` when the token is no longer valid.
 */
export class Connection extends EventTarget {
  #dial;
  #token;
  #socket = null;
  #requests = new Map();
  #nextId = 1;
  #lastSeq = null;
  #missedUntil = 0;
  #tries = 0;
  #timer = null;
  #alive = null;
  #closed = false;
  #isOpen = false;
  identity = null;

  /** `dial` opens a socket. */
  constructor(dial, token) {
    super();
    this.#dial = dial;
    this.#token = token;
    this.wake = () => { if (this.#timer && document.visibilityState === "visible") this.retryNow(); };
    addEventListener("online", this.wake);
    document.addEventListener("visibilitychange", this.wake);
  }

  /** Connects. Call once. */
  open() {
    this.#emit("state", { state: "connecting" });
    const socket = this.#dial();
    this.#socket = socket;
    socket.onopen = () => this.#begin(socket);
    socket.onmessage = (message) => this.#receive(JSON.parse(message.data));
    socket.onclose = (event) => { if (this.#socket === socket) this.#lost(event); };
  }

  /** Closes it permanently. */
  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#alive);
    removeEventListener("online", this.wake);
    document.removeEventListener("visibilitychange", this.wake);
    this.#socket?.close();
  }

  /** Reconnects without waiting for the timer. */
  retryNow() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.open();
  }

  /**
   * Sends a command and resolves to its data. With `keep`, it is sent again after an
   * interruption, so it must be safe to repeat (`chat` with its idempotency_key, and
   * everything read-only, which a view asks for before the page is connected, too).
   */
  request(type, fields = {}, { keep = /^(get|list)_/.test(type), timeout = REQUEST_TIMEOUT } = {}) {
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      const entry = { type, text: JSON.stringify({ ...fields, type, id }), keep, resolve, reject, timer: null };
      if (timeout) {
        entry.timer = setTimeout(() => {
          if (this.#requests.delete(id)) reject(new RequestError("timeout", say("connection.timeout")));
        }, timeout);
      }
      this.#requests.set(id, entry);
      if (this.#isOpen) this.#socket.send(entry.text);
      else if (!keep) this.#settle(id, (entry) => entry.reject(new RequestError("offline", say("connection.offline"))));
    });
  }

  async #begin(socket) {
    try {
      this.identity = await this.#direct({ type: "auth", token: this.#token, language: spoken });
      const since = this.#lastSeq === null ? {} : { since: this.#lastSeq };
      const subscribed = await this.#direct({ type: "subscribe", ...since }, (data) => {
        // In the same step, because missed events follow immediately.
        if (this.#lastSeq === null || data.events_lost) this.#lastSeq = data.seq;
        this.#missedUntil = data.seq;
      });
      if (this.#socket !== socket) return;
      this.#tries = 0;
      this.#isOpen = true;
      clearInterval(this.#alive);
      this.#alive = setInterval(() => this.#probe(socket), 25000);
      for (const { text } of this.#requests.values()) socket.send(text);
      this.#emit("state", { state: "open" });
      this.#emit("ready", { lost: subscribed.events_lost });
    } catch (error) {
      if (error.code === "invalid_token") {
        this.close();
        this.#emit("rejected", { reason: error.message });
      } else {
        socket.close();
      }
    }
  }

  /** A request of the greeting itself, before others may be sent. */
  #direct(message, atOnce = () => {}) {
    return new Promise((resolve, reject) => {
      const id = `hello-${this.#nextId++}`;
      const timer = setTimeout(() => this.#socket.close(), REQUEST_TIMEOUT);
      const done = (data) => { atOnce(data); resolve(data); };
      this.#requests.set(id, { text: "", keep: false, resolve: done, reject, timer });
      this.#socket.send(JSON.stringify({ ...message, id }));
    });
  }

  /** A dead network says nothing: ask, and dial anew when no answer comes. */
  async #probe(socket) {
    try {
      await this.request("ping", {}, { timeout: 10000 });
    } catch (error) {
      if (error.code === "timeout" && this.#socket === socket) {
        socket.onclose = null;
        socket.close();
        this.#lost({ code: 1006 });
      }
    }
  }

  #receive(message) {
    if (message.type === "event") {
      if (this.#lastSeq !== null && message.seq <= this.#lastSeq) return;
      this.#lastSeq = message.seq;
      message.isMissed = message.seq <= this.#missedUntil;
      this.#emit("event", message);
      return;
    }
    this.#settle(message.id, (entry) => {
      if (message.status === "ok") entry.resolve(message.data);
      else entry.reject(new RequestError(message.code, message.error, { key: message.key, admin: this.identity?.admin, request: entry.type }));
    });
  }

  #settle(id, how) {
    const entry = this.#requests.get(id);
    if (!entry) return;
    this.#requests.delete(id);
    clearTimeout(entry.timer);
    how(entry);
  }

  #lost(event) {
    this.#isOpen = false;
    clearInterval(this.#alive);
    if (this.#closed) return;
    for (const [id, entry] of this.#requests) {
      if (!entry.keep) this.#settle(id, () => entry.reject(new RequestError("offline", say("connection.lost"))));
    }
    if (event.code === 1008) {
      this.close();
      this.#emit("rejected", { reason: event.reason });
      return;
    }
    // Exponential backoff with full jitter, so that not all tabs reconnect at once.
    const wait = 300 + Math.random() * Math.min(LONGEST_WAIT, 500 * 2 ** this.#tries++);
    this.#timer = setTimeout(() => this.retryNow(), wait);
    this.#emit("state", { state: "waiting", problem: event.problem });
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** A key for one message: however often it is sent, it runs once. */
export function idempotencyKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `web-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
