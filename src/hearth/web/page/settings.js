// Settings that apply from the next message: the model, and tool permissions.

import { h, card, options } from "./dom.js";
import { sentence } from "./session.js";

const PROVIDERS = [
  ["offline", "None: answer offline from a few rules"],
  ["ollama", "Ollama (local)"],
  ["llamacpp", "llama.cpp (local)"],
  ["lmstudio", "LM Studio (local)"],
  ["vllm", "vLLM (local)"],
  ["litellm", "LiteLLM (local)"],
  ["openai-compatible", "Other, OpenAI-compatible"],
  ["anthropic", "Anthropic"], ["cerebras", "Cerebras"], ["deepseek", "DeepSeek"], ["fireworks", "Fireworks"], ["gemini", "Gemini"], ["groq", "Groq"],
  ["mistral", "Mistral"], ["openai", "OpenAI"], ["openrouter", "OpenRouter"], ["together", "Together"], ["xai", "xAI"],
];
const EFFORTS = ["", "none", "minimal", "low", "medium", "high", "xhigh", "max"];
const MODES = [
  ["ask", "Ask", "A person approves each tool call, on this page or in a terminal. After a day without an answer it is denied."],
  ["allow", "Allow", "Every tool runs without approval, even for webhooks. Use this only if no tool can do harm."],
  ["deny", "Deny", "No tool runs, and the model does not see any."],
];
const PRIVACY = [
  ["private", "Private", "Only the person who begins one sees it, until they share it."],
  ["household", "Household", "Everybody but guests sees it. Its owner can make it private."],
];
/** The settings that a test is about. */
const OF_MODEL = ["provider", "base_url", "model", "api_key"];
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
  const save = h("button", { type: "submit", class: "primary" }, "Save");
  const choice = h("select", { onchange: () => (choice.value ? choose(choice.value) : type()) });
  const listed = h("label", { hidden: true }, "Model", choice);
  provider.addEventListener("change", change);
  const test = h("button", { onclick: () => tryOut() }, "Test the connection");
  const result = h("p", { role: "status" });
  const number = h("span.quiet");
  const temperature = h("input", { type: "range", min: 0, max: 2, step: 0.1, value: config.temperature });
  const tell = () => { number.textContent = ` ${Number(temperature.value).toFixed(1)}`; };
  temperature.addEventListener("input", tell);
  tell();
  field.temperature = temperature;
  const budget = h("input", { type: "number", min: 1, value: config.budget?.monthly_tokens ?? "", placeholder: "No limit" });
  const typed = labelled("model", "Model", h("input", { type: "text", value: config.model, required: true, spellcheck: "false", autocomplete: "off" }), "The name that the provider uses. A test lists those that it has.");
  const form = h("form",
    card("Model",
      labelled("provider", "Provider", provider),
      labelled("base_url", "Address", h("input", { type: "url", value: config.base_url ?? "", placeholder: "The provider’s default", spellcheck: "false" }),
        "Needed if the provider runs at another address, such as on another machine, and for OpenAI-compatible servers."),
      typed, listed,
      labelled("api_key", "API key", h("input", { type: "password", value: "", autocomplete: "off", placeholder: config.api_key_set ? "A key is set. Leave empty to keep it." : "No key is set" }), "Not shown again after saving"),
      h("div.row.wrap", test, result),
      h("label", h("span", "Temperature", number), temperature, h("span.help", "Low for consistent answers, high for varied ones")),
      labelled("max_tokens", "Maximum reply length, in tokens", h("input", { type: "number", min: 1, max: 10000000, value: config.max_tokens ?? "", placeholder: "The provider’s limit" })),
      labelled("context_tokens", "Context window, in tokens", h("input", { type: "number", min: 2048, max: 10000000, value: config.context_tokens ?? "", placeholder: "The model’s default" })),
      labelled("reasoning_effort", "Reasoning effort", h("select", options(EFFORTS.map((name) => [name, name || "Default"]), config.reasoning_effort ?? ""))),
      h("label", "Monthly token budget", budget, h("span.help", "When it is used up, the assistant says so instead of asking the model. Leave empty for no limit."))),
    card("Tools",
      h("fieldset", h("legend", "Permission mode"),
        MODES.map(([value, label, meaning]) => h("label.choice",
          h("input", { type: "radio", name: "permission_mode", value, checked: value === config.permission_mode }),
          h("span", h("strong", label), h("br"), meaning)))),
      h("p.help", "You can override this for each tool on the ", h("a", { href: "#/tools" }, "tools page"), ".")),
    card("Privacy",
      h("fieldset", h("legend", "New conversations"),
        PRIVACY.map(([value, label, meaning]) => h("label.choice",
          h("input", { type: "radio", name: "conversations", value, checked: value === config.privacy?.conversations }),
          h("span", h("strong", label), h("br"), meaning))))),
    card("Assistant",
      own("name", "Name", h("input", { type: "text", maxlength: 64, placeholder: "Hearth" })),
      own("place", "Where it is", h("input", { type: "text", maxlength: 200, placeholder: "Such as Bergen, Norway" })),
      own("language", "Language of its answers", h("input", { type: "text", maxlength: 64, placeholder: "The one in which it is addressed" })),
      own("persona", "Personality", h("textarea", { rows: 3, maxlength: 4000, placeholder: "Such as: Dry humour. Metric units." })),
      labelled("system_prompt", "System prompt", h("textarea", { name: "system_prompt", rows: 7, value: config.system_prompt }), "How it answers. A prompt of your own also says who it is, unless a name is set.")),
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
    if (!Object.keys(changes).length) return void (note.textContent = "No changes to save.");
    save.disabled = true;
    try {
      const { updated_fields: updated } = await household.request("update_config", { config: changes });
      for (const name of updated) if (name !== "api_key") config[name] = changes[name];
      if (updated.includes("api_key")) {
        field.api_key.value = "";
        field.api_key.placeholder = changes.api_key ? "A key is set. Leave empty to keep it." : "Give the key for this address.";
      }
      note.className = "good";
      note.textContent = "Saved. Applies from the next message.";
      if (updated.some((name) => OF_MODEL.includes(name))) await tryOut();
    } catch (error) {
      note.className = "problem";
      note.textContent = error.message;
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
    result.textContent = "Asking…";
    try {
      const found = await household.request("update_config", { config: tried, test: true });
      result.className = found.is_usable ? "good" : "problem";
      result.textContent = sentence(found.message[0].toUpperCase() + found.message.slice(1));
      field.base_url.placeholder = found.usual_url ?? "Such as http://127.0.0.1:8080/v1";
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
    choice.replaceChildren(...options([...new Set([...names, chosen])].map((name) => [name, name]).concat([["", "Another…"]]), chosen));
    choose(chosen);
    listed.hidden = false;
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
