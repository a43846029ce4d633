// The memories of the assistant.

import { audienceIcon } from "./audience.js";
import { facts, h, moment, rowList, called } from "./dom.js";
import { changes, fill, row } from "./list.js";
import { say } from "./more.js";

/** The page. */
export async function show(household) {
  let memories = [];
  const field = h("input", { type: "search", placeholder: say("memories.search"), "aria-label": say("memories.search") });
  const rows = rowList();
  field.addEventListener("input", draw);
  const { remover, watch } = changes(household, load);
  await load();
  return {
    element: h("div.page", h("p.quiet", say("memories.help")), memories.length > 5 && field, rows),
    close: watch("memory"),
  };

  async function load() {
    ({ memories } = await household.request("list_memories"));
    draw();
  }

  function draw() {
    const words = field.value.trim().toLowerCase();
    const found = memories.filter((one) => [one.content, ...one.search_words ?? []].join("\n").toLowerCase().includes(words));
    fill(rows, found, memoryRow, words ? say("memories.no_match") : say("memories.none"));
  }

  function memoryRow(memory) {
    return row([memory.content, memory.search_words && h("p.quiet.small", say("memories.found_by", { words: memory.search_words.join(", ") }))],
      [audienceIcon(memory, household.identity?.user), ...facts(memory.speaker && called(memory.speaker), moment(memory.created_at))],
      household.mayChange(memory) && remover(say("common.forget"), { what: memory.content, title: say("memories.forget_title") }, "delete_memory", { memory_id: memory.id }));
  }
}
