// Signing in and out, and how to reach the server. The token is kept in this tab, or
// in this browser if the person chooses to stay signed in.

import { count, language, say } from "./words.js";

/** Before the names of what is being written, by conversation. */
export const DRAFT = "hearth.draft.";
const KEY = "hearth.token";
const RELAY_KEY = "hearth.relay_token";
/** The role of who is signed in, so that a page that is loaded again knows it at once. */
export const ROLE_KEY = "hearth.role";
/** Who has this browser notified. */
export const PUSH_KEY = "hearth.push";
/** Which theme this browser shows, and whether it has shown the first steps. */
export const THEME_KEY = "hearth.theme";
export const GUIDED_KEY = "hearth.guided";
const ENDPOINT_KEY = "hearth.way";
const TIMEOUT = 30000;
/** Only an exported page has its policy in a meta element. It has no server of its own. */
export const isExported = document.querySelector("meta[http-equiv]") !== null;

const kept = (key) => sessionStorage.getItem(key) ?? localStorage.getItem(key);

/** An error of the server as a sentence, without the ids of what it is about. A name at its beginning stays as it is written. */
export const sentence = (text) => text?.replace(/^[a-z]+_[0-9a-z]{13}: | [a-z]+_[0-9a-z]{13}\b/g, "").replace(/^[a-z]+(?=[ ,:])/, (word) => word[0].toUpperCase() + word.slice(1)).replace(/[^.!?…]$/, "$&.");

/** The stored token, or null. */
export const token = () => kept(KEY);

/** How this device reached the server last: {relay, machine, token}, {address}, or {} for the page's own server. */
export function savedEndpoint() {
  return { ...JSON.parse(localStorage.getItem(ENDPOINT_KEY) ?? "{}"), token: kept(RELAY_KEY) };
}

/** Deletes the tokens from this browser. */
export function forget() {
  for (const key of [KEY, RELAY_KEY, ROLE_KEY]) {
    sessionStorage.removeItem(key);
    localStorage.removeItem(key);
  }
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(DRAFT)) sessionStorage.removeItem(key);
}

function parse(text, scheme) {
  try {
    return new URL(text.includes("://") ? text : `${scheme}://${text}`);
  } catch {
    throw new Error(say("session.not_an_address", { text }));
  }
}

/** Parses the address of a relay, which may include the machine. Throws an Error with a message for a person. */
export function relayEndpoint(text, machine, token) {
  const url = parse(text.trim(), "wss");
  const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  const scheme = /^(ws|http):$/.test(url.protocol) ? "ws" : "wss";
  if (scheme === "ws" && !isLocal) throw new Error(say("session.wss"));
  const id = (machine.trim() || url.searchParams.get("machine_id") || "").toLowerCase();
  if (!/^[a-z2-7]{32}$/.test(id)) throw new Error(say("session.machine_id"));
  return { relay: `${scheme}://${url.host}${url.pathname === "/" ? "/ws" : url.pathname}`, machine: id, token: token.trim() };
}

/** Parses the address of a server. */
export function serverEndpoint(text) {
  const url = parse(text.trim(), location.protocol.slice(0, -1));
  return { address: `${url.protocol.replace("ws", "http")}//${url.host}${url.pathname.replace(/\/+$/, "")}` };
}

/** What the server has at a path. Its page may be below a path of another server. */
export const serverURL = (path, { address } = savedEndpoint()) => new URL(path, address ? `${address}/` : location.href);

/** A function that opens a socket to the server. */
export async function dialer(to) {
  if (to.relay) {
    const { RelaySocket } = await import("./relay.js");
    return () => new RelaySocket(to);
  }
  const address = serverURL("ws", to);
  address.protocol = address.protocol.replace("http", "ws");
  return () => new WebSocket(address);
}

/** Signs in. Throws an Error with a message for a person. */
export async function signIn(to, username, password, stay) {
  const answer = await (to.relay ? askThrough(await dialer(to), { type: "auth", username, password, language }) : post(to, { username, password, language }));
  if (answer.status !== "ok") throw new Error(reason(answer));
  keep(to, answer.data.token, stay);
}

/** Tells whose link this is; with a password, sets it and signs in. */
export async function useLink(secret, password, stay) {
  const answer = await post({}, { invitation: secret, language, ...(password && { password }) });
  if (answer.status !== "ok") throw new Error(answer.code === "invalid_token" ? sentence(answer.error) : reason(answer));
  if (password) keep({}, answer.data.token, stay);
  return answer.data;
}

function keep(to, session, stay) {
  forget();
  const storage = stay ? localStorage : sessionStorage;
  storage.setItem(KEY, session);
  const { token, ...rest } = to;
  if (token) storage.setItem(RELAY_KEY, token);
  localStorage.setItem(ENDPOINT_KEY, JSON.stringify(rest));
}

async function post(to, body) {
  let response;
  try {
    response = await fetch(serverURL("auth", to), {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Error(to.address
      ? say("session.silent_at", { address: to.address, origin: location.origin })
      : say("session.silent"));
  }
  return response.json().catch(() => ({ error: say("session.status", { status: response.status }) }));
}

/** Makes one request on its own socket. */
function askThrough(dial, message) {
  return new Promise((resolve, reject) => {
    const socket = dial();
    const timer = setTimeout(() => socket.close(), TIMEOUT);
    socket.onopen = () => socket.send(JSON.stringify(message));
    socket.onmessage = ({ data }) => {
      resolve(JSON.parse(data));
      socket.close();
    };
    socket.onclose = ({ problem }) => {
      clearTimeout(timer);
      reject(new Error(problem || say("session.relay_lost")));
    };
  });
}

function reason({ code, error, retry_after: wait }) {
  if (wait) return wait < 90 ? count("session.wait_seconds", wait) : count("session.wait_minutes", Math.ceil(wait / 60));
  if (code === "invalid_token") return say("session.wrong");
  return sentence(error);
}
