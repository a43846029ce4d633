// Webhook accounts, and their callbacks with a button to retry.

import { h, card, icon, moment, commands, options, complain, rowList } from "./dom.js";
import { fill } from "./list.js";

const STATES = [["", "All"], ["pending", "Pending"], ["held", "Waiting for an earlier one"], ["delivered", "Delivered"], ["dead", "Given up"]];

/** The page. */
export async function show(household) {
  const accounts = Object.entries(Object.assign({}, ...household.config.channels.filter((one) => one.type === "webhook").map((one) => one.accounts)));
  const filter = h("select", { "aria-label": "Show deliveries", onchange: () => load() }, options(STATES));
  const rows = rowList();
  let later;
  const changed = () => {
    clearTimeout(later);
    later = setTimeout(load, 300);
  };
  household.addEventListener("delivery", changed);
  await draw();
  return {
    element: h("div.page",
      card("Accounts", accounts.length
        ? h("ul.rows", accounts.map(account))
        : [h("p", "There are no webhook accounts yet. With an account a program can send messages over HTTP and receive the replies. To add one, run this on the machine where Hearth runs:"), commands("hearth webhook add doorbell --url http://127.0.0.1:8123/api/webhook/hearth")]),
      h("div.row", h("h2", "Deliveries"), filter),
      rows),
    close: () => {
      clearTimeout(later);
      household.removeEventListener("delivery", changed);
    },
  };

  function load() {
    draw().catch(complain);
  }

  async function draw() {
    const state = filter.value ? { state: filter.value } : {};
    const { deliveries } = await household.request("list_deliveries", { ...state, limit: 100 });
    fill(rows, deliveries, delivery, "There are no deliveries. Replies to webhooks appear here with their delivery status.");
  }

  function account([name, one]) {
    return h("li", h("div.grow", h("strong", name),
      h("p.small", "Receives messages at ", h("code", one.incoming_path), ", sends replies to ", h("code", one.outgoing_url)),
      h("p.quiet.small", one.secret_set ? "with a secret" : "without a secret",
        one.model && ` · model ${one.model}`, one.permission_mode && ` · tools: ${one.permission_mode}`, one.tools && ` · only ${one.tools.join(", ") || "no tools"}`)));
  }

  function delivery(one) {
    const words = Object.fromEntries(STATES)[one.state] ?? one.state;
    return h("li",
      h("div.grow", h("strong", one.account), " ", h("span.badge", words),
        h("p.quiet.small", moment(one.created_at), ` · ${one.attempts} ${one.attempts === 1 ? "attempt" : "attempts"}`,
          one.state === "pending" && one.next_at && [" · next attempt ", moment(one.next_at)],
          " · ", h("a", { href: `#/c/${one.conversation_id}` }, "conversation")),
        one.last_error && one.state !== "delivered" && h("p.problem.small", one.last_error)),
      one.state !== "delivered" && h("button", { onclick: (event) => again(one, event.currentTarget) }, icon("retry"), "Retry"));
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
