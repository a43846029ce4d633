// The senders of webhook accounts and of Telegram that are a person: linking them, and ending that.

import { h, card, copyButton, moment, options, rowList, timeOfDay } from "./dom.js";
import { changes, fill, row } from "./list.js";
import { pieces, say } from "./more.js";

/** The part of the account page, where there is something to link or to end. */
export async function sendersCard(household) {
  const channels = household.config.channels ?? [];
  const accounts = channels.flatMap((one) => one.type === "telegram" ? [["telegram", "Telegram"]]
    : Object.entries(one.accounts ?? {}).filter(([, account]) => account.secret_set).map(([name]) => [name, name]));
  const rows = rowList();
  const made = h("p", { role: "status" });
  const { tried, remover } = changes(household, draw);
  if (!await draw() && !accounts.length) return null;
  const which = h("select", options(accounts));
  const form = h("form", h("label", say("senders.account"), which), h("button.primary", { type: "submit" }, say("senders.make_code")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    tried(link);
  });
  return card(say("senders.title"), h("p.help", say("senders.about")), rows, accounts.length > 0 && [form, made]);

  async function draw() {
    const { senders } = await household.request("list_senders");
    fill(rows, senders, (one) => row([h("strong", one.sender), " ", h("span.badge", one.account)], pieces("common.since", { time: moment(one.created_at) }),
      remover(say("senders.end"), { what: one.sender, text: say("senders.end_text", { sender: one.sender, account: one.account }) }, "unlink_sender", { account: one.account, sender: one.sender })), say("senders.none"));
    return senders.length;
  }

  /** Shows a code, which is good once. */
  async function link() {
    const { code, expires_at: until } = await household.request("link_sender", { account: which.value });
    const text = `/link ${code}`;
    made.replaceChildren(...pieces("senders.send", { code: h("code", text), time: timeOfDay(until) }), " ", copyButton(() => text));
  }
}
