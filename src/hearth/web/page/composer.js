// Where a message is written: its text, its files, and the button that sends or stops.

import { h, icon, iconButton, complain, lazily, options } from "./dom.js";
import { DRAFT } from "./session.js";
import { count, pieces, say } from "./words.js";

const attaching = lazily(() => import("./attachments.js"));
const speaking = lazily(() => import("./voice.js"));

/**
 * The composer of a conversation. `running` is the turn that Stop would stop, `state` is
 * null or why nothing can be sent, `send` gets the text and the files. Files dropped on
 * `target` are added. `model` has the name of the one that answers, if it may be chosen
 * here, and `choose`, which gets another one, or null to be asked for it.
 */
export function composer({ household, id, target, running, state, model, send: deliver }) {
  const field = h("textarea", { rows: 1, placeholder: say("composer.placeholder"), "aria-label": say("composer.message"), enterkeyhint: "send", autocomplete: "off", value: sessionStorage.getItem(DRAFT + (id ?? "new")) ?? "" });
  const button = h("button", { type: "submit", class: "primary send", "aria-label": say("composer.send") }, icon("send"));
  const isTouch = matchMedia("(pointer: coarse)").matches;
  const files = h("div");
  const chosen = h("input", { type: "file", multiple: true, hidden: true });
  const taken = h("input", { type: "file", accept: "image/*", capture: "environment", hidden: true });
  const attach = iconButton("attach", say("composer.attach"), say("composer.attach"), () => chosen.click());
  const photograph = iconButton("camera", say("composer.photograph"), say("composer.photograph"), () => taken.click());
  photograph.hidden = !isTouch;
  const models = h("select.models", { "aria-label": say("composer.model_of_reply"), title: say("composer.model_of_reply"), hidden: true, onchange: () => {
    const chosen = models.value;
    models.dataset.names = "";
    model.choose(chosen || null);
    draw();
  } });
  const about = h("span.grow.small");
  const editing = h("p.row.editing", { hidden: true }, icon("edit"), about, h("button.plain", { onclick: () => edit(null) }, say("common.cancel")));
  const form = h("form.composer", editing, files,
    h("div.field", attach, photograph, chosen, taken, field, button),
    models, h("p.hint", pieces("composer.keys", { enter: h("kbd", "Enter"), shift_enter: h("kbd", "Shift+Enter") })));
  /** Files that were not sent before the view was left. */
  let pending = household.unsent.get(id) ?? null;
  let wantsFocus = false;
  /** What hears and speaks, where the server has that. */
  let voice = null;
  let isClosed = false;
  /** The message that is written anew, and what stood in the field before. */
  let replaced = null;
  let before = "";

  for (const input of [chosen, taken]) {
    input.addEventListener("change", () => {
      add([...input.files]);
      input.value = "";
    });
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const turn = running();
    if (turn && isEmpty()) household.stop(turn).catch(complain);
    else send();
  });
  field.addEventListener("input", () => { grow(); draw(); });
  field.addEventListener("keydown", (event) => {
    // On a phone, Enter must start a new line.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !isTouch) {
      event.preventDefault();
      if (!isEmpty()) send();
    } else if (event.key === "Escape" && replaced) {
      edit(null);
    } else if (event.key === "Escape") {
      const turn = running();
      if (turn) household.stop(turn).catch(complain);
    }
  });
  field.addEventListener("paste", (event) => {
    const { files: pasted, types } = event.clipboardData;
    // Text of a spreadsheet or a document brings a picture of itself along.
    if (!pasted.length || (types.includes("text/plain") && types.includes("text/html"))) return;
    event.preventDefault();
    add([...pasted]);
  });
  for (const name of ["dragenter", "dragover"]) {
    target.addEventListener(name, (event) => {
      if (!maySend() || !event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      target.classList.add("dropping");
    });
  }
  target.addEventListener("dragleave", (event) => { if (!target.contains(event.relatedTarget)) target.classList.remove("dropping"); });
  target.addEventListener("drop", (event) => {
    if (!target.classList.contains("dropping")) return;
    event.preventDefault();
    target.classList.remove("dropping");
    add([...event.dataTransfer.files]);
  });
  if (pending) {
    pending.watch(draw);
    files.append(pending.element);
  }
  draw();
  queueMicrotask(grow);
  return { element: form, draw, close, quote, edit, send: (text) => deliver(text, []), focus };

  /** Focuses the field, or does so once it is known that one may write. */
  function focus() {
    wantsFocus = field.disabled;
    field.focus({ preventScroll: true });
  }

  function maySend() {
    return household.maySend && !state();
  }

  function isEmpty() {
    return !field.value.trim() && !pending?.count;
  }

  function add(list) {
    if (!maySend() || !list.length) return;
    attaching(({ pendingFiles }) => {
      if (!pending) {
        pending = pendingFiles(household, draw);
        files.append(pending.element);
      }
      pending.add(list);
      draw();
    });
  }

  function send() {
    if (!maySend() || isEmpty() || pending?.isReady === false) return;
    const sent = pending?.take() ?? [];
    // A message has words; those of a picture alone are its name.
    const text = field.value.trim() || sent.map(({ name }) => name).join(", ");
    if (replaced) deliver(text, [...(replaced.attachments ?? []), ...sent], { replaces: replaced.id });
    else deliver(text, sent);
    field.value = replaced ? before : "";
    replaced = null;
    editing.hidden = true;
    keep();
    grow();
    draw();
  }

  /** Puts a message into the field, to be sent instead of itself; null puts it away. */
  function edit(message) {
    if (!replaced) before = field.value;
    replaced = message;
    editing.hidden = !message;
    const carried = message?.attachments?.length ?? 0;
    about.textContent = carried ? count("composer.anew_with", carried) : say("composer.anew");
    field.value = message?.content ?? before;
    grow();
    draw();
    field.focus();
  }

  /** Puts a text into the field as a quotation, to write below it. */
  function quote(text) {
    const lines = text.trim().split("\n").map((line) => `> ${line}`).join("\n");
    field.value = `${field.value.trimEnd()}${field.value.trim() ? "\n\n" : ""}${lines}\n\n`;
    grow();
    draw();
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }

  function draw() {
    const why = household.maySend ? state() : household.identity && say("composer.read_only");
    const turn = running();
    const stops = Boolean(turn) && isEmpty();
    field.disabled = !maySend();
    form.hidden = household.isGuest;
    if (wantsFocus && !field.disabled) focus();
    if (!voice && Object.values(household.config?.voice ?? {}).some(Boolean)) {
      voice = {};
      speaking(({ voiceControls }) => {
        if (isClosed) return;
        voice = voiceControls({ household, id, maySend, say: (text, more) => deliver(text, [], more) });
        button.before(voice.element);
      });
    }
    voice?.draw?.();
    drawModels();
    attach.disabled = photograph.disabled = field.disabled;
    field.placeholder = why || say("composer.placeholder");
    button.disabled = field.disabled || (!stops && (isEmpty() || pending?.isReady === false));
    const label = say(stops ? "composer.stop" : "composer.send");
    button.title = stops ? say("composer.stop_key") : pending?.isReady === false ? pending.reason : "";
    if (button.getAttribute("aria-label") !== label) {
      button.setAttribute("aria-label", label);
      button.replaceChildren(icon(stops ? "stop" : "send"));
    }
  }

  /** The models that this person may choose from; an admin names others. */
  function drawModels() {
    const { provider, model: usual, models: offered = [] } = household.config ?? {};
    const now = maySend() && provider !== "offline" && model.now();
    const names = now ? [...new Set([usual, ...offered, now])] : [];
    const pairs = names.map((name) => [name, name]);
    if (household.isAdmin && !offered.length) pairs.push(["", say("composer.another_model")]);
    models.hidden = !now || pairs.length < 2;
    const drawn = JSON.stringify([pairs, now]);
    // What is there already keeps an open menu.
    if (models.dataset.names === drawn) return;
    models.dataset.names = drawn;
    models.replaceChildren(...options(pairs, now));
  }

  function grow() {
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight + 2, innerHeight * 0.4)}px`;
  }

  function keep() {
    const draft = replaced ? before : field.value;
    if (draft.trim()) sessionStorage.setItem(DRAFT + (id ?? "new"), draft);
    else sessionStorage.removeItem(DRAFT + (id ?? "new"));
  }

  function close() {
    keep();
    isClosed = true;
    voice?.close?.();
    if (pending?.count) household.unsent.set(id, pending);
    else household.unsent.delete(id);
  }
}
