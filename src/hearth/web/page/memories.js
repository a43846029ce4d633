// The memories of the assistant.

import { audienceIcon } from "./audience.js";
import { h, moment, rowList, called } from "./dom.js";
import { changes, fill, row } from "./list.js";

/** The page. */
export async function show(household) {
  let memories = [];
  const field = h("input", { type: "search", placeholder: "Search memories", "aria-label": "Search memories" });
  const rows = rowList();
  field.addEventListener("input", draw);
  const { remover, watch } = changes(household, load);
  await load();
  return {
    element: h("div.page", h("p.quiet", "The assistant uses these when they are relevant. To add one, say “remember that …” in a conversation."), memories.length > 5 && field, rows),
    close: watch("memory"),
  };

  async function load() {
    ({ memories } = await household.request("list_memories"));
    draw();
  }

  function draw() {
    const words = field.value.trim().toLowerCase();
    const found = memories.filter((one) => [one.content, ...one.search_words ?? []].join("\n").toLowerCase().includes(words));
    fill(rows, found, memoryRow, words ? "No matching memories." : "There are no memories yet.");
  }

  function memoryRow(memory) {
    return row([memory.content, memory.search_words && h("p.quiet.small", `Also found by: ${memory.search_words.join(", ")}`)],
      [audienceIcon(memory, household.identity?.user), memory.speaker && `${called(memory.speaker)} · `, moment(memory.created_at)],
      household.mayChange(memory) && remover("Forget", { what: memory.content, title: "Forget this?" }, "delete_memory", { memory_id: memory.id }));
  }
}
