// What the page says, in the language of who reads it: loaded before any module that
// imports this one runs. The words of all languages are in src/base/language.

/** What is spoken here; the first one for those who speak none of them. */
export const LANGUAGES = ["en", "de", "fr", "es", "it", "nl"];
const KEY = "hearth.language";

const short = (tag) => tag.slice(0, 2).toLowerCase();
const wanted = [localStorage.getItem(KEY), ...navigator.languages].filter(Boolean);
/** Which language it is. */
export const language = wanted.map(short).find((one) => LANGUAGES.includes(one)) ?? LANGUAGES[0];
/** The language as the browser has it, with its region: for dates and numbers. */
export const locale = wanted.find((one) => one.length > 2 && short(one) === language) ?? language;

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

await load();
document.documentElement.lang = language;
