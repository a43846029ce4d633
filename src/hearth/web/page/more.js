// The words of all pages, for the modules that are not there from the beginning.

import { load } from "./words.js";

export { LANGUAGES, adopt, count, language, listed, locale, named, pieces, say, spoken } from "./words.js";

await load(".more");
