// The handbook: the server's Markdown files, shown and searched in the browser.
// Shown inside the frame (#/help) and, without signing in, at /help.

import { h, sign, rowList } from "./dom.js";
import { markdown } from "./markdown.js";
import { count, language, say } from "./more.js";

const INDEX = "index";
const MOST_RESULTS = 50;
/** Links between the pages while they are Markdown, which takes whole addresses only. */
const BASE = new URL("#/help/", location.href).href;

/** What was searched for, kept while somebody reads the results. */
let query = "";
let loaded = null;

document.head.append(h("link", { rel: "stylesheet", href: new URL("help.css", import.meta.url).pathname }));

/** The handbook by itself, for whoever is not signed in. */
export async function alone(root) {
  document.title = `${say("app.page.help")} · Hearth`;
  const place = h("div.place", h("div.page", h("p.quiet", say("common.loading"))));
  root.replaceChildren(h("main.main", h("header.top", h("a", { href: "./", "aria-label": "Hearth" }, sign(30)), h("h1", say("app.page.help"))), place));
  addEventListener("hashchange", draw);
  await draw();

  async function draw() {
    try {
      place.replaceChildren((await show()).element);
    } catch (error) {
      place.replaceChildren(h("div.page", h("p.problem", { role: "alert" }, error.message)));
    }
  }
}

/** All pages by name, in the order of the index. */
function pages() {
  loaded ??= load().catch((error) => {
    loaded = null;
    throw error;
  });
  return loaded;
}

async function load() {
  const index = await source(INDEX);
  const names = [...index.matchAll(/^- \[.*?\]\(([a-z]+)\.md\)/gm)].map((found) => found[1]);
  const texts = await Promise.all(names.map(source));
  return new Map([[INDEX, index], ...names.map((name, place) => [name, texts[place]])]);
}

async function source(name) {
  const response = await fetch(new URL(`handbook/${name}.md`, import.meta.url));
  if (!response.ok) throw new Error(say("help.not_loaded"));
  return response.text();
}

/** The page that the address names: #/help/TOPIC/SECTION. */
export async function show() {
  const [, , name, section] = location.hash.split("/");
  const all = await pages();
  const title = h("h2.topic", { tabindex: -1, lang: "en" });
  const article = h("article.text.handbook", { lang: "en" });
  const contents = h("p.small", h("a", { href: "#/help" }, say("help.all_topics")));
  const number = h("p.quiet.small", { role: "status" });
  const results = rowList([], (row) => row.querySelector("a"));
  const field = h("input", { type: "search", value: query, placeholder: say("help.search"), "aria-label": say("help.search"), autocomplete: "off", spellcheck: "false" });
  const found = h("section", { "aria-label": say("help.results") }, number, results);
  const page = h("div.page", language !== "en" && h("p.quiet", say("help.in_english")), h("div", field), found, contents, title, article);
  const text = all.get(name || INDEX);

  if (text === undefined) {
    title.textContent = say("help.no_topic");
  } else {
    title.textContent = text.slice(2, text.indexOf("\n"));
    for (const node of markdown(readable(text))) article.append(node);
    finish(article);
  }
  contents.hidden = (name || INDEX) === INDEX;
  field.addEventListener("input", () => {
    query = field.value;
    search();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") results.querySelector("a")?.click();
  });
  search(name);
  requestAnimationFrame(() => goTo(section));
  return { element: page };

  function search(open) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    // The page that was opened from the results is shown in full.
    const isSearching = words.length > 0 && !open;
    found.hidden = !isSearching;
    for (const part of [title, article]) part.hidden = isSearching;
    contents.hidden = isSearching || (name || INDEX) === INDEX;
    if (!isSearching) return;
    const hits = sections(all).filter((one) => words.every((word) => one.sought.includes(word)));
    hits.sort((one, other) => rank(other, words) - rank(one, words));
    number.textContent = hits.length ? count("help.sections", hits.length) : say("help.nothing", { query: query.trim() });
    results.replaceChildren(...hits.slice(0, MOST_RESULTS).map((one) => h("li",
      h("div.grow",
        h("a", { href: `#/help/${one.name}/${one.anchor}` }, h("strong", one.title)), " ",
        h("span.quiet.small", one.topic),
        h("p.small", extract(one.body, words))))));
  }

  function goTo(anchor) {
    const heading = anchor && document.getElementById(`help-${anchor}`);
    if (!heading) return;
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    let place = heading;
    if (words.length > 0) {
      // Within the section, the place that was found.
      for (let next = heading.nextElementSibling; next && next.tagName !== heading.tagName; next = next.nextElementSibling) {
        const parts = [...next.querySelectorAll("li, tr"), next];
        const hit = parts.find((part) => words.every((word) => part.textContent.toLowerCase().includes(word)));
        if (hit) {
          place = hit;
          break;
        }
      }
    }
    place.scrollIntoView({ block: place === heading ? "start" : "center" });
    heading.focus({ preventScroll: true });
  }
}

