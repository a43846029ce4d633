// What a device needs to trust the authority of this home.

import { h, card } from "./dom.js";
import { say } from "./more.js";
import { savedEndpoint } from "./session.js";

/** The fingerprint to compare with the one of the page that explains how; none without an authority. */
export async function trustCard(household) {
  const { authority } = await household.request("server_info");
  const { relay, address } = savedEndpoint();
  const page = `${address ? `${address}/` : location.origin + location.pathname}trust`;
  return authority && card(say("trust.title"),
    !isSecureContext && h("p", say("trust.plain")),
    h("p", say("trust.fingerprint"), " ", h("code", authority)),
    !relay && h("p", h("a", { href: page, target: "_blank", rel: "noopener" }, say("trust.steps"))));
}
