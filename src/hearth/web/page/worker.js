// Shows what the server tells this browser while no page is open (Web Push). It is
// installed by push.js, for the folder that it is in: it never comes between the page and
// the server.

addEventListener("push", (event) => {
  const { title, body, tag, silent, conversation_id: conversation } = event.data.json();
  event.waitUntil(registration.showNotification(title, { body, tag, silent, data: conversation }));
});

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data));
});

/** Shows a conversation in a page that is open, or in a new one. */
async function open(conversation) {
  const page = new URL("../", registration.scope).href;
  const pages = await clients.matchAll({ type: "window", includeUncontrolled: true });
  const known = pages.find(({ url }) => url.split(/[?#]/)[0] === page);
  if (!known) return clients.openWindow(`${page}#/c/${conversation}`);
  known.postMessage({ conversation });
  return known.focus();
}
