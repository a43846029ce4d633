// Settings that apply from the next message: the model, and tool permissions.

import { h, card, complain, complainIn, options } from "./dom.js";
import { sentence } from "./session.js";
import { locale, pieces, say } from "./more.js";

const PROVIDERS = [
  ["offline", say("settings.offline")],
  ["ollama", say("settings.local", { name: "Ollama" })],
  ["llamacpp", say("settings.local", { name: "llama.cpp" })],
  ["lmstudio", say("settings.local", { name: "LM Studio" })],
  ["vllm", say("settings.local", { name: "vLLM" })],
  ["litellm", say("settings.local", { name: "LiteLLM" })],
  ["openai-compatible", say("settings.other")],
  ["anthropic", "Anthropic"], ["cerebras", "Cerebras"], ["deepseek", "DeepSeek"], ["fireworks", "Fireworks"], ["gemini", "Gemini"], ["groq", "Groq"],
  ["mistral", "Mistral"], ["openai", "OpenAI"], ["openrouter", "OpenRouter"], ["together", "Together"], ["xai", "xAI"],
];
const EFFORTS = ["", "none", "minimal", "low", "medium", "high", "xhigh", "max"];
const MODES = ["ask", "allow", "deny"];
const PRIVACY = ["private", "household"];
/** The settings that a test is about. */
const OF_MODEL = ["provider", "base_url", "model", "api_key"];
const TENTHS = new Intl.NumberFormat(locale, { minimumFractionDigits: 1 });
const NUMBERS = ["temperature", "max_tokens", "context_tokens"];

