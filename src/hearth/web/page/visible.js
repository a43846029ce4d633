// Text that a person must judge, such as the command of an approval, shown so that
// nothing in it hides. The server does the same (base/visible.rs); both are tested with
// tests/data/visible.json.

import { h } from "./dom.js";

/** Pictures, which a style may follow in ordinary text. */
const PICTURE = "[\\xA9\\xAE\\u203C\\u2049\\u2122\\u2139\\u2190-\\u21FF\\u2300-\\u23FF\\u24C2\\u25A0-\\u27BF\\u2934\\u2935\\u2B00-\\u2BFF\\u3030\\u303D\\u3297\\u3299\\u{1F000}-\\u{1FAFF}]";
/** What is not seen, looks like a space, changes other text, or begins or ends a mark. */
const HIDDEN = "(?![\\n\\t ])[\\p{Cc}\\p{DI}\\p{Zs}\\p{Zl}\\p{Zp}\\p{Co}\\p{NChar}\\u2800\\uFFF9-\\uFFFB\\u{1D159}‹›]";
const PARTS = new RegExp(`${PICTURE}([\\uFE0E\\uFE0F])(?!\\1)|(\\n(?:[\\t ]*\\n){2,})|([\\t ]{41,})|(${HIDDEN})\\4*`, "gu");

/** The text with a mark such as ‹U+202E› for each character that hides, and the number of empty lines and spaces in a row. */
export const visible = (text) => text.replace(PARTS, (all, style, lines, spaces, one) => {
  if (lines) return `\n‹↵ ×${lines.split("\n").length - 2}›\n`;
  if (spaces) return `‹␣ ×${spaces.length}›`;
  if (!one) return all;
  const times = all.length / one.length;
  return `‹U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}${times > 1 ? ` ×${times}` : ""}›`;
});

/** The nodes of such a text: its marks look like marks. */
export const marked = (text) => text.split(/(‹[^›]*›)/).map((part, place) => (place % 2 ? h("mark", part) : part));
