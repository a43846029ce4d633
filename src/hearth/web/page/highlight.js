// Colours for code in the usual languages: a language is its comments, strings and
// words, found by one regular expression in linear time. Others stay as they are.

import { h } from "./dom.js";

/** A longer text stays without colours: each is an element. */
const LONGEST = 200000;
const END = "(?![\\s\\S])";

const COMMENTS = {
  "//": "\\/\\/[^\\n]*",
  "/*": `\\/\\*[\\s\\S]*?(?:\\*\\/|${END})`,
  "#": "(?<![\\w$&{])#[^\\n]*",
  "--": "--[^\\n]*",
  "<!": `<!--[\\s\\S]*?(?:-->|${END})`,
};
const STRINGS = {
  '"': '"(?:[^"\\\\\\n]|\\\\[\\s\\S])*"?',
  "'": "'(?:[^'\\\\\\n]|\\\\[\\s\\S])*'?",
  "`": "`(?:[^`\\\\]|\\\\[\\s\\S])*`?",
  '"""': `"""[\\s\\S]*?(?:"""|${END})`,
  "'''": `'''[\\s\\S]*?(?:'''|${END})`,
  // A character, as distinct from a lifetime.
  c: "'(?:[^'\\\\\\n]|\\\\[^\\n]{1,8}?)'",
};
const NUMBER = "(?<![\\w.])(?:0[xXbBoO][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)[\\w%]*";
const WORD = "[A-Za-z_@$][\\w$]*";
const NAME = "[\\w-]+(?=[ \\t]*:)";

const C = "auto bool break case char class const continue default delete do double else enum extern false float for goto if inline int long namespace new nullptr NULL operator private protected public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while catch override constexpr include define ifdef ifndef endif";
const JAVA = "abstract assert boolean break byte case catch char class const continue default do double else enum extends false final finally float for if implements import instanceof int interface long native new null package private protected public record return sealed short static super switch synchronized this throw throws transient true try var void volatile while yield";

/** Comments, strings, words that mean something, and what else is found: [name of its colour, expression]. */
const LANGUAGES = {
  javascript: ["// /*", "\" ' `", "abstract as async await break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in instanceof interface keyof let namespace new null of private protected public readonly return set static super switch this throw true try type typeof undefined var void while with yield any boolean never number string unknown"],
  python: ["#", "\"\"\" ''' \" '", "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield"],
  rust: ["// /*", "\" c", "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while bool char str String u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 Vec Option Result"],
  go: ["// /*", "\" ` c", "any bool break byte case chan const continue default defer else error fallthrough false float32 float64 for func go goto if import int int32 int64 interface iota make map new nil package range return rune select string struct switch true type uint uint64 var"],
  java: ["// /*", "\"\"\" \" c", JAVA],
  kotlin: ["// /*", "\"\"\" \" c", `${JAVA} as by companion constructor data fun in init internal is it lateinit object open override sealed suspend val when where`],
  swift: ["// /*", "\"\"\" \"", "actor as async await break case catch class continue default defer deinit do else enum extension fallthrough false fileprivate final for func guard if import in init inout internal is let mutating nil open override private protocol public repeat return self Self static struct super switch throw throws true try typealias var weak where while"],
  c: ["// /*", "\" c", C],
  csharp: ["// /*", "\" c", `${JAVA} ${C} as async await base bool checked decimal delegate event explicit fixed foreach get global implicit in init is lock nameof object out params partial readonly ref required set string value when where with`],
  php: ["// /* #", "\" '", "abstract and array as break case catch class clone const continue declare default do echo else elseif enum extends false final finally fn for foreach function global if implements include instanceof interface match namespace new null or private protected public readonly require return self static switch this throw trait true try use var void while yield int string bool float"],
  ruby: ["#", "\" '", "alias and begin break case class def do else elsif end ensure false for if in module next nil not or puts raise redo require rescue retry return self super then true undef unless until when while yield attr_accessor attr_reader"],
  bash: ["#", "\" '", "case do done elif else esac export fi for function if in local return select set shift then unset until while sudo cd echo exit source alias", [["number", "\\$\\{?[\\w@*#?]+\\}?"], ["name", "(?<=\\s)--?[A-Za-z][\\w-]*"]]],
  sql: ["-- /*", "' \"", "add all alter and as asc begin between by case check column commit constraint create cross database default delete desc distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then transaction union unique update values view when where with integer int text varchar boolean real date timestamp count sum avg min max coalesce"],
  html: ["<!", "", "", [["string", "(?<==)(?:\"[^\"\\n]*\"|'[^'\\n]*')"], ["keyword", "<\\/?[A-Za-z][\\w:-]*|\\/?>"], ["name", "[\\w:-]+(?==)"], ["number", "&#?\\w{1,20};"]]],
  css: ["/*", "\" '", "important", [["keyword", "@[\\w-]+"], ["number", "#[\\da-fA-F]{3,8}\\b"], ["name", NAME]]],
  json: ["// /*", "", "true false null", [["name", '"(?:[^"\\\\\\n]|\\\\.)*"(?=[ \\t]*:)'], ["string", STRINGS['"']]]],
  yaml: ["#", "\" '", "true false null yes no", [["name", NAME]]],
  toml: ["#", "\"\"\" \" '", "true false", [["keyword", "^\\[{1,2}[^\\]\\n]*\\]{1,2}"], ["name", "[\\w.-]+(?=[ \\t]*=)"]]],
  diff: ["", "", "", [["string", "^\\+[^\\n]*"], ["removed", "^-[^\\n]*"], ["keyword", "^@@[^\\n]*"]]],
  dockerfile: ["#", "\" '", "", [["keyword", "^[A-Z]+\\b"], ["number", "\\$\\{?\\w+\\}?"]]],
};

