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
      relays(info.relays),
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
      h("span", {}, name), h("progress", { value: 0, "aria-label": name, ...bar(count, most) }), h("span", {}, NUMBER.format(count)),
    ]))
    : h("p", { class: "quiet" }, empty));
}

function bar(count, most) {
  return { value: String(count), max: String(most) };
}

function relays(list) {
  if (!list?.length) return null;
  return h("section", { class: "card" }, h("h2", {}, "Relays"), h("ul", { class: "rows" }, list.map((one) =>
    h("li", {}, h("div", { class: "grow" }, h("strong", {}, one.url), " ", h("span", { class: "badge" }, one.state), one.last_error && h("p", { class: "problem small" }, one.last_error))))));
}