/** The page. */
export async function show(household) {
  const config = await household.request("get_config");
  const field = {};
  const labelled = (name, label, input, help) => {
    field[name] = input;
    return h("label", label, input, help && h("span.help", help));
  };
  const identity = {};
  const own = (name, label, input) => {
    input.value = config.assistant?.[name] ?? "";
    identity[name] = input;
    return h("label", label, input);
  };
  const known = PROVIDERS.some(([name]) => name === config.provider) ? PROVIDERS : [...PROVIDERS, [config.provider, config.provider]];
  const provider = h("select", options(known, config.provider));
  const note = h("p", { role: "status" });
  const save = h("button", { type: "submit", class: "primary" }, say("common.save"));
  const choice = h("select", { onchange: () => (choice.value ? choose(choice.value) : type()) });
  const listed = h("label", { hidden: true }, say("common.model"), choice);
  const offered = h("div");
  provider.addEventListener("change", change);
  const test = h("button", { onclick: () => tryOut() }, say("settings.test"));
  const result = h("p", { role: "status" });
  const number = h("span.quiet");
  const temperature = h("input", { type: "range", min: 0, max: 2, step: 0.1, value: config.temperature });
  const tell = () => { number.textContent = ` ${TENTHS.format(temperature.value)}`; };
  temperature.addEventListener("input", tell);
  tell();
  field.temperature = temperature;
  const budget = h("input", { type: "number", min: 1, value: config.budget?.monthly_tokens ?? "", placeholder: say("common.no_limit") });
  const typed = labelled("model", say("common.model"), h("input", { type: "text", value: config.model, required: true, spellcheck: "false", autocomplete: "off" }), say("settings.model_help"));
  const form = h("form",
    card(say("common.model"),
      labelled("provider", say("settings.provider"), provider),
      labelled("base_url", say("settings.address"), h("input", { type: "url", value: config.base_url ?? "", placeholder: say("settings.address_default"), spellcheck: "false" }),
        say("settings.address_help")),
      typed, listed, offered,
      labelled("api_key", say("settings.api_key"), h("input", { type: "password", value: "", autocomplete: "off", placeholder: config.api_key_set ? say("settings.key_set") : say("settings.key_unset") }), say("settings.key_help")),
      h("div.row.wrap", test, result),
      h("label", h("span", say("settings.temperature"), number), temperature, h("span.help", say("settings.temperature_help"))),
      labelled("max_tokens", say("settings.max_tokens"), h("input", { type: "number", min: 1, max: 10000000, value: config.max_tokens ?? "", placeholder: say("settings.max_tokens_default") })),
      labelled("context_tokens", say("settings.context"), h("input", { type: "number", min: 2048, max: 10000000, value: config.context_tokens ?? "", placeholder: say("settings.context_default") })),
      labelled("reasoning_effort", say("settings.effort"), h("select", options(EFFORTS.map((name) => [name, name ? say(`settings.effort.${name}`) : say("common.default")]), config.reasoning_effort ?? ""))),
      h("label", say("settings.budget"), budget, h("span.help", say("settings.budget_help")))),
    card(say("app.page.tools"),
      h("fieldset", h("legend", say("settings.permission_mode")),
        MODES.map((value) => h("label.choice",
          h("input", { type: "radio", name: "permission_mode", value, checked: value === config.permission_mode }),
          h("span", h("strong", say(`settings.mode.${value}`)), h("br"), say(`settings.mode_means.${value}`))))),
      h("p.help", pieces("settings.override", { page: h("a", { href: "#/tools" }, say("settings.tools_page")) }))),
    card(say("settings.privacy_title"),
      h("fieldset", h("legend", say("settings.new_conversations")),
        PRIVACY.map((value) => h("label.choice",
          h("input", { type: "radio", name: "conversations", value, checked: value === config.privacy?.conversations }),
          h("span", h("strong", say(`settings.privacy.${value}`)), h("br"), say(`settings.privacy_means.${value}`)))))),
    card(say("settings.assistant"),
      own("name", say("common.name"), h("input", { type: "text", maxlength: 64, placeholder: "Hearth" })),
      own("place", say("settings.place"), h("input", { type: "text", maxlength: 200, placeholder: say("settings.place_example") })),
      own("language", say("settings.language"), h("input", { type: "text", maxlength: 64, placeholder: say("settings.language_default") })),
      own("persona", say("settings.persona"), h("textarea", { rows: 3, maxlength: 4000, placeholder: say("settings.persona_example") })),
      labelled("system_prompt", say("settings.prompt"), h("textarea", { name: "system_prompt", rows: 7, value: config.system_prompt }), say("settings.prompt_help"))),
    h("div.save", save, note));
  // What was said of other values is not said of these.
  form.addEventListener("input", () => {
    note.textContent = "";
    result.textContent = "";
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const changes = changed();
    note.className = "quiet";
    if (!Object.keys(changes).length) return void (note.textContent = say("settings.no_changes"));
    save.disabled = true;
    try {
      const { updated_fields: updated } = await household.request("update_config", { config: changes });
      for (const name of updated) if (name !== "api_key") config[name] = changes[name];
      if (updated.includes("api_key")) {
        field.api_key.value = "";
        field.api_key.placeholder = changes.api_key ? say("settings.key_set") : say("settings.give_key");
      }
      note.className = "good";
      note.textContent = say("settings.saved");
      if (updated.some((name) => OF_MODEL.includes(name))) await tryOut();
    } catch (error) {
      note.className = "problem";
      complainIn(note, error);
    }
    save.disabled = false;
  });
  return { element: h("div.page", form) };

  /** Asks the provider, as the form has it, whether it would answer, and for its models. */
  async function tryOut() {
    const changes = changed();
    const tried = Object.fromEntries(OF_MODEL.filter((name) => name in changes).map((name) => [name, changes[name]]));
    test.disabled = true;
    result.className = "quiet";
    result.textContent = say("settings.asking");
    try {
      const found = await household.request("update_config", { config: tried, test: true });
      result.className = found.is_usable ? "good" : "problem";
      result.textContent = sentence(found.message[0].toUpperCase() + found.message.slice(1));
      field.base_url.placeholder = found.usual_url ?? say("settings.address_example", { address: "http://127.0.0.1:8080/v1" });
      offer(found.models.slice(0, 500));
    } catch (error) {
      result.className = "problem";
      result.textContent = error.message;
    }
    test.disabled = false;
  }

  /** Another provider has another address and other models. */
  async function change() {
    const isOld = provider.value === config.provider;
    field.base_url.value = isOld ? config.base_url ?? "" : "";
    field.model.value = isOld ? config.model : "";
    type();
    if (provider.value === "offline") return;
    await tryOut();
    // The first of its models was taken: whether it answers.
    if (!isOld && field.model.value) await tryOut();
  }

  /** Offers the models that the provider has; the first of them where none is chosen. */
  function offer(names) {
    if (!names.length) return;
    const chosen = field.model.value.trim() || names[0];
    choice.replaceChildren(...options([...new Set([...names, chosen])].map((name) => [name, name]).concat([["", say("settings.another")]]), chosen));
    choose(chosen);
    listed.hidden = false;
    import("./offered.js").then(({ choices }) => offered.replaceChildren(choices(household, names, config.models ?? [])), complain);
    typed.hidden = true;
  }

  function choose(name) {
    field.model.value = name;
  }

  /** Has the name of the model written. */
  function type() {
    listed.hidden = true;
    typed.hidden = false;
  }

  function changed() {
    const changes = {};
    for (const [name, input] of Object.entries(field)) {
      const text = input.value.trim();
      if (name === "api_key") {
        if (text) changes.api_key = text;
        continue;
      }
      const value = text === "" ? null : NUMBERS.includes(name) ? Number(text) : text;
      if (value !== (config[name] ?? null)) changes[name] = value;
    }
    const tokens = budget.value ? Number(budget.value) : null;
    if (tokens !== (config.budget?.monthly_tokens ?? null)) changes.budget = tokens === null ? null : { monthly_tokens: tokens };
    const assistant = Object.fromEntries(Object.entries(identity).map(([name, input]) => [name, input.value.trim() || null]));
    if (Object.keys(assistant).some((name) => assistant[name] !== (config.assistant?.[name] ?? null))) changes.assistant = assistant;
    const mode = form.querySelector("[name=permission_mode]:checked").value;
    if (mode !== config.permission_mode) changes.permission_mode = mode;
    const conversations = form.querySelector("[name=conversations]:checked")?.value;
    if (conversations && conversations !== config.privacy?.conversations) changes.privacy = { ...config.privacy, conversations };
    return changes;
  }
}
