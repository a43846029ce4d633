// A socket through a relay, encrypted end to end. It has the interface of a
// WebSocket, so that the rest of the page is the same with and without a relay.

import { Channel, ChannelError, Initiator, machineIdOf } from "./noise.js";
import { say } from "./words.js";

const TIMEOUT = 20000;
/** For private use (RFC 6455 section 7.4.2). */
const CLOSED = 4000;
const ALTERED = say("relay.altered");
const TOO_OLD = say("relay.too_old");
const SILENT = say("relay.silent");

const toBase64 = (bytes) => btoa(String.fromCharCode(...bytes));
const fromBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** An error of the relay itself, which is not authenticated. */
function refused({ status, code, error }) {
  if (status !== "error") return new ChannelError(ALTERED);
  return new ChannelError(code === "not_found" ? say("relay.away") : say("relay.reports", { error }));
}

export class RelaySocket {
  #socket;
  #machine;
  #noise = null;
  #channel = null;
  #sending = Promise.resolve();
  #receiving = Promise.resolve();
  #timer;
  #isEnded = false;
  onopen = null;
  onmessage = null;
  onclose = null;

  /** Connects. `relay` is the address of its /ws, `machine` the ID, `token` the relay token. */
  constructor({ relay, machine, token }) {
    this.#machine = machine;
    this.#timer = setTimeout(() => this.#end(say("relay.machine_silent")), TIMEOUT);
    try {
      this.#socket = new WebSocket(`${relay}?machine_id=${machine}`, ["hearth.v1", `bearer.${token}`]);
    } catch {
      // After the constructor returns, so that `onclose` is set.
      queueMicrotask(() => this.#end(say("relay.characters")));
      return;
    }
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => this.#ask({ type: "machine_key" });
    this.#socket.onmessage = ({ data }) => this.#inTurn(() => this.#receive(data));
    this.#socket.onclose = ({ reason }) => this.#inTurn(() => this.#end(this.#noise ? reason : reason || SILENT));
  }

  /** Sends a text, in order. */
  send(text) {
    this.#sending = this.#sending.then(async () => {
      for (const message of await this.#channel.seal(text)) this.#socket.send(message);
    }).catch(() => this.#end(say("relay.not_encrypted")));
  }

  close() {
    this.#end("");
  }

  #inTurn(step) {
    this.#receiving = this.#receiving.then(() => !this.#isEnded && step())
      .catch((error) => this.#end(error instanceof ChannelError ? error.message : error.name === "NotSupportedError" ? TOO_OLD : ALTERED));
  }

  #ask(message) {
    this.#socket.send(JSON.stringify(message));
  }

  async #receive(data) {
    if (this.#channel) {
      // The machine sends binary messages only. A text is from the relay, and says why it closes.
      if (typeof data === "string") throw refused(JSON.parse(data));
      const text = await this.#channel.open(new Uint8Array(data));
      if (text !== null) this.onmessage?.({ data: text });
      return;
    }
    const answer = JSON.parse(data);
    if (answer.status !== "ok") throw refused(answer);
    if (!this.#noise) {
      const key = fromBase64(answer.data.public_key);
      if (key.length !== 32 || await machineIdOf(key) !== this.#machine) {
        throw new ChannelError(say("relay.other_machine"));
      }
      this.#noise = await Initiator.of(new TextEncoder().encode(`hearth-1${this.#machine}`), key);
      this.#ask({ type: "secure", noise: toBase64(await this.#noise.write()) });
      return;
    }
    await this.#noise.read(fromBase64(answer.data.noise)).catch(() => {
      throw new ChannelError(say("relay.no_proof"));
    });
    this.#channel = new Channel(await this.#noise.split());
    clearTimeout(this.#timer);
    this.onopen?.();
  }

  /** The close codes of the relay are not authenticated, so they are ignored. */
  #end(problem) {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearTimeout(this.#timer);
    this.#socket?.close(CLOSED);
    this.onclose?.({ code: CLOSED, problem });
  }
}
