// The first steps of a new household, one after the other; found again from Manage.

import { h, card, called, commands, complain, options } from "./dom.js";
import { pageAddress, showAddress, showLink } from "./link.js";
import { pieces, say } from "./more.js";
import { GUIDED_KEY, sentence } from "./session.js";
import { locale } from "./words.js";

const STEPS = [nameStep, modelStep, familyStep, backupStep, phoneStep];
const NAMES = ["name", "model", "family", "backups", "phones"];
/** Providers on the internet; the settings have all of them. */
const ACCOUNTS = [["anthropic", "Anthropic"], ["openai", "OpenAI"], ["gemini", "Gemini"], ["mistral", "Mistral"], ["groq", "Groq"], ["openrouter", "OpenRouter"]];
const PLACES = ["here", "network", "account"];
/** A test of a provider, or a search at an address that does not answer, takes its time. */
const PATIENCE = { timeout: 30000 };
const DAY = new Intl.DateTimeFormat(locale, { dateStyle: "full" });

/** The page. */
export async function show(household) {
  const page = h("div.page.guide");
  let at = 0;
  localStorage.setItem(GUIDED_KEY, "yes");
  await draw();
  return { element: page };

  async function draw() {
    const step = await STEPS[at](household);
    const isLast = at === STEPS.length - 1;
    const next = h("button.primary", { onclick: forward }, say(isLast ? "guide.finish" : "guide.next"));
    page.replaceChildren(
      h("p.quiet", { role: "status" }, say("guide.of", { step: at + 1, count: STEPS.length })),
      h("ol.steps", NAMES.map((name, number) => h("li", h("button.plain", { "aria-current": number === at ? "step" : null, onclick: () => go(number) }, say(`guide.${name}`))))),
      step.element,
      h("div.row.end",
        at > 0 && h("button.plain", { onclick: () => go(at - 1) }, say("guide.back")),
        step.save && h("button.plain", { onclick: () => go(at + 1) }, say("guide.skip")),
        next));

    async function forward() {
      next.disabled = true;
      try {
        if (await step.save?.() === false) next.disabled = false;
        else if (isLast) location.hash = "#/";
        else await go(at + 1);
      } catch (error) {
        complain(error);
        next.disabled = false;
      }
    }
  }

  async function go(number) {
    at = number;
    await draw().catch(complain);
    page.scrollTop = 0;
    page.querySelector("h2").focus();
  }
}

/** A step: its heading gets the focus, so that it is read. */
function step(name, ...children) {
  const element = card(say(`guide.${name}_title`), h("p", say(`guide.${name}_about`)), children);
  element.querySelector("h2").tabIndex = -1;
  return element;
}

function nameStep(household) {
  const { user } = household.identity;
  const name = h("input", { type: "text", maxlength: 64, value: called(user), autocomplete: "nickname" });
  return {
    element: step("name", h("label", say("guide.name"), name)),
    async save() {
      const wanted = name.value.trim();
      if (wanted === called(user)) return;
      await household.request("set_display_name", { display_name: wanted === user ? "" : wanted });
    },
  };
}