const ALIASES = {
  js: "javascript", jsx: "javascript", mjs: "javascript", ts: "javascript", tsx: "javascript", typescript: "javascript",
  py: "python", python3: "python", rs: "rust", golang: "go", kt: "kotlin", "c++": "c", cpp: "c", h: "c", hpp: "c", cc: "c", arduino: "c",
  cs: "csharp", "c#": "csharp", rb: "ruby", sh: "bash", shell: "bash", zsh: "bash", console: "bash", terminal: "bash", powershell: "bash",
  xml: "html", svg: "html", vue: "html", scss: "css", jsonc: "json", json5: "json", yml: "yaml", ini: "toml", conf: "toml", properties: "toml", patch: "diff", docker: "dockerfile",
  mysql: "sql", postgresql: "sql", sqlite: "sql",
};

const prepared = new Map();

function prepare(name) {
  const [comments, strings, words, others = []] = LANGUAGES[name];
  const all = (list, from) => list.split(" ").filter(Boolean).map((one) => from[one]).join("|") || "(?!)";
  const extra = others.map(([colour, source]) => `(?<${colour}>${source})`);
  // The same name of a group may not stand twice: those of the language go first.
  const has = (colour) => others.some(([other]) => other === colour);
  const group = (colour, source) => `(?<${has(colour) ? `${colour}2` : colour}>${source})`;
  const source = [group("comment", all(comments, COMMENTS)), ...extra, group("string", all(strings, STRINGS)), group("number", NUMBER), `(?<word>${WORD})`].join("|");
  const isSql = name === "sql";
  return { pattern: new RegExp(source, "gm"), words: new Set(words.split(" ")), isSql };
}

/** Puts the coloured text into an element, if the language is known. */
export function highlight(element, text, language) {
  const asked = language.toLowerCase();
  const name = Object.hasOwn(ALIASES, asked) ? ALIASES[asked] : asked;
  if (!Object.hasOwn(LANGUAGES, name) || text.length > LONGEST) return;
  if (!prepared.has(name)) prepared.set(name, prepare(name));
  const { pattern, words, isSql } = prepared.get(name);
  const nodes = [];
  let plain = 0;
  for (const found of text.matchAll(pattern)) {
    const colour = colourOf(found, text, words, isSql);
    if (!colour) continue;
    if (found.index > plain) nodes.push(text.slice(plain, found.index));
    nodes.push(h(`span.${colour}`, found[0]));
    plain = found.index + found[0].length;
  }
  nodes.push(text.slice(plain));
  element.replaceChildren();
  for (const node of nodes) element.append(node);
}

function colourOf({ 0: whole, index, groups }, text, words, isSql) {
  if (groups.word === undefined) return Object.keys(groups).find((name) => groups[name] !== undefined)?.replace("2", "");
  if (words.has(isSql ? whole.toLowerCase() : whole)) return "keyword";
  return text[index + whole.length] === "(" ? "name" : null;
}
