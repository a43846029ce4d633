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
  const side = await Initiator.of(bytes(vector.prologue), remote, await pairOf(bytes(vector.initiator_ephemeral_private)));
  const [first, second, ...rest] = vector.messages;
  same(hex(await side.write(bytes(first.payload))), first.ciphertext, "message 1");
  same(hex(await side.read(bytes(second.ciphertext))), second.payload, "message 2");
  const ciphers = await side.split();
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
  return vector.texts.length;
})
