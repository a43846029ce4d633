// Markdown to DOM nodes, never through HTML: a reply becomes text nodes and the few
// elements created here, and links are http, https or mailto only. Every step takes
// linear time, so that a hostile reply cannot freeze the page. Colours of code and
// mathematics have modules of their own, which are loaded when a text first needs them.

import { h, copyButton, lazily } from "./dom.js";
import { inline } from "./inline.js";
import { say } from "./words.js";

const DEEPEST = 8;
const MOST_COLUMNS = 50;
/** Most elements of one text, roughly. Browsers take long to lay out more. */
const MOST_ELEMENTS = 5000;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]{0,40})/;
const ITEM = /^( {0,40})([-*+]|\d{1,9}[.)])(?: +|$)/;
const TASK = /^\[([ xX])\] +/;
const HEADING = /^ {0,3}(#{1,6}) +/;
const QUOTE = /^ {0,3}> ?/;
const NOTE = /^ {0,3}\[\^([^\]\s]{1,40})\]: */;
const MATH = /^ {0,3}(\$\$|\\\[)/;
const RULE = /^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$/;

/** What was rendered into an element, to go on from there. */
const rendered = new WeakMap();

/** The nodes of a text. */
export function markdown(text) {
  const lines = linesOf(text);
  const context = { depth: 0, room: { left: MOST_ELEMENTS }, levels: [], starts: [], isWriting: false, notes: new Map(), used: [] };
  const nodes = blocks(takeNotes(lines, context.notes), context);
  if (context.used.length) nodes.push(footnotes(context));
  return nodes;
}

/**
 * Renders a text that is still being written. Blocks that cannot change any more stay
 * as they are, so that what is selected or scrolled in them stays so, too.
 */
export function write(place, text) {
  const before = rendered.get(place);
  // The last two blocks may still become one, or something else.
  const goesOn = before && text.startsWith(before.text) ? before.starts.at(-2) : undefined;
  const { offset, count, left, levels } = goesOn ?? { offset: 0, count: 0, left: MOST_ELEMENTS, levels: [] };
  const lines = linesOf(text.slice(offset));
  const context = { depth: 0, room: { left }, levels: [...levels], starts: [], isWriting: true, notes: new Map(), used: [] };
  const nodes = blocks(lines, context);
  while (place.childNodes.length > count) place.lastChild.remove();
  for (const node of nodes) place.append(node);
  const starts = before && goesOn ? before.starts.slice(0, -2) : [];
  let line = 0;
  let end = offset;
  for (const start of context.starts) {
    for (; line < start.line; line += 1) end += lines[line].length + 1;
    starts.push({ ...start, offset: end, count: count + start.count });
  }
  // Offsets do not hold where an end of line has two characters.
  rendered.set(place, { text, starts: text.includes("\r") ? [] : starts });
}

const linesOf = (text) => text.replace(/\r\n?/g, "\n").split("\n");

function blocks(lines, context) {
  const nodes = [];
  const { depth, room } = context;
  const unclosed = new Set();
  let place = 0;
  while (place < lines.length) {
    const line = lines[place];
    const fence = FENCE.exec(line);
    if (!line.trim()) {
      place += 1;
      continue;
    }
    if (depth === 0) context.starts.push({ line: place, count: nodes.length, left: room.left, levels: [...context.levels] });
    if (room.left <= 0) {
      const rest = h("p", lines.slice(place).join("\n"));
      room.isCut = depth > 0;
      return [...nodes, ...(depth ? [] : [cut()]), rest];
    }
    room.left -= 1;
    if (fence) {
      const end = closing(lines, place + 1, fence[1]);
      const isWhole = end < lines.length || !context.isWriting;
      nodes.push(code(lines.slice(place + 1, end).join("\n"), fence[2], isWhole));
      place = end + 1;
    } else if (HEADING.test(line)) {
      nodes.push(heading(line, context));
      place += 1;
    } else if (line.length < 200 && RULE.test(line)) {
      nodes.push(h("hr"));
      place += 1;
    } else if (depth < DEEPEST && QUOTE.test(line)) {
      const end = takeWhile(lines, place, (one) => QUOTE.test(one));
      nodes.push(h("blockquote", blocks(lines.slice(place, end).map((one) => one.replace(QUOTE, "")), { ...context, depth: depth + 1 })));
      place = end;
    } else if (depth < DEEPEST && ITEM.test(line)) {
      place = list(lines, place, context, nodes);
    } else if (line.startsWith("    ")) {
      const end = takeWhile(lines, place, (one) => one.startsWith("    "));
      nodes.push(code(lines.slice(place, end).map((one) => one.slice(4)).join("\n"), "", true));
      place = end;
    } else if (isTable(lines, place)) {
      let rows = 2 + room.left / cells(line).length;
      const end = takeWhile(lines, place, (one) => one.includes("|") && rows-- > 0);
      nodes.push(table(lines.slice(place, end), context));
      place = end;
    } else {
      let end = MATH.test(line) ? mathEnd(lines, place, unclosed, context.isWriting) : -1;
      if (end < 0) {
        end = place + 1;
        while (end < lines.length && lines[end].trim() && !startsBlock(lines, end, depth)) end += 1;
      }
      nodes.push(h("p", inline(lines.slice(place, end).map((one) => one.trimStart()).join("\n"), context)));
      place = end;
    }
  }
  if (depth === 0 && room.isCut) nodes.push(cut());
  if (depth === 0) for (const node of nodes) if (node.className !== "code") node.dir = "auto";
  return nodes;
}

const cut = () => h("p.note", say("markdown.cut"));

function startsBlock(lines, place, depth) {
  const line = lines[place];
  return FENCE.test(line) || HEADING.test(line) || MATH.test(line) || isTable(lines, place) || (depth < DEEPEST && (ITEM.test(line) || QUOTE.test(line)));
}

function takeWhile(lines, place, holds) {
  let end = place;
  while (end < lines.length && holds(lines[end])) end += 1;
  return end;
}

function closing(lines, from, fence) {
  const ends = (line) => {
    const text = line.trim();
    return text.length >= fence.length && text.length < 100 && [...text].every((letter) => letter === fence[0]);
  };
  return takeWhile(lines, from, (line) => !ends(line));
}

/** Where displayed mathematics ends, whose lines may look like those of a list. */
function mathEnd(lines, place, unclosed, isWriting) {
  const open = MATH.exec(lines[place])[1];
  const close = open === "$$" ? "$$" : "\\]";
  if (unclosed.has(close)) return -1;
  const begin = lines[place].indexOf(open) + 2;
  if (lines[place].indexOf(close, begin) >= 0) return -1;
  const end = takeWhile(lines, place + 1, (line) => !line.includes(close));
  if (end < lines.length) return end + 1;
  unclosed.add(close);
  return isWriting ? end : -1;
}

/** Headings are numbered from 2, below the title of the page, without gaps. */
function heading(line, { levels, ...context }) {
  const level = HEADING.exec(line)[1].length;
  while (levels.at(-1) >= level) levels.pop();
  levels.push(level);
  return h(`h${Math.min(levels.length + 1, 6)}`, inline(line.replace(HEADING, "").replace(/ #+ *$/, ""), context));
}

function list(lines, place, context, nodes) {
  const first = ITEM.exec(lines[place]);
  const isOrdered = /\d/.test(first[2]);
  const items = [];
  let end = place;
  while (end < lines.length && items.length <= context.room.left) {
    const item = ITEM.exec(lines[end]);
    if (!item || item[1].length > first[1].length + 1 || item[1].length < first[1].length || /\d/.test(item[2]) !== isOrdered) break;
    const indent = item[0].length;
    const body = [lines[end].slice(indent)];
    end += 1;
    while (end < lines.length) {
      const line = lines[end];
      const inner = line.length - line.trimStart().length;
      if (!line.trim()) {
        const next = lines[end + 1];
        const goesOn = next !== undefined && next.trim() && next.length - next.trimStart().length > item[1].length;
        if (!goesOn) break;
      } else if (inner <= item[1].length && (ITEM.test(line) || startsBlock(lines, end, context.depth) || !lines[end - 1].trim())) {
        break;
      }
      body.push(line.slice(Math.min(inner, indent)));
      end += 1;
    }
    items.push(body);
    // A blank line between two items of one list.
    if (end + 1 < lines.length && !lines[end].trim() && ITEM.test(lines[end + 1])) end += 1;
  }
  const start = isOrdered ? Number.parseInt(first[2], 10) : 1;
  nodes.push(h(isOrdered ? "ol" : "ul", isOrdered && start !== 1 ? { start } : {}, items.map((body) => listItem(body, context))));
  return end;
}

function listItem(body, context) {
  context.room.left -= 1;
  const task = TASK.exec(body[0]);
  if (task) body[0] = body[0].slice(task[0].length);
  const content = tight(blocks(body, { ...context, depth: context.depth + 1 }));
  if (!task) return h("li", content);
  const isDone = task[1] !== " ";
  return h("li.task", h("span", { class: isDone ? "box done" : "box", role: "img", "aria-label": say(isDone ? "markdown.done" : "markdown.to_do") }), content);
}

/** Unwraps the only paragraph of an item. */
function tight(nodes) {
  return nodes[0]?.tagName === "P" ? [...nodes[0].childNodes, ...nodes.slice(1)] : nodes;
}

function isTable(lines, place) {
  const rule = lines[place + 1];
  return rule !== undefined && rule.length < 1000 && rule.includes("-") && rule.includes("|") && lines[place].includes("|") && /^[\s|:-]+$/.test(rule);
}

/** The cells of a row. A bar after a backslash is part of a cell. */
function cells(line) {
  const found = [];
  const text = line.trim().replace(/^\|/, "");
  let begin = 0;
  for (let place = 0; place <= text.length && found.length < MOST_COLUMNS; place += 1) {
    if (text[place] === "\\" && text[place + 1] === "|") place += 1;
    else if (text[place] === "|" || (place === text.length && begin < place)) {
      found.push(text.slice(begin, place).replaceAll("\\|", "|").trim());
      begin = place + 1;
    }
  }
  return found;
}

function table(lines, context) {
  const sides = cells(lines[1]).map((rule) => (rule.endsWith(":") ? (rule.startsWith(":") ? "middle" : "right") : null));
  const columns = cells(lines[0]).length;
  const row = (line, tag) => h("tr", cells(line).slice(0, columns).map((cell, column) => {
    context.room.left -= 1;
    return h(tag, { class: sides[column] }, inline(cell, context));
  }));
  return h("div.table", { tabindex: 0, role: "group", "aria-label": say("markdown.table") },
    h("table", h("thead", row(lines[0], "th")), h("tbody", lines.slice(2).map((line) => row(line, "td")))));
}

/** Takes the definitions of footnotes out of the lines. */
function takeNotes(lines, notes) {
  if (!lines.some((line) => NOTE.test(line))) return lines;
  const kept = [];
  let fence = null;
  for (let place = 0; place < lines.length; place += 1) {
    const line = lines[place];
    const mark = FENCE.exec(line)?.[1];
    if (mark && (!fence || line.trim().startsWith(fence))) fence = fence ? null : mark;
    const note = fence ? null : NOTE.exec(line);
    if (!note || notes.has(note[1])) {
      kept.push(line);
      continue;
    }
    const body = [line.slice(note[0].length)];
    while (/^(?: {2,}|\t)\S/.test(lines[place + 1] ?? "")) body.push(lines[++place].trim());
    notes.set(note[1], { body, number: 0 });
  }
  return kept;
}

/** The footnotes that the text refers to, and their ways back. */
function footnotes(context) {
  // A note may refer to another, which is then at the end of the list.
  const list = h("ol");
  for (let place = 0; place < context.used.length; place += 1) {
    const note = context.used[place];
    const back = h("button.back", { "aria-label": say("markdown.back", { number: note.number }), onclick: () => note.mark.focus() }, "↩");
    note.item = h("li", { tabindex: -1 }, tight(blocks(note.body, { ...context, depth: 1 })), " ", back);
    list.append(note.item);
  }
  return h("section.footnotes", { "aria-label": say("markdown.footnotes") }, list);
}

const highlighting = lazily(() => import("./highlight.js"));

/** A code block with its language and a copy button. */
function code(text, language, isWhole) {
  const inner = h("code", text);
  if (language && isWhole) highlighting(({ highlight }) => highlight(inner, text, language));
  return h("div.code",
    h("div.code-head", h("span", language || say("markdown.code")), copyButton(() => text)),
    h("pre", { tabindex: 0 }, inner));
}
