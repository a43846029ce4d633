// How the server is doing.

import { h, duration, commands } from "./dom.js";

const EVERY = 10000;
const NUMBER = new Intl.NumberFormat();

/** The page. */
export async function show(household) {
  const page = h("div", { class: "page" });
  await draw();
  const timer = setInterval(() => { if (!document.hidden) draw().catch(() => {}); }, EVERY);
  return { element: page, close: () => clearInterval(timer) };

  async function draw() {
    const info = await household.connection.request("server_info");
    const facts = [
      ["Version", info.version],
      ["Running for", duration(info.uptime_seconds)],
      ["Connections", NUMBER.format(info.connections)],
      ["Conversations", NUMBER.format(info.conversations)],
      ...(info.database_bytes ? [["Database", `${(info.database_bytes / 1048576).toFixed(1)} MB`]] : []),
    ];
    page.replaceChildren(...[
      h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
      bars("Tokens used", { read: info.tokens.input, "of it cached": info.tokens.cached, written: info.tokens.output }, "No language model has been asked yet."),
      bars("Messages under way", info.turns, "Nothing is waiting for a reply."),
      household.isAdmin && bars("Webhook deliveries", info.deliveries, "Nothing has been delivered by webhook yet."),
      budget(info.budget),
      standing("MCP servers", info.mcp_servers, (one) => [one.name, one.state, one.problem]),
      standing("Models", info.models, (one) => [`${one.model} at ${one.provider}`, one.state, one.retry_in_seconds && `asked again in ${duration(one.retry_in_seconds)}`]),
      standing("Relays", info.relays, (one) => [one.url, one.state, one.last_error]),
      household.isAdmin && h("section", { class: "card" }, h("h2", {}, "People and tokens"),
        h("p", {}, "Who may use Hearth is decided where it runs. To add somebody, and to make a token for a program:"),
        commands("hearth user add NAME --role user", "hearth token create --name PURPOSE --user NAME", "hearth user list")),
    ].filter(Boolean));
  }
}

/** A small chart: a bar for each number. */
function bars(title, numbers, empty) {
  const entries = Object.entries(numbers).filter(([, count]) => count > 0);
  const most = Math.max(1, ...entries.map(([, count]) => count));
  return h("section", { class: "card" }, h("h2", {}, title), entries.length
    ? h("div", { class: "bars" }, entries.flatMap(([name, count]) => [
      h("span", {}, name), h("progress", { max: String(most), value: String(count), "aria-label": name }), h("span", {}, NUMBER.format(count)),
    ]))
    : h("p", { class: "quiet" }, empty));
}

/** What each of some parts is doing, and what is wrong with it. */
function standing(title, list, describe) {
  if (!list?.length) return null;
  return h("section", { class: "card" }, h("h2", {}, title), h("ul", { class: "rows" }, list.map((one) => {
    const [name, state, problem] = describe(one);
    return h("li", {}, h("div", { class: "grow" }, h("strong", {}, name), " ", h("span", { class: "badge" }, state), problem && h("p", { class: "problem small" }, problem)));
  })));
}

function budget(one) {
  if (!one?.monthly_tokens) return null;
  const used = one.used_this_month;
  const total = typeof used === "number" ? used : used.input + used.output;
  return h("section", { class: "card" }, h("h2", {}, "Budget of this month"), h("div", { class: "bars" },
    h("span", {}, "tokens"), h("progress", { max: String(one.monthly_tokens), value: String(total), "aria-label": "Used this month" }),
    h("span", {}, `${NUMBER.format(total)} of ${NUMBER.format(one.monthly_tokens)}`)));
}