function modelStep(household) {
  const { provider, model } = household.config;
  const place = h("div.place-of-model");
  const offers = new Map();
  let used = null;
  const choices = h("fieldset", h("legend", say("guide.where")), PLACES.map((name) => h("label.choice",
    h("input", { type: "radio", name: "where", value: name, onchange: () => choose(name) }),
    h("span", h("strong", say(`guide.${name}`)), h("br"), say(`guide.${name}_about`)))));
  const now = h("p.good", { role: "status" }, provider === "offline" ? "" : say("guide.connected", { model }));
  const element = step("model", now, choices);
  if (provider === "offline") {
    choices.querySelector("input").checked = true;
    choose("here");
  }
  return { element, save };

  /** Going on takes a model that was offered alone; it stays here if that does not answer. */
  async function save() {
    const offered = [...offers].filter(([shown]) => shown.isConnected);
    if (offered.length !== 1 || offered[0][1].choice.value === used) return true;
    await offered[0][1].take();
    return used !== null;
  }

  function choose(name) {
    choices.querySelector(`[value=${name}]`).closest("label").after(place);
    if (name === "here") look({});
    else place.replaceChildren(...{ network, account }[name]());
  }

  function network() {
    const address = h("input", { type: "text", required: true, placeholder: "nas.lan", autocapitalize: "none", spellcheck: "false", autocomplete: "off" });
    const found = h("div");
    const form = h("form", h("label", say("guide.address"), address, h("span.help", say("guide.address_help"))), h("button", { type: "submit" }, say("guide.look")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      look({ addresses: address.value.split(/[\s,]+/).filter(Boolean) }, found);
    });
    return [form, found];
  }

  /** Shows the servers that answer. */
  async function look(fields, at = place) {
    const looking = h("p.quiet", { role: "status" }, say("guide.looking"));
    // Not where another place was chosen meanwhile.
    const tell = (...found) => { if (looking.isConnected) at.replaceChildren(...found); };
    at.replaceChildren(looking);
    try {
      const { servers } = await household.request("find_models", fields, PATIENCE);
      tell(...(servers.length ? servers.map(server) : [
        h("p", { role: "status" }, say(fields.addresses ? "guide.none_there" : "guide.none_here")),
        ...(fields.addresses ? [] : [h("button", { onclick: () => look(fields, at) }, say("guide.look_again"))])]));
    } catch (error) {
      tell(h("p.problem", { role: "alert" }, error.message));
    }
  }

  function server({ provider: name, title, base_url: url, is_usual: isUsual, models }) {
    return h("div.found-server", h("h3", say("guide.found", { title, url })), models.length
      ? taking(models, { provider: name, base_url: isUsual ? null : url, api_key: null })
      : h("p", say("guide.no_models", { title })));
  }

  /** A choice of models, and the button that tests and takes one. */
  function taking(models, settings) {
    const choice = h("select", options(models.map((one) => [one, one]), models[0]));
    const said = h("p", { role: "status" });
    const button = h("button.primary", { onclick: take }, say("guide.use"));
    const shown = h("div.taking", h("label", say("common.model"), choice), button, said);
    offers.set(shown, { choice, take });
    return shown;

    async function take() {
      const config = { ...settings, model: choice.value };
      used = null;
      button.disabled = true;
      said.className = "quiet";
      said.textContent = say("guide.testing");
      try {
        const tested = await household.request("update_config", { config, test: true }, PATIENCE);
        if (tested.is_usable) await household.request("update_config", { config });
        said.className = tested.is_usable ? "good" : "problem";
        said.textContent = sentence(tested.message[0].toUpperCase() + tested.message.slice(1));
        if (tested.is_usable) {
          used = config.model;
          now.textContent = say("guide.connected", { model: used });
        }
      } catch (error) {
        said.className = "problem";
        said.textContent = error.message;
      }
      button.disabled = false;
    }
  }

  function account() {
    const choice = h("select", options(ACCOUNTS, ACCOUNTS[0][0]));
    const key = h("input", { type: "password", required: true, autocomplete: "off" });
    const found = h("div");
    const form = h("form", h("label", say("guide.provider"), choice), h("label", say("guide.key"), key, h("span.help", say("guide.key_help"))), h("button", { type: "submit" }, say("guide.ask_models")));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const settings = { provider: choice.value, base_url: null, api_key: key.value.trim() };
      found.replaceChildren(h("p.quiet", { role: "status" }, say("guide.testing")));
      try {
        const { models, message } = await household.request("update_config", { config: settings, test: true }, PATIENCE);
        found.replaceChildren(models.length ? taking(models, settings) : h("p.problem", { role: "alert" }, sentence(message[0].toUpperCase() + message.slice(1))));
      } catch (error) {
        found.replaceChildren(h("p.problem", { role: "alert" }, error.message));
      }
    });
    return [form, found, h("p.help", h("a", { href: "#/settings" }, say("guide.all_providers")))];
  }
}

async function familyStep(household) {
  const { people } = await household.read("list_people");
  const name = h("input", { type: "text", required: true, maxlength: 64, autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
  const display = h("input", { type: "text", maxlength: 64, autocomplete: "off" });
  const child = h("input", { type: "checkbox" });
  const known = h("p.quiet", { role: "status" });
  const tell = () => { known.textContent = say("guide.here_already", { names: people.map((one) => one.display_name).join(", ") }); };
  const form = h("form", h("label", say("guide.sign_in_name"), name, h("span.help", say("guide.sign_in_help"))), h("label", say("guide.display_name"), display),
    h("label.check", child, h("span", say("people.child"), h("br"), h("span.help", say("people.child_help")))), h("button", { type: "submit" }, say("guide.invite")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const fields = { name: name.value.trim(), child: child.checked, url: pageAddress(), ...(display.value.trim() && { display_name: display.value.trim() }) };
      const made = await household.request("invite_user", fields);
      people.push({ display_name: fields.display_name ?? made.name });
      form.reset();
      tell();
      showLink(made);
    } catch (error) {
      complain(error);
    }
  });
  tell();
  return {
    element: step("family", known, form, h("p.help", h("a", { href: "#/people" }, say("guide.roles")))),
    // Who was typed in is invited first.
    save() {
      if (!name.value.trim()) return true;
      form.requestSubmit();
      return false;
    },
  };
}

async function backupStep(household) {
  const { keep, at } = household.config.backup ?? {};
  const { backups, directory } = await household.request("list_backups");
  return { element: step("backups",
    h("p", keep === 0 ? say("guide.no_backups") : say("guide.every_night", { at, keep })),
    h("p", ...pieces("guide.kept_in", { directory: h("code", directory) })),
    backups.length ? h("p.quiet", say("guide.last_backup", { night: DAY.format(new Date(`${backups[0].night}T12:00`)) })) : null,
    h("p", say("guide.elsewhere")),
    commands("hearth config set backup.directory /media/disk/hearth")) };
}

function phoneStep(household) {
  const isSafe = location.protocol === "https:";
  return { element: step("phones",
    h("button", { onclick: () => showAddress(household).catch(complain) }, say("guide.show_code")),
    h("p", say(isSafe ? "guide.install" : "guide.needs_https")),
    !isSafe && h("p.help", h("a", { href: "#/help/encryption" }, say("guide.how_https")))) };
}
