// A link that sets a password, as the admin hands it over.

import { h, called, moment, copyButton } from "./dom.js";
import { savedEndpoint, serverURL } from "./session.js";
import { pieces, say } from "./more.js";

/** The address of the page of this server; throws where this page is served by another one. */
export function pageAddress() {
  if (savedEndpoint().relay) throw new Error(say("link.not_by_relay"));
  return serverURL("./").href;
}

/** Whether an address is one that other devices do not reach. */
const isHere = (url) => /^https?:\/\/(localhost|127\.|\[::1\])/.test(url);

/** Shows a link, once. */
export function showLink({ name, link, qr, expires_at: until }) {
  const title = say("link.title", { name: called(name) });
  const dialog = h("dialog", { "aria-label": title }, h("form", { method: "dialog" },
    h("h2", title),
    h("p", pieces("link.text", { name: called(name), time: moment(until) })),
    isHere(link) && h("p.problem", say("link.here_only")),
    h("div.row.centre", picture(qr)),
    h("p", h("code", link), " ", copyButton(() => link)),
    h("div.row.end", h("button", { type: "submit", class: "primary" }, say("common.done")))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** Shows the address of the page for the next device. */
export async function showAddress(household) {
  const url = savedEndpoint().relay ? location.href.split("#")[0] : serverURL("./").href;
  const { qr } = await household.request("draw_address", { url });
  const dialog = h("dialog", { "aria-label": say("link.another_device") }, h("form", { method: "dialog" },
    h("h2", say("link.another_device")),
    h("p", isHere(url) ? say("link.here_only") : say("link.point")),
    h("div.row.centre", picture(qr)),
    h("p", h("code", url), " ", copyButton(() => url)),
    h("div.row.end", h("button", { type: "submit", class: "primary" }, say("common.done")))));
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
  const svg = make("svg", { viewBox: `0 0 ${size} ${size}`, width: 256, height: 256, role: "img", "aria-label": say("link.qr"), "shape-rendering": "crispEdges" });
  svg.append(make("path", { d: `M0 0h${size}v${size}H0z`, fill: "#fff" }), make("path", { d: dark.join(""), fill: "#000" }));
  return svg;
}
