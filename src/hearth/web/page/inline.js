// What stands inside a line of Markdown: emphasis, code, links, footnotes, mathematics.
// Every search goes forward only, so that the time is linear in the text.

import { h, lazily } from "./dom.js";
import { say } from "./words.js";

const DEEPEST = 8;
/** Most characters of one formula. */
const LONGEST_MATH = 10000;
const MARKS = [["***", "em", "strong"], ["**", "strong"], ["__", "strong"], ["~~", "del"], ["*", "em"], ["_", "em"]];
const SPECIAL = /[\\`*_~[!<h$&]/g;
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00A0" };

/** The nodes of a text that has no blocks. */
export function inline(text, context) {
  const nodes = [];
  const state = { text, context, ahead: new Map(), ticks: null, unclosed: new Set(), refused: -1 };
  let plain = "";
  let place = 0;
  while (place < text.length) {
    SPECIAL.lastIndex = place;
    const next = SPECIAL.exec(text)?.index ?? text.length;
    plain += text.slice(place, next);
    place = next;
    if (place >= text.length) break;
    if (context.room.left <= 0) {
      context.room.isCut = true;
      plain += text.slice(place);
      break;
    }
    const [found, end] = special(state, place) ?? [text[place], place + 1];
    if (typeof found === "string") {
      plain += found;
    } else {
      if (plain) nodes.push(plain);
      plain = "";
      nodes.push(found);
      context.room.left -= 1;
    }
    place = end;
  }
  if (plain) nodes.push(plain);
  return nodes;
}

const deeper = ({ context }, depth = context.depth + 1) => ({ ...context, depth });

/** The node (or text) that begins at `place` and its end, or nothing. */
function special(state, place) {
  const { text, context } = state;
  switch (text[place]) {
    case "\\":
      return escaped(state, place);
    case "`":
      return codeSpan(state, place);
    case "$":
      return dollars(state, place);
    case "&":
      return entity(text, place);
    case "!":
      return text[place + 1] === "[" ? reference(state, place + 1) : null;
    case "[":
      return (text[place + 1] === "^" && footnote(state, place)) || reference(state, place);
    case "<":
      return lineBreak(text, place) ?? bareAddress(text, place);
    case "h":
      return bareAddress(text, place);
    default:
      return context.depth < DEEPEST ? emphasis(state, place) : run(text, place);
  }
}

/** The next place of `sought` from here on, or -1. Places must not go back. */
function next(state, sought, from) {
  let found = state.ahead.get(sought) ?? -2;
  if (found === -1 || found >= from) return found;
  found = state.text.indexOf(sought, from);
  state.ahead.set(sought, found);
  return found;
}

/** A run of one character, taken as text where it has no meaning. */
function run(text, place) {
  let end = place;
  while (text[end] === text[place]) end += 1;
  return [text.slice(place, end), end];
}

function escaped(state, place) {
  const { text } = state;
  const after = text[place + 1] ?? "";
  if (after === "(" || after === "[") {
    const end = next(state, after === "(" ? "\\)" : "\\]", place + 2);
    const source = end < 0 || end - place > LONGEST_MATH ? "" : text.slice(place + 2, end);
    if (source.trim() && isFormula(source)) return [math(state, source, after === "["), end + 2];
  }
  if (after === "\n") return ["", place + 1];
  return /[!-/:-@[-`{-~]/.test(after) ? [after, place + 2] : null;
}

/** Words alone between escaped brackets are words. */
const isFormula = (source) => /[\\^_={}+*/<>|]|\d/.test(source) || !/\s[A-Za-z]{2,}|[A-Za-z]{2,}\s/.test(source);

/** $…$ and $$…$$, but not sums of money. */
function dollars(state, place) {
  const { text } = state;
  const mark = text[place + 1] === "$" ? "$$" : "$";
  const begin = place + mark.length;
  const end = next(state, mark, begin);
  if (end < 0 || end - begin > LONGEST_MATH) return [mark, begin];
  const source = text.slice(begin, end);
  if (mark === "$$") return source.trim() ? [math(state, source, true), end + 2] : [mark, begin];
  const isMoney = /^\s|\s$|\n\s*\n|\\$|[\s(][A-Za-z]{2,}[\s,.;:)]/.test(source) || !source
    || /\w/.test(text[place - 1] ?? "") || /[\w$]/.test(text[end + 1] ?? "");
  return isMoney ? [mark, begin] : [math(state, source, false), end + 1];
}

const mathematics = lazily(() => import("./math.js"));

/** A formula. Until it is set, and if it cannot be, its source is shown. */
function math({ context: { room } }, source, isDisplayed) {
  room.left -= source.length >> 2;
  const element = h(isDisplayed ? "span.math.displayed" : "span.math", isDisplayed ? { tabindex: 0, role: "group", "aria-label": say("markdown.formula") } : {}, h("code", source.trim()));
  mathematics(({ formula }) => {
    const made = formula(source, isDisplayed);
    if (made) element.replaceChildren(made);
  });
  return element;
}

function entity(text, place) {
  const found = /^&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,5}));/i.exec(text.slice(place, place + 12));
  if (!found) return null;
  const number = found[1] ? Number(found[1]) : Number.parseInt(found[2] ?? "0", 16);
  const letter = found[3] ? ENTITIES[found[3]] : number > 31 && number < 0x110000 && (number < 0xD800 || number > 0xDFFF) ? String.fromCodePoint(number) : undefined;
  return typeof letter === "string" ? [letter, place + found[0].length] : null;
}

function lineBreak(text, place) {
  const found = /^<br ?\/?>/i.exec(text.slice(place, place + 6));
  return found ? [h("br"), place + found[0].length] : null;
}

/** The places of backticks, by the length of their runs. */
function tickRuns(text) {
  const runs = new Map();
  for (const { 0: { length }, index } of text.matchAll(/`+/g)) {
    if (!runs.has(length)) runs.set(length, { places: [], at: 0 });
    runs.get(length).places.push(index);
  }
  return runs;
}

