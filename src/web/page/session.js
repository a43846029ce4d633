// Signing in and out. The token lives in this tab, or in this browser when the
// person asks for it.

const KEY = "hearth.token";

/** The token kept from earlier, or null. */
export function token() {
  return sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);
}

/** Forgets the token in this browser. */
export function forget() {
  sessionStorage.removeItem(KEY);
  localStorage.removeItem(KEY);
}

/** Signs in. Throws an Error whose message is for the person. */
export async function signIn(username, password, stay) {
  let response;
  try {
    response = await fetch("/auth", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ username, password }),
    });
  } catch {
    throw new Error("Hearth does not answer. Is it running, and is this device on the same network?");
  }
  const answer = await response.json().catch(() => ({}));
  if (answer.status !== "ok") throw new Error(reason(response, answer));
  forget();
  (stay ? localStorage : sessionStorage).setItem(KEY, answer.data.token);
}

function reason(response, answer) {
  const wait = Number(response.headers.get("Retry-After"));
  if (response.status === 429 && wait) {
    return `Too many wrong attempts. Try again in ${wait < 90 ? `${wait} seconds` : `${Math.ceil(wait / 60)} minutes`}.`;
  }
  if (answer.code === "invalid_token") return "That name and password do not go together.";
  return answer.error ?? `The server answered with status ${response.status}.`;
}

/** Revokes the token on the server and forgets it here, even when the server is away. */
export async function signOut() {
  const revoked = token();
  forget();
  if (!revoked) return;
  await fetch("/auth", { method: "DELETE", headers: { Authorization: `Bearer ${revoked}` } }).catch(() => {});
}
