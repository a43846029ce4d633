// Whether this browser shows notifications, even while the page is closed (Web Push).

import { h, card } from "./dom.js";
import { PUSH_KEY } from "./session.js";
import { pieces, say } from "./more.js";

/** The part of the account page. */
export function pushCard(household) {
  const note = h("p", { role: "status" });
  const on = h("input", { type: "checkbox", name: "push", checked: isOn(household) });
  on.addEventListener("change", async () => {
    on.disabled = true;
    note.className = "quiet";
    note.textContent = on.checked ? say("push.asking") : "";
    try {
      await (on.checked ? turnOn(household) : turnOff(household));
      note.className = "good";
      note.textContent = on.checked ? say("push.is_on") : "";
    } catch (error) {
      on.checked = !on.checked;
      note.className = "problem";
      note.textContent = error.message;
    }
    on.disabled = false;
  });
  return card(say("push.title"),
    h("p.help", say("push.help")),
    hindrance() ?? h("div", h("label.check", on, say("push.on")), note));
}

/** Tells the server again, because its session or its key may be another one. */
export async function renew(household) {
  if (isOn(household) && !hindrance()) await subscribe(household);
}

function isOn({ identity }) {
  return localStorage.getItem(PUSH_KEY) === identity.user && globalThis.Notification?.permission === "granted";
}

/** Why this browser cannot be told, and what helps. */
function hindrance() {
  const help = (page, words) => h("a", { href: `#/help/${page}` }, words);
  if (!isSecureContext) {
    return h("p", pieces("push.needs_https", { how: help("encryption", say("push.how")), others: help("reminders/notifications", say("push.others")) }));
  }
  if (!navigator.serviceWorker || !globalThis.PushManager || !globalThis.Notification) {
    return h("p", say("push.cannot"));
  }
  if (Notification.permission === "denied") {
    return h("p", say("push.blocked"));
  }
  return null;
}

async function turnOn(household) {
  if (await Notification.requestPermission() !== "granted") throw new Error(say("push.refused"));
  await subscribe(household);
  localStorage.setItem(PUSH_KEY, household.identity.user);
}

async function turnOff(household) {
  localStorage.removeItem(PUSH_KEY);
  const worker = await navigator.serviceWorker.getRegistration(new URL("..", import.meta.url));
  const subscription = await worker?.pushManager.getSubscription();
  if (!subscription) return;
  await household.request("push_unsubscribe", { endpoint: subscription.endpoint });
  await subscription.unsubscribe();
}

async function subscribe(household) {
  const { push_key: key } = await household.request("server_info");
  if (!key) throw new Error(say("push.no_key"));
  const { pushManager } = await installed();
  let subscription = await pushManager.getSubscription();
  if (subscription && encoded(subscription.options?.applicationServerKey) !== key) {
    await subscription.unsubscribe();
    subscription = null;
  }
  subscription ??= await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  await household.request("push_subscribe", { subscription: subscription.toJSON() });
}

/** The worker, once it runs. Its address has no version, so that it stays the same one. */
async function installed() {
  const registration = await navigator.serviceWorker.register(new URL("../worker.js", import.meta.url));
  const worker = registration.installing ?? registration.waiting;
  if (!registration.active) {
    await new Promise((resolve, reject) => {
      const look = () => {
        if (worker.state === "activated") resolve();
        else if (worker.state === "redundant") reject(new Error(say("push.not_installed")));
      };
      worker.addEventListener("statechange", look);
      look();
    });
  }
  return registration;
}

function encoded(buffer) {
  const text = btoa(String.fromCharCode(...new Uint8Array(buffer ?? [])));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
