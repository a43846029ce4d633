// A socket through a relay that cannot read what it carries. It has the face
// of a WebSocket, so that the rest of the page need not know.

import { Channel, Distrust, Initiator, machineIdOf } from "./noise.js";

const PATIENCE = 20000;
/** Ours to choose (RFC 6455 section 7.4.2); nobody but a debugger sees it. */
const CLOSED = 4000;
const ALTERED = "What came through the relay is not what your machine sent, so the connection was closed.";
const TOO_OLD = "This browser is too old to talk through a relay: it lacks X25519. Update it.";
const SILENT = "The relay does not answer, or does not let you in. Check its address and the relay token.";

const toBase64 = (bytes) => btoa(String.fromCharCode(...bytes));
const fromBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** What the relay itself says, which nobody has vouched for. */
function refused({ status, code, error }) {
  if (status !== "error") return new Distrust(ALTERED);
  return new Distrust(code === "not_found" ? "Your machine is not connected to this relay at the moment, or the machine id is wrong." : `The relay says: ${error}.`);
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

  /** Dials. `relay` is the address of its /ws, `machine` the id, `token` the relay's own. */
  constructor({ relay, machine, token }) {
    this.#machine = machine;
    this.#timer = setTimeout(() => this.#end("Your machine does not answer through the relay."), PATIENCE);
    try {
      this.#socket = new WebSocket(`${relay}?machine_id=${machine}`, ["hearth.v1", `bearer.${token}`]);
    } catch {
      // After this returns, so that `onclose` can be set.
      queueMicrotask(() => this.#end("That relay address or relay token has letters that cannot be right."));
      return;
    }
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => this.#ask({ type: "machine_key" });
    this.#socket.onmessage = ({ data }) => this.#inTurn(() => this.#receive(data));
    this.#socket.onclose = ({ reason }) => this.#inTurn(() => this.#end(this.#noise ? reason : reason || SILENT));
  }

  /** Sends a text, after those before it. */
  send(text) {
    this.#sending = this.#sending.then(async () => {
      for (const message of await this.#channel.seal(text)) this.#socket.send(message);
    }).catch(() => this.#end("The message could not be encrypted."));
  }

  close() {
    this.#end("");
  }

  #inTurn(step) {
    this.#receiving = this.#receiving.then(() => !this.#isEnded && step())
      .catch((error) => this.#end(error instanceof Distrust ? error.message : error.name === "NotSupportedError" ? TOO_OLD : ALTERED));
  }

  #ask(message) {
    this.#socket.send(JSON.stringify(message));
  }

  async #receive(data) {
    if (this.#channel) {
      // Your machine speaks in binary from here on: a text is the relay's own, and says why it ends.
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
        throw new Distrust("The relay presented another machine than the one that you named, so nothing was sent. If the machine id is right, do not trust this relay.");
      }
      this.#noise = await Initiator.of(new TextEncoder().encode(`hearth-1${this.#machine}`), key);
      this.#ask({ type: "secure", noise: toBase64(await this.#noise.write()) });
      return;
    }
    await this.#noise.read(fromBase64(answer.data.noise)).catch(() => {
      throw new Distrust("Whoever answers through the relay cannot prove to be your machine, so nothing was sent. Do not trust this relay.");
    });
    this.#channel = new Channel(await this.#noise.split());
    clearTimeout(this.#timer);
    this.onopen?.();
  }

  /** The codes of the relay are its own word, so none is passed on. */
  #end(problem) {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearTimeout(this.#timer);
    this.#socket?.close(CLOSED);
    this.onclose?.({ code: CLOSED, problem });
  }
}
