// The status of the server.

import { h, called, card, duration, moment } from "./dom.js";
import { count, locale, named, pieces, say } from "./more.js";

const EVERY = 10000;
/** Most rows of the table of what was used. */
const USAGE_ROWS = 60;
const NUMBER = new Intl.NumberFormat(locale);
const MONTH = new Intl.DateTimeFormat(locale, { month: "short", year: "numeric" });
const MEGABYTES = new Intl.NumberFormat(locale, { style: "unit", unit: "megabyte", maximumFractionDigits: 1 });

/** The page. */
export async function show(household) {
  // Nothing on it takes the focus, and the keyboard must scroll it.
  const page = h("div.page", { tabindex: "0" });
  await draw();
  const timer = setInterval(() => { if (!document.hidden) draw().catch(() => {}); }, EVERY);
  return { element: page, close: () => clearInterval(timer) };

  async function draw() {
    const [info, wrong, used] = await Promise.all([
      household.request("server_info"),
      household.isAdmin && import("./errors.js").then(({ errorsCard }) => errorsCard(household)),
      household.isAdmin && household.request("get_usage", { by: "purpose", limit: USAGE_ROWS }),
    ]);
    const facts = [
      [say("status.version"), info.version],
      [say("status.uptime"), duration(info.uptime_seconds)],
      [say("status.connections"), NUMBER.format(info.connections)],
      [say("conversations.conversations"), NUMBER.format(info.conversations)],
      ...(info.database_bytes ? [[say("status.database"), MEGABYTES.format(info.database_bytes / 1048576)]] : []),
    ];
    page.replaceChildren(...[
      h("dl.facts", facts.map(([name, value]) => h("div", h("dt", name), h("dd", value)))),
      wrong,
      bars(say("status.tokens"), { input: info.tokens.input, cached: info.tokens.cached, output: info.tokens.output }, say("status.no_tokens")),
      used && usage(used.usage),
      bars(say("status.turns"), info.turns, say("status.no_turns")),
      household.isAdmin && bars(say("status.deliveries"), info.deliveries, say("status.no_deliveries")),
      budget(info.budget),
      serversCard(info.mcp_servers),
      standing(say("status.models"), info.models, (one) => [say("status.model_at", { model: one.model, provider: one.provider }), one.state, one.retry_in_seconds && say("status.retry_in", { time: duration(one.retry_in_seconds) })]),
      standing(say("status.relays"), info.relays, relay),
      backup(info.backup),
    ].filter(Boolean));
  }
}

/** A small chart: a bar for each number. */
function bars(title, numbers, empty) {
  const entries = Object.entries(numbers).filter(([, count]) => count > 0);
  const most = Math.max(1, ...entries.map(([, count]) => count));
  return card(title, entries.length
    ? h("div.bars", entries.map(([name, count]) => [named("status.word", name), count]).flatMap(([name, count]) => [
      h("span", name), h("progress", { max: String(most), value: String(count), "aria-label": name }), h("span", NUMBER.format(count)),
    ]))
    : h("p.quiet", empty));
}

/** Who used what, and what for, and what that cost where prices are set. */
function usage(rows) {
  if (!rows.length) return null;
  const columns = [
    [say("status.column.month"), (row) => MONTH.format(new Date(`${row.month}-02T12:00`))],
    [say("status.column.person"), (row) => called(row.person) ?? ""],
    [say("status.column.purpose"), (row) => named("status.word", row.purpose)],
    [say("common.model"), (row) => row.model],
    [say("status.column.sent"), (row) => NUMBER.format(row.input)],
    [say("status.column.cached"), (row) => NUMBER.format(row.cached)],
    [say("status.column.answered"), (row) => NUMBER.format(row.output)],
    ...(rows.some((row) => row.cost) ? [[say("status.column.cost"), (row) => row.cost ?? ""]] : []),
  ];
  return card(say("status.by_person"), h("div.table", { tabindex: 0, role: "group", "aria-label": say("status.by_person") },
    h("table", h("thead", h("tr", columns.map(([name]) => h("th", name)))),
      h("tbody", rows.map((row) => h("tr", columns.map(([, cell]) => h("td", cell(row)))))))));
}

/** A list of components with their state and problem. */
function standing(title, list, describe) {
  if (!list?.length) return null;
  return card(title, h("ul.rows", list.map((one) => {
    const [name, state, problem, about] = describe(one);
    return h("li", h("div.grow", h("strong", name), " ", h("span.badge", named("status.word", state)),
      about && h("p.quiet.small", about), problem && h("p.problem.small", problem)));
  })));
}

/** The MCP servers, and what keeps one from working. */
export const serversCard = (servers) => standing(say("status.mcp_servers"), servers, (one) => [one.name, one.state, one.problem]);

/** A link to a relay. Once it is linked, earlier errors do not matter. */
function relay({ url, state, clients, last_error: error, next_try: next }) {
  if (state === "linked") return [url, state, null, count("status.through", clients)];
  return [url, state, error, next && pieces("status.next", { time: moment(next) })];
}

function backup(one) {
  if (!one) return null;
  const words = !one.keep ? say("status.no_backups")
    : one.newest ? pieces("status.newest_backup", { time: moment(`${one.newest}T12:00`), keep: one.keep })
    : say("status.first_backup", { keep: one.keep });
  return card(say("status.backups"), h("p", words), one.problem && h("p.problem", one.problem));
}

function budget(one) {
  if (!one?.monthly_tokens) return null;
  const used = one.used_this_month;
  const total = typeof used === "number" ? used : used.input + used.output;
  return card(say("status.budget"), h("div.bars",
    h("span", say("status.budget_tokens")), h("progress", { max: String(one.monthly_tokens), value: String(total), "aria-label": say("status.used") }),
    h("span", say("common.of", { at: NUMBER.format(total), all: NUMBER.format(one.monthly_tokens) }))));
}
