// What the page says, in the language of who reads it: loaded before any module that
// imports this one runs. The words of all languages are in src/base/language.

/** What is spoken here; the first one for those who speak none of them. */
export const LANGUAGES = ["en", "de", "fr", "es", "it", "nl"];
const KEY = "hearth.language";

const short = (tag) => tag.slice(0, 2).toLowerCase();
const known = (tag) => LANGUAGES.find((one) => tag && one === short(tag));
/** The language of the browser. */
export const spoken = navigator.languages.map(known).find(Boolean) ?? LANGUAGES[0];
/** The language of the page: the one that a person has chosen, else that of the browser. */
export const language = known(localStorage.getItem(KEY)) ?? spoken;
/** The language as the browser has it, with its region: for dates and numbers. */
export const locale = navigator.languages.find((one) => short(one) === language) ?? language;

const words = {};
const plural = new Intl.PluralRules(locale);
const digits = new Intl.NumberFormat(locale);

/** Loads the words of the other pages too: what imports more.js has them. */
export async function load(part = "") {
  const response = await fetch(new URL(`words.${language}${part}.json`, import.meta.url));
  Object.assign(words, await response.json());
}

/** The text of a key of `page.` in pieces, for an element: a value may be an element. */
export const pieces = (key, fields = {}) => (words[key] ?? key).split(/\{(\w+)\}/).map((piece, at) => at % 2 ? fields[piece] ?? piece : piece);

/** The text of a key of `page.`, with these values in its fields. */
export const say = (key, fields) => pieces(key, fields).join("");

/** What a word of the server is called: it itself where the file has no text of KEY.WORD. */
export const named = (key, word) => words[`${key}.${word}`] ?? word;

/** The text of something that is counted: of KEY.one or KEY.other, with the number in the field `count`. */
export const count = (key, number, fields) => say(`${key}.${plural.select(number) === "one" ? "one" : "other"}`, { count: digits.format(number), ...fields });

/** Several things as one: `a, b and c`. */
export const listed = (things) => new Intl.ListFormat(locale, { type: "conjunction" }).format(things);

/** Shows the page in the language that a person has chosen; null is that of the browser. */
export function adopt(chosen) {
  if (known(chosen)) localStorage.setItem(KEY, chosen);
  else localStorage.removeItem(KEY);
  if ((known(chosen) ?? spoken) !== language) location.reload();
}

await load();
document.documentElement.lang = language;