/** Without its title, the comments for tests, and links into the source code. */
function readable(text) {
  return text
    .slice(text.indexOf("\n"))
    .replace(/^<!--.*-->\n/gm, "")
    .replace(/\[([^\]]*)\]\(\.\.[^)]*\)/g, "$1")
    .replace(/\]\(#/g, `](${BASE}${location.hash.split("/")[2] || INDEX}#`)
    .replace(/\]\(([a-z]+)\.md/g, `](${BASE}$1`);
}

/** Makes the parts of chat messages into those of a page. */
function finish(article) {
  // `##` is an h2 in a message; here the title above it is one.
  for (const heading of article.querySelectorAll("h2, h3, h4, h5")) {
    const id = `help-${slug(heading.textContent)}`;
    heading.replaceWith(h(`h${Number(heading.tagName[1]) + 1}`, { id, tabindex: -1 }, ...heading.childNodes));
  }
  for (const link of article.querySelectorAll("a")) {
    if (!link.href.startsWith(BASE)) continue;
    const [topic, section] = link.href.slice(BASE.length).split("#");
    link.replaceWith(h("a", { href: `#/help/${topic}${section ? `/${section}` : ""}` }, ...link.childNodes));
  }
}

/** A heading's link, by the rule of code hosts. */
const slug = (title) => title.trim().toLowerCase().replace(/[^\p{L}\p{N} -]/gu, "").replaceAll(" ", "-");

/** Every section of every page: what is below one heading. */
function sections(all) {
  const found = [];
  for (const [name, text] of all) {
    if (name === INDEX) continue;
    const topic = text.slice(2, text.indexOf("\n"));
    let isCode = false;
    let section = null;
    for (const line of text.split("\n")) {
      if (line.startsWith("```")) isCode = !isCode;
      const heading = isCode ? null : /^#{1,4} (.*)/.exec(line);
      if (heading) {
        const title = heading[1];
        section = { name, topic: title === topic ? "" : topic, title, anchor: title === topic ? "" : slug(title), body: "" };
        found.push(section);
      } else if (!/^(<!--|\|?[-|]+$|```)/.test(line)) {
        section.body += ` ${line}`;
      }
    }
  }
  for (const one of found) {
    one.body = one.body.replace(/\]\([^)]*\)/g, "]").replace(/[`*[\]]/g, "").replace(/\s*\|\s*/g, " · ").replace(/\s+/g, " ").trim();
    one.sought = `${one.topic} ${one.title} ${one.body}`.toLowerCase();
  }
  return found;
}

/** Headings that have the words come first. */
const rank = (section, words) => words.filter((word) => section.title.toLowerCase().includes(word)).length;

/** What is around the longest of the words, which says most, with the words marked. */
function extract(body, words) {
  const text = body.toLowerCase();
  const [longest = ""] = words.filter((word) => text.includes(word)).sort((one, other) => other.length - one.length);
  const from = Math.max(0, text.indexOf(longest) - 60);
  let part = body.slice(from, from + 200);
  const nodes = [from > 0 ? "…" : ""];
  while (part) {
    const lower = part.toLowerCase();
    let first = null;
    for (const word of words) {
      const place = lower.indexOf(word);
      if (place >= 0 && (first === null || place < first.place)) first = { place, length: word.length };
    }
    if (first === null) break;
    nodes.push(part.slice(0, first.place), h("mark", part.slice(first.place, first.place + first.length)));
    part = part.slice(first.place + first.length);
  }
  return [...nodes, part, from + 200 < body.length ? "…" : ""].filter(Boolean);
}
