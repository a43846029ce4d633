// Plays a vector with the page's own module. Evaluated in the page.
(async (vector) => {
  const script = document.querySelector("script[type=module]").src;
  const { Initiator, Channel, machineIdOf } = await import(new URL("noise.js", script).href);
  const bytes = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const hex = (all) => Array.from(all, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const same = (found, expected, what) => { if (found !== expected) throw new Error(`${what}: ${found} is not ${expected}`); };

  // A private key becomes a pair by its product with the base point (RFC 7748).
  const pairOf = async (secret) => {
    const prefix = bytes("302e020100300506032b656e04220420");
    const privateKey = await crypto.subtle.importKey("pkcs8", new Uint8Array([...prefix, ...secret]), "X25519", false, ["deriveBits"]);
    const base = await crypto.subtle.importKey("raw", Uint8Array.from({ length: 32 }, (_, place) => (place ? 0 : 9)), "X25519", true, []);
    const point = await crypto.subtle.deriveBits({ name: "X25519", public: base }, privateKey, 256);
    return { privateKey, publicKey: await crypto.subtle.importKey("raw", point, "X25519", true, []) };
  };

  const remote = bytes(vector.responder_static_public);
  if (vector.machine_id) same(await machineIdOf(remote), vector.machine_id, "machine id");
  const [first, second, ...rest] = vector.messages;
  const shake = async () => {
    const side = await Initiator.of(bytes(vector.prologue), remote, await pairOf(bytes(vector.initiator_ephemeral_private)));
    same(hex(await side.write(bytes(first.payload))), first.ciphertext, "message 1");
    same(hex(await side.read(bytes(second.ciphertext))), second.payload, "message 2");
    return side.split();
  };
  const ciphers = await shake();
  const refused = async (channel, message, what) => {
    const text = await channel.open(message).catch(() => "refused");
    same(text, "refused", what);
  };
  // The same handshake once more gives the same keys: what one seals, the other opens.
  const loop = async (options) => {
    const [[sending], [receiving]] = [await shake(), await shake()];
    return { sending, channel: new Channel([null, receiving], options) };
  };
  for (const wrong of [[], [4, 65], [255, 65], [0, 0xff]]) {
    const { sending, channel } = await loop();
    await refused(channel, await sending.seal(new Uint8Array(wrong)), `flags and text ${wrong}`);
  }
  const patient = await loop({ rekeyEvery: 4 });
  const message = new Uint8Array([0, 65]);
  for (let count = 0; count < 20; count += 1) same(await patient.channel.open(await patient.sending.seal(message)), "A", "without another key");
  await refused(patient.channel, await patient.sending.seal(message), "too long without another key");
  const large = await loop();
  const piece = new Uint8Array(65001);
  piece[0] = 1;
  for (let count = 0; count < 129; count += 1) same(await large.channel.open(await large.sending.seal(piece)), null, "a piece");
  await refused(large.channel, await large.sending.seal(piece), "more than 8 MiB");
  if (!vector.texts) {
    for (const { from, payload, ciphertext } of rest) {
      if (from === "initiator") same(hex(await ciphers[0].seal(bytes(payload))), ciphertext, "sent");
      else same(hex(await ciphers[1].open(bytes(ciphertext))), payload, "received");
    }
    return rest.length;
  }
  const channel = new Channel(ciphers, { pieceBytes: vector.piece_bytes, rekeyEvery: vector.rekey_every });
  for (const { from, text } of vector.texts) {
    if (from === "initiator") {
      for (const message of await channel.seal(text)) same(hex(message), rest.shift().ciphertext, "sent");
    } else {
      let whole = null;
      while (whole === null) whole = await channel.open(bytes(rest.shift().ciphertext));
      same(whole, text, "received");
    }
  }
  same(rest.length, 0, "left over");
  await refused(channel, bytes(vector.messages.at(-1).ciphertext), "a replay");
  return vector.texts.length;
})
