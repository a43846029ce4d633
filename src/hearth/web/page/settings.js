// Settings that take effect with the next message: the model, and what tools may do.

import { h, card, options } from "./dom.js";

const PROVIDERS = [
  ["offline", "None: the offline stand-in, which answers from rules"],
  ["ollama", "Ollama, in the house"],
  ["llamacpp", "llama.cpp, in the house"],
  ["lmstudio", "LM Studio, in the house"],
  ["vllm", "vLLM, in the house"],
  ["litellm", "LiteLLM, in the house"],
  ["openai-compatible", "Another server with OpenAI’s API"],
  ["anthropic", "Anthropic"], ["cerebras", "Cerebras"], ["deepseek", "DeepSeek"], ["fireworks", "Fireworks"], ["gemini", "Gemini"], ["groq", "Groq"],
  ["mistral", "Mistral"], ["openai", "OpenAI"], ["openrouter", "OpenRouter"], ["together", "Together"], ["xai", "xAI"],
];
const EFFORTS = ["", "none", "minimal", "low", "medium", "high", "xhigh", "max"];
const MODES = [
  ["ask", "Ask", "Before each tool call an admin is asked, on this page. Unanswered for a day, it is refused."],
  ["allow", "Allow", "Every tool runs without asking, also for webhooks. Only for tools that can do no harm."],
  ["deny", "Deny", "No tool runs, and the model is not told of any."],
];
const NUMBERS = ["temperature", "max_tokens", "context_tokens"];

/** The page. */
export async function show(household) {
  const config = await household.request("get_config");
  const field = {};
  const labelled = (name, label, input, help) => {
    field[name] = input;
    return h("label", label, input, help && h("span.help", help));
  };
  const known = PROVIDERS.some(([name]) => name === config.provider) ? PROVIDERS : [...PROVIDERS, [config.provider, config.provider]];
  const provider = h("select", options(known, config.provider));
  const note = h("p", { role: "status" });
  const save = h("button", { type: "submit", class: "primary" }, "Save");
  const number = h("span.quiet");
  const temperature = h("input", { type: "range", min: 0, max: 2, step: 0.1, value: config.temperature });
  const tell = () => { number.textContent = ` ${Number(temperature.value).toFixed(1)}`; };
  temperature.addEventListener("input", tell);
  tell();
  field.temperature = temperature;
  const budget = h("input", { type: "number", min: 1, value: config.budget?.monthly_tokens ?? "", placeholder: "No limit" });
  const form = h("form",
    card("Model",
      labelled("provider", "Provider", provider),
      labelled("base_url", "Address", h("input", { type: "url", value: config.base_url ?? "", placeholder: "The provider’s usual address", spellcheck: "false" }),
        "Only where the provider is elsewhere, such as on another machine. A server with OpenAI’s API needs it."),
      labelled("model", "Model", h("input", { type: "text", value: config.model, required: true, spellcheck: "false" }), "The model’s name at the provider"),
      labelled("api_key", "API key", h("input", { type: "password", value: "", autocomplete: "off", placeholder: config.api_key_set ? "A key is set; leave empty to keep it" : "None is set" }), "Never shown again once saved"),
      h("label", h("span", "Temperature", number), temperature, h("span.help", "Low answers soberly and alike, high with more variety")),
      labelled("max_tokens", "Longest reply, in tokens", h("input", { type: "number", min: 1, max: 10000000, value: config.max_tokens ?? "", placeholder: "The provider’s own limit" })),
      labelled("context_tokens", "The model’s window, in tokens", h("input", { type: "number", min: 2048, max: 10000000, value: config.context_tokens ?? "", placeholder: "What is usual for it" })),
      labelled("reasoning_effort", "How hard it thinks", h("select", options(EFFORTS.map((name) => [name, name || "as the model likes"]), config.reasoning_effort ?? ""))),
      h("label", "Tokens a month", budget, h("span.help", "When they are used up, the assistant says so instead of asking the model. Empty: no limit"))),
    card("Tools",
      h("fieldset", h("legend", "Permission mode"),
        MODES.map(([value, label, meaning]) => h("label.choice",
          h("input", { type: "radio", name: "permission_mode", value, checked: value === config.permission_mode }),
          h("span", h("strong", label), h("br"), meaning)))),
      h("p.help", "Single tools can differ: see the ", h("a", { href: "#/tools" }, "tools page"), ".")),
    card("Character",
      labelled("system_prompt", "What the assistant is told about itself", h("textarea", { rows: 7, value: config.system_prompt }))),
    h("div.save", save, note));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const changes = changed();
    note.className = "quiet";
    if (!Object.keys(changes).length) return void (note.textContent = "Nothing has changed.");
    save.disabled = true;
    try {
      const { updated_fields: updated } = await household.request("update_config", { config: changes });
      for (const name of updated) if (name !== "api_key") config[name] = changes[name];
      if (updated.includes("api_key")) {
        field.api_key.value = "";
        field.api_key.placeholder = "A key is set; leave empty to keep it";
      }
      note.className = "good";
      note.textContent = "Saved. It holds from the next message on.";
    } catch (error) {
      note.className = "problem";
      note.textContent = error.message;
    }
    save.disabled = false;
  });
  return { element: h("div.page", form) };

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
    const mode = form.querySelector("[name=permission_mode]:checked").value;
    if (mode !== config.permission_mode) changes.permission_mode = mode;
    return changes;
  }
}
