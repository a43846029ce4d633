// Signing in and out, and the way to the server. The token lives in this tab,
// or in this browser when the person asks for it.

const KEY = "hearth.token";
const RELAY_KEY = "hearth.relay_token";
const WAY = "hearth.way";
const PATIENCE = 30000;
/** Only an exported page says what it may do by itself: it has no server of its own. */
export const isExported = document.querySelector("meta[http-equiv]") !== null;

const kept = (key) => sessionStorage.getItem(key) ?? localStorage.getItem(key);

/** The token kept from earlier, or null. */
export const token = () => kept(KEY);

/** How this device reached the server last: {relay, machine, token}, {address}, or nothing for the page's own. */
export function way() {
  return { ...JSON.parse(localStorage.getItem(WAY) ?? "{}"), token: kept(RELAY_KEY) };
}

/** Forgets the tokens in this browser. */
export function forget() {
  for (const key of [KEY, RELAY_KEY]) {
    sessionStorage.removeItem(key);
    localStorage.removeItem(key);
  }
}

function parse(text, scheme) {
  try {
    return new URL(text.includes("://") ? text : `${scheme}://${text}`);
  } catch {
    throw new Error(`“${text}” is not an address.`);
  }
}

/** A relay's address as people give it, which may name the machine too. Throws what a person can act on. */
export function relayWay(text, machine, token) {
  const url = parse(text.trim(), "wss");
  const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  const scheme = /^(ws|http):$/.test(url.protocol) ? "ws" : "wss";
  if (scheme === "ws" && !isLocal) throw new Error("A relay is reached by an address that begins with wss://");
  const id = (machine.trim() || url.searchParams.get("machine_id") || "").toLowerCase();
  if (!/^[a-z2-7]{32}$/.test(id)) throw new Error("A machine id has 32 letters and digits. “hearth relay status” at home shows it.");
  return { relay: `${scheme}://${url.host}${url.pathname === "/" ? "/ws" : url.pathname}`, machine: id, token: token.trim() };
}

/** A server's address as people give it. */
export function addressWay(text) {
  const url = parse(text.trim(), location.protocol.slice(0, -1));
  return { address: `${url.protocol.replace("ws", "http")}//${url.host}` };
}

/** What opens a socket to the server. */
export async function dialer(to) {
  if (to.relay) {
    const { RelaySocket } = await import("./relay.js");
    return () => new RelaySocket(to);
  }
  const address = new URL("/ws", to.address ?? location.href);
  address.protocol = address.protocol.replace("http", "ws");
  return () => new WebSocket(address);
}

/** Signs in. Throws an Error whose message is for the person. */
export async function signIn(to, username, password, stay) {
  const answer = await (to.relay ? askThrough(await dialer(to), { type: "auth", username, password }) : post(to, { username, password }));
  if (answer.status !== "ok") throw new Error(reason(answer));
  forget();
  const storage = stay ? localStorage : sessionStorage;
  storage.setItem(KEY, answer.data.token);
  const { token, ...rest } = to;
  if (token) storage.setItem(RELAY_KEY, token);
  localStorage.setItem(WAY, JSON.stringify(rest));
}

async function post(to, body) {
  let response;
  try {
    response = await fetch(new URL("/auth", to.address ?? location.href), {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Error(to.address
      ? `Hearth at ${to.address} does not answer this page. Is it running, and does “allowed_origins” there have ${location.origin}?`
      : "Hearth does not answer. Is it running, and is this device on the same network?");
  }
  return response.json().catch(() => ({ error: `The server answered with status ${response.status}.` }));
}

/** One request on a socket of its own. */
function askThrough(dial, message) {
  return new Promise((resolve, reject) => {
    const socket = dial();
    const timer = setTimeout(() => socket.close(), PATIENCE);
    socket.onopen = () => socket.send(JSON.stringify(message));
    socket.onmessage = ({ data }) => {
      resolve(JSON.parse(data));
      socket.close();
    };
    socket.onclose = ({ problem }) => {
      clearTimeout(timer);
      reject(new Error(problem || "The connection through the relay broke off."));
    };
  });
}

function reason({ code, error, retry_after: wait }) {
  if (wait) return `Too many wrong attempts. Try again in ${wait < 90 ? `${wait} seconds` : `${Math.ceil(wait / 60)} minutes`}.`;
  if (code === "invalid_token") return "That name and password do not go together.";
  return error;
}
