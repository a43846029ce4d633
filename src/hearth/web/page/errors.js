// The last warnings and errors of the server, in words, with the page where each is mended.

import { h, card, moment } from "./dom.js";
import { pageOf } from "./remedy.js";
import { sentence } from "./session.js";
import { say } from "./more.js";

/** Most that are shown. */
const SHOWN = 20;

/** The part of the status page. */
export async function errorsCard(household) {
  const { errors } = await household.request("list_errors");
  const shown = errors.slice(-SHOWN).reverse().map((line) => line.match(/^(\S+) +(WARN|ERROR) +(.*)$/)).filter(Boolean);
  const row = ([, time, level, text]) => {
    const to = pageOf({ message: text });
    return h("li", h("div.grow", h("span", { class: level === "ERROR" ? "problem" : "" }, sentence(text)),
      h("p.quiet.small", level === "ERROR" ? say("errors.error") : say("errors.warning"), " · ", moment(time))), to && h("a", { href: `#/${to.page}` }, to.label));
  };
  return card(say("errors.title"), shown.length ? h("ul.rows", shown.map(row)) : h("p.quiet", say("errors.none")));
}
