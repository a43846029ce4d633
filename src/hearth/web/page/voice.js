// Talking to the assistant, and hearing it. Loaded where the server has what understands
// or makes speech, and to read one message, which the browser can do too.

import { h, ICONS, icon, iconButton, announce, complain } from "./dom.js";
import { markdown } from "./markdown.js";
import { language, locale, say } from "./more.js";

const SPEAKS = "hearth.speaks";
/** A recording in milliseconds, and its bits each second: it must fit into one message. */
const LONGEST = 120000;
const SHORTEST = 300;
const BITS = 24000;
/** How long the server may take. */
const TIMEOUT = 70000;
/** How long a browser may take to find its voices. */
const FINDING = 2000;
/** What is spoken at once: whole sentences, if they are not too long. */
const PIECES = /[^]{1,300}[.!?…](?=\s|$)|[^]{1,300}(?=\s|$)|[^]{1,300}/g;

Object.assign(ICONS, {
  talk: "M12 3a3 3 0 0 0-3 3v5a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3zM5.500 11a6.500 6.500 0 0 0 13 0M12 17.500V21",
});

/** What makes sound. Browsers allow that after a click, so it is kept. */
let sound = null;
/** What is spoken now; another number ends it. */
let speaking = 0;
let source = null;
/** Shows that it has ended. */
let ended = null;

/** The buttons of a conversation. `say` gets what was said, and with which fields it is sent. */
export function voiceControls({ household, id, maySend, say: deliver }) {
  const { transcription, speech } = household.config.voice;
  const talk = iconButton("talk", say("voice.hold"), say("voice.hold"), () => {});
  const reads = iconButton("speak", say("voice.read"), say("voice.read"), () => read(!isReading()));
  const clock = h("span.quiet.small", { role: "timer", hidden: true });
  const element = h("span.row.voice", clock, transcription && talk, speech && reads);
  const stop = new AbortController();
  let recording = null;

  talk.style.touchAction = "none";
  talk.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    talk.setPointerCapture(event.pointerId);
    begin();
  });
  for (const name of ["pointerup", "pointercancel", "lostpointercapture", "blur"]) talk.addEventListener(name, finish);
  talk.addEventListener("contextmenu", (event) => event.preventDefault());
  talk.addEventListener("keydown", (event) => {
    if (event.repeat || ![" ", "Enter"].includes(event.key)) return;
    event.preventDefault();
    begin();
  });
  talk.addEventListener("keyup", finish);
  household.addEventListener("message", ({ detail: { conversation, message } }) => {
    if (isReading() && conversation === id && message.role === "assistant" && !document.hidden) speak(household, message.content);
  }, { signal: stop.signal });
  draw();
  return { element, draw, close };

  function isReading() {
    return Boolean(speech) && localStorage.getItem(SPEAKS) === "yes";
  }

  function read(isWanted) {
    if (isWanted) {
      localStorage.setItem(SPEAKS, "yes");
      wake();
    } else {
      localStorage.removeItem(SPEAKS);
      silence();
    }
    draw();
  }

  function draw() {
    talk.disabled = !maySend() || Boolean(recording?.isHeard);
    talk.classList.toggle("recording", Boolean(recording) && !recording.isHeard);
    talk.setAttribute("aria-pressed", String(Boolean(recording)));
    reads.setAttribute("aria-pressed", String(isReading()));
  }

  async function begin() {
    if (recording || talk.disabled) return;
    const mine = recording = { isOver: false, isHeard: false };
    silence();
    if (isReading()) wake();
    draw();
    const begun = Date.now();
    const tick = () => {
      const seconds = Math.floor((Date.now() - begun) / 1000);
      clock.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
      clock.hidden = !recording || recording.isHeard;
    };
    const ticking = setInterval(tick, 1000);
    tick();
    try {
      const said = await record(mine);
      mine.isHeard = true;
      tick();
      draw();
      announce(say("voice.understanding"));
      const { text } = await household.request("transcribe", said, { timeout: TIMEOUT });
      if (!text) throw new Error(say("voice.nothing"));
      if (!stop.signal.aborted) deliver(text, { surface: isReading() ? "voice" : "page" });
    } catch (error) {
      complain(error);
    }
    recording = null;
    clearInterval(ticking);
    tick();
    draw();
  }

  function finish() {
    if (!recording) return;
    recording.isOver = true;
    recording.end?.();
  }

  function close() {
    stop.abort();
    finish();
    silence();
  }
}

