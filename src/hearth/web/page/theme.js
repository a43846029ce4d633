// Light or dark, where somebody wants another one than the device has. Loaded where that is
// chosen, and where it was.

import { h, card, options } from "./dom.js";
import { THEME_KEY } from "./session.js";

const THEMES = ["system", "light", "dark"];
/** What asks for a scheme, with its own words: rules of the style, and the colours of the browser's bars. */
const places = [
  ...[...document.styleSheets].flatMap(({ cssRules }) => [...cssRules]).filter(({ media }) => media).map(({ media }) => [media, "mediaText"]),
  ...[...document.querySelectorAll("meta[name=theme-color]")].map((meta) => [meta, "media"]),
].filter(([place, name]) => place[name].includes("prefers-color-scheme")).map(([place, name]) => [place, name, place[name]]);

const kept = () => localStorage.getItem(THEME_KEY) ?? THEMES[0];

/** Shows the page in the theme that is kept. */
export function applyTheme() {
  const theme = kept();
  for (const [place, name, query] of places) place[name] = theme === "system" ? query : query.includes(theme) ? "all" : "not all";
  document.documentElement.style.colorScheme = theme === "system" ? "" : theme;
}

/** Where it is chosen. */
export async function themeCard() {
  const { say } = await import("./more.js");
  const choice = h("select", { "aria-label": say("theme.title"), onchange: () => {
    if (choice.value === "system") localStorage.removeItem(THEME_KEY);
    else localStorage.setItem(THEME_KEY, choice.value);
    applyTheme();
  } }, options(THEMES.map((name) => [name, say(`theme.${name}`)]), kept()));
  return card(say("theme.title"), h("p.help", say("theme.about")), choice);
}
