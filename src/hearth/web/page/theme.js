// Light or dark, where somebody wants another one than the device has. Loaded where that is
// chosen, and where it was.

import { THEME_KEY } from "./session.js";

export const THEMES = ["system", "light", "dark"];
/** What asks for a scheme, with its own words: rules of the style, and the colours of the browser's bars. */
const places = [
  ...[...document.styleSheets].flatMap(({ cssRules }) => [...cssRules]).filter(({ media }) => media).map(({ media }) => [media, "mediaText"]),
  ...[...document.querySelectorAll("meta[name=theme-color]")].map((meta) => [meta, "media"]),
].filter(([place, name]) => place[name].includes("prefers-color-scheme")).map(([place, name]) => [place, name, place[name]]);

export const kept = () => localStorage.getItem(THEME_KEY) ?? THEMES[0];

/** Shows the page in the theme that is kept. */
export function applyTheme() {
  const theme = kept();
  for (const [place, name, query] of places) place[name] = theme === "system" ? query : query.includes(theme) ? "all" : "(max-width: 0)";
  document.documentElement.style.colorScheme = theme === "system" ? "" : theme;
}

/** Keeps another one. */
export function keepTheme(theme) {
  if (theme === "system") localStorage.removeItem(THEME_KEY);
  else localStorage.setItem(THEME_KEY, theme);
  applyTheme();
}
