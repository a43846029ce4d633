// Shows what the server tells this browser while no page is open (Web Push). It is
// installed by push.js, for the folder that it is in: it never comes between the page and
// the server.

addEventListener("push", (event) => {
  const { title, body, tag, silent, actions, conversation_id: conversation, schedule_id: reminder } = event.data.json();
  event.waitUntil(registration.showNotification(title, { body, tag, silent, actions, data: { conversation, reminder } }));
});

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open({ ...event.notification.data, action: event.action }));
});

/** Shows a conversation in a page that is open, or in a new one. A button of a reminder is the page's to press, which is signed in. */
async function open(pressed) {
  const { conversation, reminder, action } = pressed;
  const page = new URL("../", registration.scope).href;
  const pages = await clients.matchAll({ type: "window", includeUncontrolled: true });
  const known = pages.find(({ url }) => url.split(/[?#]/)[0] === page);
  if (!known) return clients.openWindow(`${page}#/${action ? `reminders/${action}/${reminder}` : `c/${conversation}`}`);
  known.postMessage(pressed);
  return action ? undefined : known.focus();
}
