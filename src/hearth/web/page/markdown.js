// Markdown to DOM nodes, never through HTML: a reply becomes text nodes and the few
// elements created here, and links are http, https or mailto only. Every step takes
// linear time, so that a hostile reply cannot freeze the page.

import { h, copyButton } from "./dom.js";

const DEEPEST = 8;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]{0,40})/;
const ITEM = /^( {0,40})([-*+]|\d{1,9}[.)])(?: +|$)/;
const HEADING = /^ {0,3}(#{1,6}) +/;
const RULE = /^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$/;

/** The nodes of a text. */
export function markdown(text) {
  return blocks(text.replace(/\r\n?/g, "\n").split("\n"), 0);
}

function blocks(lines, depth) {
  const nodes = [];
  let place = 0;
  while (place < lines.length) {
    const line = lines[place];
    const fence = FENCE.exec(line);
    if (!line.trim()) {
      place += 1;
    } else if (fence) {
      const end = closing(lines, place + 1, fence[1]);
      nodes.push(code(lines.slice(place + 1, end).join("\n"), fence[2]));
      place = end + 1;
    } else if (HEADING.test(line)) {
      const level = HEADING.exec(line)[1].length;
      nodes.push(h(`h${Math.min(level + 2, 6)}`, {}, ...inline(line.replace(HEADING, "").replace(/ #+ *$/, ""), 0)));
      place += 1;
    } else if (line.length < 200 && RULE.test(line)) {
      nodes.push(h("hr"));
      place += 1;
    } else if (depth < DEEPEST && /^ {0,3}>/.test(line)) {
      const end = takeWhile(lines, place, (one) => /^ {0,3}>/.test(one));
      nodes.push(h("blockquote", ...blocks(lines.slice(place, end).map((one) => one.replace(/^ {0,3}> ?/, "")), depth + 1)));
      place = end;
    } else if (depth < DEEPEST && ITEM.test(line)) {
      place = list(lines, place, depth, nodes);
    } else if (line.startsWith("    ")) {
      const end = takeWhile(lines, place, (one) => one.startsWith("    "));
      nodes.push(code(lines.slice(place, end).map((one) => one.slice(4)).join("\n"), ""));
      place = end;
    } else if (isTable(lines, place)) {
      const end = takeWhile(lines, place, (one) => one.includes("|"));
      nodes.push(table(lines.slice(place, end)));
      place = end;
    } else {
      let end = place + 1;
      while (end < lines.length && lines[end].trim() && !startsBlock(lines, end, depth)) end += 1;
      nodes.push(h("p", ...inline(lines.slice(place, end).map((one) => one.trimStart()).join("\n"), 0)));
      place = end;
    }
  }
  return nodes;
}

function startsBlock(lines, place, depth) {
  const line = lines[place];
  return FENCE.test(line) || HEADING.test(line) || (depth < DEEPEST && (ITEM.test(line) || /^ {0,3}>/.test(line)));
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

function list(lines, place, depth, nodes) {
  const first = ITEM.exec(lines[place]);
  const isOrdered = /\d/.test(first[2]);
  const items = [];
  let end = place;
  while (end < lines.length) {
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
      } else if (inner <= item[1].length && (ITEM.test(line) || startsBlock(lines, end, depth) || !lines[end - 1].trim())) {
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
  nodes.push(h(isOrdered ? "ol" : "ul", isOrdered && start !== 1 ? { start } : {},
    ...items.map((body) => h("li", ...tight(blocks(body, depth + 1))))));
  return end;
}

/** Unwraps the only paragraph of an item. */
function tight(nodes) {
  return nodes[0]?.tagName === "P" ? [...nodes[0].childNodes, ...nodes.slice(1)] : nodes;
}

function isTable(lines, place) {
  const rule = lines[place + 1];
  return lines[place].includes("|") && rule !== undefined && rule.length < 1000 && rule.includes("-") && rule.includes("|") && /^[\s|:-]+$/.test(rule);
}

function cells(line) {
  const text = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return text.split("|").slice(0, 50).map((cell) => cell.trim());
}

function table(lines) {
  const row = (line, tag) => h("tr", ...cells(line).map((cell) => h(tag, {}, ...inline(cell, 0))));
  return h("div.table", { tabindex: 0 }, h("table", h("thead", row(lines[0], "th")), h("tbody", ...lines.slice(2).map((line) => row(line, "td")))));
}

/** A code block with its language and a copy button. */
export function code(text, language) {
  return h("div.code",
    h("div.code-head", h("span", language || "code"), copyButton(() => text)),
    h("pre", { tabindex: 0 }, h("code", text)));
}

/** The address if a link may have it, otherwise null. */
export function safeAddress(text) {
  try {
    const url = new URL(text);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function link(address, children) {
  return h("a", { href: address, target: "_blank", rel: "noopener noreferrer nofollow", title: address }, ...children);
}

const MARKS = [["**", "strong"], ["__", "strong"], ["~~", "del"], ["*", "em"], ["_", "em"]];
const SPECIAL = /[\\`*_~[!<h\n]/g;

function inline(text, depth) {
  const nodes = [];
  let plain = "";
  let place = 0;
  // Marks that are not closed later in the text: searched for only once.
  const unclosed = new Set();
  const add = (node, end) => {
    if (plain) nodes.push(plain);
    plain = "";
    nodes.push(node);
    place = end;
  };
  while (place < text.length) {
    SPECIAL.lastIndex = place;
    const next = SPECIAL.exec(text)?.index ?? text.length;
    plain += text.slice(place, next);
    place = next;
    if (place >= text.length) break;
    const found = special(text, place, depth, unclosed);
    if (found) {
      if (typeof found[0] === "string") {
        plain += found[0];
        place = found[1];
      } else {
        add(found[0], found[1]);
      }
    } else {
      plain += text[place];
      place += 1;
    }
  }
  if (plain) nodes.push(plain);
  return nodes;
}

/** The node (or text) that begins at `place` and its end, or nothing. */
function special(text, place, depth, unclosed) {
  switch (text[place]) {
    case "\n":
      return [h("br"), place + 1];
    case "\\":
      return /[!-/:-@[-`{-~]/.test(text[place + 1] ?? "") ? [text[place + 1], place + 2] : null;
    case "`":
      return codeSpan(text, place, unclosed);
    case "!":
      return text[place + 1] === "[" ? reference(text, place + 1, depth) : null;
    case "[":
      return reference(text, place, depth);
    case "<":
    case "h":
      return bareAddress(text, place);
    default:
      return depth < DEEPEST ? emphasis(text, place, depth, unclosed) : run(text, place);
  }
}

/** A run of one character, taken as text where it has no meaning. */
function run(text, place) {
  let end = place;
  while (text[end] === text[place]) end += 1;
  return [text.slice(place, end), end];
}

function codeSpan(text, place, unclosed) {
  const [ticks, begin] = run(text, place);
  if (!unclosed.has(ticks)) {
    let end = text.indexOf(ticks, begin);
    while (end >= 0) {
      const closer = run(text, end);
      if (closer[0].length === ticks.length) {
        const inner = text.slice(begin, end).replace(/\n/g, " ");
        return [h("code", /^ .* $/.test(inner) ? inner.slice(1, -1) : inner), closer[1]];
      }
      end = text.indexOf(ticks, closer[1]);
    }
    unclosed.add(ticks);
  }
  return [ticks, begin];
}

function emphasis(text, place, depth, unclosed) {
  for (const [mark, tag] of MARKS) {
    if (unclosed.has(mark) || !text.startsWith(mark, place)) continue;
    const begin = place + mark.length;
    const isWord = mark[0] === "_" && /\w/.test(text[place - 1] ?? "");
    if (isWord || /\s|^$/.test(text[begin] ?? "") || text[begin] === mark[0]) continue;
    let end = text.indexOf(mark, begin + 1);
    while (end >= 0 && !closes(text, end, mark)) end = text.indexOf(mark, end + 1);
    if (end < 0) unclosed.add(mark);
    else return [h(tag, {}, ...inline(text.slice(begin, end), depth + 1)), end + mark.length];
  }
  return run(text, place);
}

function closes(text, end, mark) {
  const after = text[end + mark.length] ?? "";
  if (/\s/.test(text[end - 1])) return false;
  if (mark[0] === "_" && /\w/.test(after)) return false;
  // A single star is not closed by **.
  return mark.length === 2 || (after !== mark && text[end - 1] !== mark);
}

/** [text](address), and ![text](address): images are not loaded, so it becomes a link too. */
function reference(text, place, depth) {
  if (depth >= DEEPEST) return null;
  const middle = within(text, "](", place, 1000);
  const end = middle < 0 ? -1 : within(text, ")", middle, 2000);
  if (end < 0) return null;
  const label = text.slice(place + 1, middle);
  const address = safeAddress(text.slice(middle + 2, end).trim().split(/\s/)[0]);
  if (!address || label.includes("\n\n")) return null;
  return [link(address, label ? inline(label.replace(/[[\]]/g, ""), DEEPEST) : [address]), end + 1];
}

function within(text, sought, from, most) {
  const found = text.slice(from, from + most).indexOf(sought);
  return found < 0 ? -1 : from + found;
}

function bareAddress(text, place) {
  const isBracketed = text[place] === "<";
  const begin = isBracketed ? place + 1 : place;
  if (!isBracketed && /\w/.test(text[place - 1] ?? "")) return null;
  const found = /^(?:https?:\/\/|mailto:)[^\s<>"'`]{1,2000}/.exec(text.slice(begin, begin + 2010));
  if (!found) return null;
  const written = isBracketed ? found[0] : found[0].replace(/[.,;:!?)\]*_~]+$/, "");
  const end = begin + written.length;
  if (isBracketed && text[end] !== ">") return null;
  const address = safeAddress(written);
  return address ? [link(address, [written]), end + (isBracketed ? 1 : 0)] : null;
}
