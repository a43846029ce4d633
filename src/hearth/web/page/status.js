// How the server is doing.

import { h, card, duration, moment } from "./dom.js";

const EVERY = 10000;
const NUMBER = new Intl.NumberFormat();

/** The page. */
export async function show(household) {
  const page = h("div.page");
  await draw();
  const timer = setInterval(() => { if (!document.hidden) draw().catch(() => {}); }, EVERY);
  return { element: page, close: () => clearInterval(timer) };

  async function draw() {
    const info = await household.request("server_info");
    const facts = [
      ["Version", info.version],
      ["Running for", duration(info.uptime_seconds)],
      ["Connections", NUMBER.format(info.connections)],
      ["Conversations", NUMBER.format(info.conversations)],
      ...(info.database_bytes ? [["Database", `${(info.database_bytes / 1048576).toFixed(1)} MB`]] : []),
    ];
    page.replaceChildren(...[
      h("dl.facts", facts.map(([name, value]) => h("div", h("dt", name), h("dd", value)))),
      bars("Tokens used", { read: info.tokens.input, "of it cached": info.tokens.cached, written: info.tokens.output }, "No language model has been asked yet."),
      bars("Messages under way", info.turns, "Nothing is waiting for a reply."),
      household.isAdmin && bars("Webhook deliveries", info.deliveries, "Nothing has been delivered by webhook yet."),
      budget(info.budget),
      standing("MCP servers", info.mcp_servers, (one) => [one.name, one.state, one.problem]),
      standing("Models", info.models, (one) => [`${one.model} at ${one.provider}`, one.state, one.retry_in_seconds && `asked again in ${duration(one.retry_in_seconds)}`]),
      standing("Relays", info.relays, relay),
      backup(info.backup),
    ].filter(Boolean));
  }
}

/** A small chart: a bar for each number. */
function bars(title, numbers, empty) {
  const entries = Object.entries(numbers).filter(([, count]) => count > 0);
  const most = Math.max(1, ...entries.map(([, count]) => count));
  return card(title, entries.length
    ? h("div.bars", entries.flatMap(([name, count]) => [
      h("span", name), h("progress", { max: String(most), value: String(count), "aria-label": name }), h("span", NUMBER.format(count)),
    ]))
    : h("p.quiet", empty));
}

/** What each of some parts is doing, and what is wrong with it. */
function standing(title, list, describe) {
  if (!list?.length) return null;
  return card(title, h("ul.rows", list.map((one) => {
    const [name, state, problem, about] = describe(one);
    return h("li", h("div.grow", h("strong", name), " ", h("span.badge", state),
      about && h("p.quiet.small", about), problem && h("p.problem.small", problem)));
  })));
}

/** A link to a relay. What went wrong before it was linked again is over. */
function relay({ url, state, clients, last_error: error, next_try: next }) {
  if (state === "linked") return [url, state, null, `${clients} ${clients === 1 ? "connection" : "connections"} through it`];
  return [url, state, error, next && ["Next try ", moment(next)]];
}

function backup(one) {
  if (!one) return null;
  const words = !one.keep ? "Nightly backups are switched off: “backup.keep” is 0."
    : one.newest ? ["The newest is of the night of ", moment(`${one.newest}T12:00`), `. The last ${one.keep} are kept.`]
    : `None yet: the first is made tonight. The last ${one.keep} are kept.`;
  return card("Nightly backups", h("p", words), one.problem && h("p.problem", one.problem));
}

function budget(one) {
  if (!one?.monthly_tokens) return null;
  const used = one.used_this_month;
  const total = typeof used === "number" ? used : used.input + used.output;
  return card("Budget of this month", h("div.bars",
    h("span", "tokens"), h("progress", { max: String(one.monthly_tokens), value: String(total), "aria-label": "Used this month" }),
    h("span", `${NUMBER.format(total)} of ${NUMBER.format(one.monthly_tokens)}`)));
}
