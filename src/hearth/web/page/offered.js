// The models that people may choose: of those that the server offers.

import { h, complain, toast } from "./dom.js";
import { field, ticks } from "./forms.js";
import { say } from "./more.js";

/** The ticks, and what saves them. */
export function choices(household, offered, chosen) {
  const all = [...new Set([...chosen, ...offered])];
  const some = ticks(say("offered.models"), "model", all.map((name) => [name, name]), chosen);
  const search = h("input", { type: "search" });
  search.addEventListener("input", () => {
    for (const label of some.element.querySelectorAll("label")) label.hidden = !label.textContent.toLowerCase().includes(search.value.trim().toLowerCase());
  });
  const save = h("button", { onclick: send }, say("offered.save"));
  return h("fieldset", h("p.help", say("offered.about")), all.length > 12 ? field(say("offered.search"), search) : null, some.element, h("div.row", save));

  async function send() {
    save.disabled = true;
    try {
      await household.request("update_config", { config: { models: some.chosen() } });
      toast(say("upkeep.saved"));
    } catch (error) {
      complain(error);
    }
    save.disabled = false;
  }
}
