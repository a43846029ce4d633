// End-to-end encryption to a machine behind a relay: Noise_NK_25519_AESGCM_SHA256
// (Noise revision 34) with WebCrypto, and splitting JSON texts into its transport
// messages.

import { say } from "./words.js";

const NAME = "Noise_NK_25519_AESGCM_SHA256";
const TAG = 16;
const MORE = 1;
const REKEY = 2;
/** A sender rekeys after this many messages, and at the latest this many later. */
const REKEY_EVERY = 2 ** 20;
const REKEY_LATE = 16;
const REKEY_TIME = 3600000;
const PIECE_BYTES = 65000;
const TEXT_BYTES = 8 * 2 ** 20;
const LAST_NONCE = 2n ** 64n - 1n;
const EMPTY = new Uint8Array(0);

/** Why the channel must be closed, as text for a person. */
export class ChannelError extends Error {}

const utf8 = (text) => new TextEncoder().encode(text);
const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

function join(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let place = 0;
  for (const part of parts) {
    whole.set(part, place);
    place += part.length;
  }
  return whole;
}

async function hmac(key, bytes) {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, bytes));
}

/** HKDF of Noise (section 4.3) with two outputs. */
async function hkdf(chain, input) {
  const key = await hmac(chain, input);
  const first = await hmac(key, new Uint8Array([1]));
  return [first, await hmac(key, join(first, new Uint8Array([2])))];
}

/** The id of the machine with this public key: base32 of part of its hash. */
export async function machineIdOf(publicKey) {
  const hash = await sha256(publicKey);
  let bits = "";
  for (const byte of hash.subarray(0, 20)) bits += byte.toString(2).padStart(8, "0");
  return bits.replace(/.{5}/g, (five) => "abcdefghijklmnopqrstuvwxyz234567"[parseInt(five, 2)]);
}

/** The CipherState of Noise. Calls must not overlap. */
class Cipher {
  #key;
  #nonce = 0n;

  static async of(bytes) {
    const cipher = new Cipher();
    await cipher.#take(bytes);
    return cipher;
  }

  async #take(bytes) {
    this.#key = await crypto.subtle.importKey("raw", bytes, "AES-GCM", false, ["encrypt", "decrypt"]);
  }

  async #run(how, nonce, bytes, additionalData) {
    const iv = new Uint8Array(12);
    new DataView(iv.buffer).setBigUint64(4, nonce);
    return new Uint8Array(await crypto.subtle[how]({ name: "AES-GCM", iv, additionalData }, this.#key, bytes));
  }

  seal(bytes, additional = EMPTY) {
    return this.#run("encrypt", this.#nonce++, bytes, additional);
  }

  open(bytes, additional = EMPTY) {
    return this.#run("decrypt", this.#nonce++, bytes, additional);
  }

  /** Changes the key; the nonce continues. */
  async rekey() {
    const bytes = await this.#run("encrypt", LAST_NONCE, new Uint8Array(32), EMPTY);
    await this.#take(bytes.subarray(0, 32));
  }
}

/** The initiator of the handshake, which knows the static key of the other side. */
export class Initiator {
  #hash;
  #chain;
  #cipher;
  #remote;
  #ephemeral;

  /** `ephemeral` is a key pair for tests; by default it is generated. */
  static async of(prologue, remoteStatic, ephemeral) {
    const self = new Initiator();
    self.#chain = self.#hash = join(utf8(NAME), new Uint8Array(32 - NAME.length));
    await self.#mixHash(prologue);
    await self.#mixHash(remoteStatic);
    self.#remote = remoteStatic;
    self.#ephemeral = ephemeral ?? await crypto.subtle.generateKey("X25519", false, ["deriveBits"]);
    return self;
  }

  /** The first message: e, es. */
  async write(payload = EMPTY) {
    const key = new Uint8Array(await crypto.subtle.exportKey("raw", this.#ephemeral.publicKey));
    await this.#mixHash(key);
    await this.#mixShared(this.#remote);
    const sealed = await this.#cipher.seal(payload, this.#hash);
    await this.#mixHash(sealed);
    return join(key, sealed);
  }

  /** The second message: e, ee. Returns its payload; throws if it is not authentic. */
  async read(message) {
    if (message.length < 32 + TAG) throw new ChannelError(say("relay.short"));
    const key = message.subarray(0, 32);
    const sealed = message.subarray(32);
    await this.#mixHash(key);
    await this.#mixShared(key);
    const payload = await this.#cipher.open(sealed, this.#hash);
    await this.#mixHash(sealed);
    return payload;
  }

  /** After the handshake: the ciphers for sending and for receiving. */
  async split() {
    return Promise.all((await hkdf(this.#chain, EMPTY)).map(Cipher.of));
  }

  async #mixHash(bytes) {
    this.#hash = await sha256(join(this.#hash, bytes));
  }

  /** WebCrypto itself rejects keys of low order. */
  async #mixShared(bytes) {
    const key = await crypto.subtle.importKey("raw", bytes, "X25519", false, []);
    const shared = await crypto.subtle.deriveBits({ name: "X25519", public: key }, this.#ephemeral.privateKey, 256);
    const [chain, secret] = await hkdf(this.#chain, new Uint8Array(shared));
    this.#chain = chain;
    this.#cipher = await Cipher.of(secret);
  }
}

/** Converts texts to and from transport messages. Calls must not overlap per direction. */
export class Channel {
  #sending;
  #receiving;
  #sent = 0;
  #received = 0;
  #rekeyed = Date.now();
  #pieces = [];
  #length = 0;

  constructor([sending, receiving], { pieceBytes = PIECE_BYTES, rekeyEvery = REKEY_EVERY } = {}) {
    this.#sending = sending;
    this.#receiving = receiving;
    this.pieceBytes = pieceBytes;
    this.rekeyEvery = rekeyEvery;
  }

  /** The messages that carry a text, in order. */
  async seal(text) {
    const bytes = utf8(text);
    const messages = [];
    let place = 0;
    do {
      const piece = bytes.subarray(place, place + this.pieceBytes);
      place += piece.length;
      this.#sent += 1;
      const rekeys = this.#sent >= this.rekeyEvery || Date.now() - this.#rekeyed >= REKEY_TIME;
      const flags = (place < bytes.length ? MORE : 0) | (rekeys ? REKEY : 0);
      messages.push(await this.#sending.seal(join(new Uint8Array([flags]), piece)));
      if (rekeys) {
        await this.#sending.rekey();
        this.#sent = 0;
        this.#rekeyed = Date.now();
      }
    } while (place < bytes.length);
    return messages;
  }

  /** The text that a message completes, or null. Throws if it is not authentic. */
  async open(message) {
    const plain = await this.#receiving.open(message);
    const flags = plain[0];
    this.#received += 1;
    this.#length += plain.length - 1;
    const isSound = flags <= (MORE | REKEY) && this.#length <= TEXT_BYTES && this.#received <= this.rekeyEvery + REKEY_LATE;
    if (!isSound) throw new ChannelError(say("relay.protocol"));
    this.#pieces.push(plain.subarray(1));
    if (flags & REKEY) {
      await this.#receiving.rekey();
      this.#received = 0;
    }
    if (flags & MORE) return null;
    const whole = join(...this.#pieces);
    this.#pieces = [];
    this.#length = 0;
    return new TextDecoder("utf-8", { fatal: true }).decode(whole);
  }
}
