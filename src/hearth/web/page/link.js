// A link that sets a password, as the admin hands it over.

import { h, moment, copyButton } from "./dom.js";
import { savedEndpoint, serverURL } from "./session.js";

/** The address of the page of this server; throws where this page is served by another one. */
export function pageAddress() {
  if (savedEndpoint().relay) throw new Error("Links can be made at home, or with “hearth user invite” on the machine, but not through a relay.");
  return serverURL("./").href;
}

/** Shows a link, once. */
export function showLink({ name, link, qr, expires_at: until }) {
  const dialog = h("dialog", { "aria-label": `Link for ${name}` }, h("form", { method: "dialog" },
    h("h2", `Link for ${name}`),
    h("p", `With it ${name} chooses a password and is signed in. It works once, until `, moment(until), ". Hand it over to nobody else. It is not shown again."),
    h("div.row.centre", picture(qr)),
    h("p", h("code", link), " ", copyButton(() => link)),
    h("div.row.end", h("button", { type: "submit", class: "primary" }, "Done"))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** Shows the address of the page for the next device. */
export async function showAddress(household) {
  const url = savedEndpoint().relay ? location.href.split("#")[0] : serverURL("./").href;
  const { qr } = await household.request("draw_address", { url });
  const isHere = /^https?:\/\/(localhost|127\.|\[::1\])/.test(url);
  const dialog = h("dialog", { "aria-label": "Another device" }, h("form", { method: "dialog" },
    h("h2", "Another device"),
    h("p", isHere ? "This address works on this machine alone. Open the page under the machine’s name or address in your network, then look here again." : "Point the camera of the phone or tablet at the code, and sign in there."),
    h("div.row.centre", picture(qr)),
    h("p", h("code", url), " ", copyButton(() => url)),
    h("div.row.end", h("button", { type: "submit", class: "primary" }, "Done"))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** A QR code from its rows of 0 and 1, with the light area that readers need. */
function picture(rows) {
  const space = "http://www.w3.org/2000/svg";
  const make = (name, attributes) => {
    const element = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const size = rows.length + 8;
  const dark = rows.flatMap((row, y) => [...row].map((one, x) => (one === "1" ? `M${x + 4} ${y + 4}h1v1h-1z` : "")));
  const svg = make("svg", { viewBox: `0 0 ${size} ${size}`, width: 256, height: 256, role: "img", "aria-label": "As a QR code", "shape-rendering": "crispEdges" });
  svg.append(make("path", { d: `M0 0h${size}v${size}H0z`, fill: "#fff" }), make("path", { d: dark.join(""), fill: "#000" }));
  return svg;
}
