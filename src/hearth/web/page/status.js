// The status of the server.

import { h, card, duration, moment } from "./dom.js";

const EVERY = 10000;
/** Most rows of the table of what was used. */
const USAGE_ROWS = 60;
const NUMBER = new Intl.NumberFormat();

/** The page. */
export async function show(household) {
  // Nothing on it takes the focus, and the keyboard must scroll it.
  const page = h("div.page", { tabindex: "0" });
  await draw();
  const timer = setInterval(() => { if (!document.hidden) draw().catch(() => {}); }, EVERY);
  return { element: page, close: () => clearInterval(timer) };

  async function draw() {
    const [info, used] = await Promise.all([
      household.request("server_info"),
      household.isAdmin && household.request("get_usage", { by: "purpose", limit: USAGE_ROWS }),
    ]);
    const facts = [
      ["Version", info.version],
      ["Uptime", duration(info.uptime_seconds)],
      ["Connections", NUMBER.format(info.connections)],
      ["Conversations", NUMBER.format(info.conversations)],
      ...(info.database_bytes ? [["Database", `${(info.database_bytes / 1048576).toFixed(1)} MB`]] : []),
    ];
    page.replaceChildren(...[
      h("dl.facts", facts.map(([name, value]) => h("div", h("dt", name), h("dd", value)))),
      bars("Tokens used", { input: info.tokens.input, "of which cached": info.tokens.cached, output: info.tokens.output }, "No model has been used yet."),
      used && usage(used.usage),
      bars("Messages in progress", info.turns, "No messages are waiting for a reply."),
      household.isAdmin && bars("Webhook deliveries", info.deliveries, "There are no undelivered callbacks."),
      budget(info.budget),
      standing("MCP servers", info.mcp_servers, (one) => [one.name, one.state, one.problem]),
      standing("Models", info.models, (one) => [`${one.model} at ${one.provider}`, one.state, one.retry_in_seconds && `retry in ${duration(one.retry_in_seconds)}`]),
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

/** Who used what, and what for, and what that cost where prices are set. */
function usage(rows) {
  if (!rows.length) return null;
  const columns = [
    ["Month", (row) => row.month],
    ["Person", (row) => row.person ?? ""],
    ["For", (row) => row.purpose],
    ["Model", (row) => row.model],
    ["Sent", (row) => NUMBER.format(row.input)],
    ["From the cache", (row) => NUMBER.format(row.cached)],
    ["Answered", (row) => NUMBER.format(row.output)],
    ...(rows.some((row) => row.cost) ? [["Cost", (row) => row.cost ?? ""]] : []),
  ];
  return card("Tokens by person and purpose", h("div.table", { tabindex: 0, role: "group", "aria-label": "Tokens by person and purpose" },
    h("table", h("thead", h("tr", columns.map(([name]) => h("th", name)))),
      h("tbody", rows.map((row) => h("tr", columns.map(([, cell]) => h("td", cell(row)))))))));
}

/** A list of components with their state and problem. */
function standing(title, list, describe) {
  if (!list?.length) return null;
  return card(title, h("ul.rows", list.map((one) => {
    const [name, state, problem, about] = describe(one);
    return h("li", h("div.grow", h("strong", name), " ", h("span.badge", state),
      about && h("p.quiet.small", about), problem && h("p.problem.small", problem)));
  })));
}

/** A link to a relay. Once it is linked, earlier errors do not matter. */
function relay({ url, state, clients, last_error: error, next_try: next }) {
  if (state === "linked") return [url, state, null, `${clients} ${clients === 1 ? "connection" : "connections"} through it`];
  return [url, state, error, next && ["Next attempt: ", moment(next)]];
}

function backup(one) {
  if (!one) return null;
  const words = !one.keep ? "Nightly backups are off (“backup.keep” is 0)."
    : one.newest ? ["The newest is from ", moment(`${one.newest}T12:00`), `. The last ${one.keep} are kept.`]
    : `The first will be made tonight. The last ${one.keep} are kept.`;
  return card("Nightly backups", h("p", words), one.problem && h("p.problem", one.problem));
}

function budget(one) {
  if (!one?.monthly_tokens) return null;
  const used = one.used_this_month;
  const total = typeof used === "number" ? used : used.input + used.output;
  return card("Budget this month", h("div.bars",
    h("span", "tokens"), h("progress", { max: String(one.monthly_tokens), value: String(total), "aria-label": "Used this month" }),
    h("span", `${NUMBER.format(total)} of ${NUMBER.format(one.monthly_tokens)}`)));
}