function codeSpan(state, place) {
  const { text } = state;
  const [ticks, begin] = run(text, place);
  state.ticks ??= tickRuns(text);
  const same = state.ticks.get(ticks.length);
  if (!same) return [ticks, begin];
  while (same.places[same.at] < begin) same.at += 1;
  const end = same.places[same.at];
  if (end === undefined) return [ticks, begin];
  const inner = text.slice(begin, end).replace(/\n/g, " ");
  const isPadded = inner.length > 2 && inner.startsWith(" ") && inner.endsWith(" ");
  return [h("code", isPadded ? inner.slice(1, -1) : inner), end + ticks.length];
}

function emphasis(state, place) {
  const { text, unclosed } = state;
  for (const [mark, tag, outer] of MARKS) {
    if (unclosed.has(mark) || !text.startsWith(mark, place)) continue;
    const begin = place + mark.length;
    const isWord = mark[0] === "_" && /[\p{L}\p{N}]/u.test(text[place - 1] ?? "");
    if (isWord || /\s|^$/.test(text[begin] ?? "") || text[begin] === mark[0]) continue;
    let end = text.indexOf(mark, begin + 1);
    while (end >= 0 && !closes(text, end, mark)) end = text.indexOf(mark, end + 1);
    if (end < 0) {
      unclosed.add(mark);
      continue;
    }
    const inner = h(tag, inline(text.slice(begin, end), deeper(state)));
    return [outer ? h(outer, inner) : inner, end + mark.length];
  }
  return run(text, place);
}

function closes(text, end, mark) {
  const before = text[end - 1];
  const after = text[end + mark.length] ?? "";
  if (/[\s\\]/.test(before)) return false;
  if (mark[0] === "_" && /[\p{L}\p{N}]/u.test(after)) return false;
  // A single star is not closed by **, and ** is closed by the last two of ***.
  return after !== mark[0] && (mark.length > 1 || before !== mark);
}

/** The address if a link may have it, otherwise null. */
function safeAddress(text) {
  try {
    const url = new URL(text);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function link(address, children) {
  return h("a", { href: address, target: "_blank", rel: "noopener noreferrer nofollow", title: address }, children);
}

/** [text](address), and ![text](address): images are not loaded, so it becomes a link too. */
function reference(state, place) {
  const { text, context } = state;
  if (context.depth > DEEPEST) return null;
  const middle = next(state, "](", place);
  if (middle < 0 || middle - place > 1000 || middle === state.refused) return null;
  const end = next(state, ")", middle);
  if (end < 0 || end - middle > 2000) return null;
  const label = text.slice(place + 1, middle);
  const target = text.slice(middle + 2, end).trim();
  const address = target && safeAddress(target.split(/\s/, 1)[0]);
  if (!address || label.includes("\n\n")) {
    state.refused = middle;
    return null;
  }
  return [link(address, label ? inline(label.replace(/[[\]]/g, ""), deeper(state, DEEPEST + 1)) : [address]), end + 1];
}

/** [^name], if the text has such a footnote. */
function footnote({ text, context }, place) {
  const found = /^\[\^([^\]\s]{1,40})\]/.exec(text.slice(place, place + 44));
  const note = found && context.notes.get(found[1]);
  if (!note) return null;
  if (!note.number) note.number = context.used.push(note);
  const mark = h("button.mark", { "aria-label": say("markdown.footnote", { number: note.number }), onclick: () => { note.mark = mark; note.item?.focus(); } }, String(note.number));
  note.mark ??= mark;
  return [h("sup", mark), place + found[0].length];
}

function bareAddress(text, place) {
  const isBracketed = text[place] === "<";
  const begin = isBracketed ? place + 1 : place;
  if (!isBracketed && /\w/.test(text[place - 1] ?? "")) return null;
  const found = /^(?:https?:\/\/|mailto:)[^\s<>"'`]{1,2000}/.exec(text.slice(begin, begin + 2010));
  if (!found) return null;
  let length = found[0].length;
  while (!isBracketed && ".,;:!?)]*_~".includes(found[0][length - 1])) length -= 1;
  const written = found[0].slice(0, length);
  const end = begin + length;
  if (isBracketed && text[end] !== ">") return null;
  const address = safeAddress(written);
  return address ? [link(address, [written]), end + (isBracketed ? 1 : 0)] : null;
}
