// Webhook accounts, and their callbacks with a button to retry.

import { h, card, facts, icon, lazily, moment, options, complain, rowList } from "./dom.js";
import { changes, fill, onlyTools } from "./list.js";
import { count, pieces, say } from "./more.js";

const STATES = ["pending", "held", "delivered", "dead"];

const trying = lazily(() => import("./trying.js"));

/** The page. */
export async function show(household) {
  const filter = h("select", { "aria-label": say("webhooks.show"), onchange: () => draw().catch(complain) }, options([["", say("webhooks.all")], ...STATES.map((state) => [state, say(`webhooks.state.${state}`)])]));
  const accounts = rowList();
  const rows = rowList();
  let later;
  const { remover, watch } = changes(household, draw);
  const changed = () => {
    clearTimeout(later);
    later = setTimeout(() => draw().catch(complain), 300);
  };
  household.addEventListener("delivery", changed);
  const stop = watch("config");
  await draw();
  return {
    element: h("div.page",
      card(say("webhooks.accounts"), h("p.help", say("trying.add")), accounts,
        h("div.row", h("button.primary", { onclick: () => trying(({ addAccount }) => addAccount(household).catch(complain)) }, icon("plus"), say("trying.add_account")))),
      h("div.row", h("h2", say("webhooks.deliveries")), filter),
      rows),
    close: () => {
      clearTimeout(later);
      stop();
      household.removeEventListener("delivery", changed);
    },
  };

  async function draw() {
    const known = household.config.channels.filter((one) => one.type === "webhook").map((one) => one.accounts);
    fill(accounts, Object.entries(Object.assign({}, ...known)), account, say("webhooks.no_accounts"));
    const state = filter.value ? { state: filter.value } : {};
    const { deliveries } = await household.request("list_deliveries", { ...state, limit: 100 });
    fill(rows, deliveries, delivery, say("webhooks.no_deliveries"));
  }

  function account([name, one]) {
    return h("li", h("div.grow", h("strong", name),
      h("p.small", pieces("webhooks.addresses", { incoming: h("code", one.incoming_path), outgoing: h("code", one.outgoing_url) })),
      h("p.quiet.small", facts(say(one.secret_set ? "webhooks.secret" : "webhooks.no_secret"),
        one.model && say("webhooks.model", { model: one.model }), one.permission_mode && say("common.tools_mode", { mode: say(`common.mode.${one.permission_mode}`) }), onlyTools(one.tools)))),
      h("span.row", one.enabled === false ? null : h("button", { "aria-label": say("trying.test_of", { name }), onclick: () => trying(({ tryAccount }) => tryAccount(household, name).catch(complain)) }, say("trying.test")),
        remover(say("common.remove"), { what: name, text: say("trying.remove_text", { name }) }, "remove_webhook_account", { name })));
  }

  function delivery(one) {
    return h("li",
      h("div.grow", h("strong", one.account), " ", h("span.badge", say(`webhooks.state.${one.state}`)),
        h("p.quiet.small", facts(moment(one.created_at), count("webhooks.attempts", one.attempts),
          one.state === "pending" && one.next_at && pieces("webhooks.next", { time: moment(one.next_at) }),
          h("a", { href: `#/c/${one.conversation_id}` }, say("common.conversation")))),
        one.last_error && one.state !== "delivered" && h("p.problem.small", one.last_error)),
      one.state !== "delivered" && h("button", { onclick: (event) => again(one, event.currentTarget) }, icon("retry"), say("webhooks.retry")));
  }

  async function again(one, button) {
    button.disabled = true;
    try {
      await household.request("retry_delivery", { delivery_id: one.delivery_id });
      await draw();
    } catch (error) {
      complain(error);
      button.disabled = false;
    }
  }
}
