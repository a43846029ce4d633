// The memories of the assistant.

import { audienceIcon } from "./audience.js";
import { h, moment, ask, iconButton, complain, rowList } from "./dom.js";

/** The page. */
export async function show(household) {
  let memories = [];
  const field = h("input", { type: "search", placeholder: "Search memories", "aria-label": "Search memories" });
  const rows = rowList();
  field.addEventListener("input", draw);
  const changed = () => load().catch(() => {});
  await load();
  household.addEventListener("memory", changed);
  return {
    element: h("div.page", h("p.quiet", "The assistant uses these when they are relevant. To add one, say “remember that …” in a conversation."), memories.length > 5 && field, rows),
    close: () => household.removeEventListener("memory", changed),
  };

  async function load() {
    ({ memories } = await household.request("list_memories"));
    draw();
  }

  function draw() {
    const words = field.value.trim().toLowerCase();
    const found = memories.filter((one) => [one.content, ...one.search_words ?? []].join("\n").toLowerCase().includes(words));
    rows.replaceChildren(...found.map(row));
    if (!found.length) rows.append(h("li", words ? "No matching memories." : "There are no memories yet."));
  }

  function row(memory) {
    return h("li",
      h("div.grow", memory.content, h("p.quiet.small", audienceIcon(memory, household.identity?.user), memory.speaker && `${memory.speaker} · `, moment(memory.created_at)), memory.search_words && h("p.quiet.small", `Also found by: ${memory.search_words.join(", ")}`)),
      household.mayChange(memory) && iconButton("trash", `Forget: ${memory.content}`, "Forget", () => drop(memory)));
  }

  async function drop(memory) {
    const sure = await ask({ title: "Forget this?", text: memory.content, action: "Forget", danger: true });
    if (!sure) return;
    try {
      await household.request("delete_memory", { memory_id: memory.id });
      await load();
    } catch (error) {
      complain(error);
    }
  }
}