/** Reads a message aloud, or ends that. */
export function readOrStop(button, household, text) {
  if (button.getAttribute("aria-pressed") === "true") return silence();
  const reading = speak(household, text);
  draw(true);
  ended = () => draw(false);
  // What is read does not go along to another page.
  addEventListener("hashchange", silence, { once: true });
  return reading;

  function draw(isReading) {
    button.setAttribute("aria-pressed", String(isReading));
    button.title = say(isReading ? "voice.stop" : "message.read_aloud");
    button.setAttribute("aria-label", button.title);
    button.replaceChildren(icon(isReading ? "stop" : "speak"));
  }
}

/** Reads a text aloud; what was read before ends. */
export async function speak(household, text) {
  silence();
  const mine = speaking;
  const isServed = household.maySend && household.config?.voice?.speech;
  try {
    const make = isServed ? (piece) => made(household, piece) : await ownVoice();
    const pieces = plain(text).match(PIECES)?.map((piece) => piece.trim()).filter(Boolean) ?? [];
    let next = pieces.length ? make(pieces[0]) : null;
    for (let at = 1; next; at += 1) {
      const piece = await next;
      if (mine !== speaking) return;
      // The next one is made while this one is heard.
      next = at < pieces.length ? make(pieces[at]) : null;
      next?.catch(() => {});
      await (isServed ? play : utter)(piece);
      if (mine !== speaking) return;
    }
  } catch (error) {
    if (mine === speaking) complain(error);
  }
  if (mine === speaking) silence();
}

/** Makes utterances with a voice of this device: others send the text away. */
async function ownVoice() {
  const find = () => {
    const own = speechSynthesis.getVoices().filter(({ localService, lang }) => localService && lang.startsWith(language));
    return own.find(({ lang }) => lang.replace("_", "-") === locale) ?? own[0];
  };
  if (!find()) {
    await new Promise((resolve) => {
      speechSynthesis.addEventListener("voiceschanged", resolve, { once: true });
      setTimeout(resolve, FINDING);
    });
  }
  const voice = find();
  if (!voice) throw new Error(say("voice.none"));
  return async (text) => Object.assign(new SpeechSynthesisUtterance(text), { voice, lang: voice.lang });
}

function utter(utterance) {
  return new Promise((resolve, reject) => {
    utterance.addEventListener("end", resolve);
    utterance.addEventListener("error", ({ error }) => reject(new Error(say("voice.unspoken", { problem: error }))));
    speechSynthesis.speak(utterance);
  });
}

async function made(household, text) {
  const { audio } = await household.request("speak", { text }, { timeout: TIMEOUT });
  const bytes = Uint8Array.from(atob(audio), (letter) => letter.charCodeAt(0));
  return wake().decodeAudioData(bytes.buffer);
}

/** What a microphone hears until `mine` is over, as the fields of a request. */
async function record(mine) {
  if (!navigator.mediaDevices) {
    throw new Error(say("voice.needs_https"));
  }
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  } catch {
    throw new Error(say("voice.refused"));
  }
  try {
    const begun = performance.now();
    if (mine.isOver) throw new Error(say("voice.hold_while"));
    const recorder = new MediaRecorder(stream, { audioBitsPerSecond: BITS });
    const parts = [];
    recorder.addEventListener("dataavailable", ({ data }) => parts.push(data));
    const ended = new Promise((resolve) => recorder.addEventListener("stop", resolve));
    mine.end = () => { if (recorder.state !== "inactive") recorder.stop(); };
    const limit = setTimeout(mine.end, LONGEST);
    recorder.start();
    await ended;
    clearTimeout(limit);
    if (performance.now() - begun < SHORTEST) throw new Error(say("voice.hold_while"));
    return { audio: await base64(new Blob(parts)), media_type: recorder.mimeType };
  } finally {
    for (const track of stream.getTracks()) track.stop();
  }
}

function base64(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(new Error(say("voice.unreadable")));
    reader.readAsDataURL(blob);
  });
}

/** What of a reply can be spoken. */
function plain(text) {
  const place = h("div", markdown(text));
  for (const one of place.querySelectorAll("pre, table, .code-head, math")) one.remove();
  return place.textContent;
}

function wake() {
  sound ??= new AudioContext();
  sound.resume();
  return sound;
}

function play(buffer) {
  return new Promise((resolve) => {
    source = sound.createBufferSource();
    source.buffer = buffer;
    source.connect(sound.destination);
    source.addEventListener("ended", resolve);
    source.start();
  });
}

function silence() {
  speaking += 1;
  source?.stop();
  source = null;
  globalThis.speechSynthesis?.cancel();
  ended?.();
  ended = null;
}
