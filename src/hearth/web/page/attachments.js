// Files that messages carry: pictures made small and without what the camera wrote into
// them, uploads in parts over the connection, and so through a relay too, thumbnails and
// a viewer.

import { h, icon, iconButton, complain, complainIn, roving, toast } from "./dom.js";
import { locale, say } from "./words.js";

const MOST = 16;
/** Bytes of a part. Divisible by 3, so that the parts of a file in base64 are its base64. */
const PART = 3 * 65536;
/** Longest side of a picture that is sent, in pixels. */
const LONGEST_SIDE = 2048;
/** A PNG that stays larger becomes a JPEG. */
const LARGEST_PNG = 1500000;
/** Larger pictures are shown when somebody asks for them. */
const LARGEST_THUMBNAIL = 3000000;
const MOST_KEPT = 40;
const SENT = /^image\/(jpeg|png|webp|avif|heic|heif|bmp|tiff)$/;
const SHOWN = /^image\/(jpeg|png|webp|gif)$/;
const PDF = "application/pdf";
/** What the viewer shows: of a PDF its text. */
const READ = /^(image\/(jpeg|png|webp|gif)|text\/plain|application\/pdf)$/;

const size = (bytes) => {
  const [unit, factor] = bytes < 1000 ? ["byte", 1] : bytes < 1e6 ? ["kilobyte", 1000] : ["megabyte", 1e6];
  return new Intl.NumberFormat(locale, { style: "unit", unit, maximumFractionDigits: unit === "megabyte" && bytes < 1e7 ? 1 : 0 }).format(bytes / factor);
};

/**
 * The files of a message that is being written. `changed` is called when one comes, is ready
 * or goes, until `watch` names another one that is.
 */
export function pendingFiles(household, changed) {
  const element = h("ul.files.pending", { "aria-label": say("attachments.to_send") });
  let entries = [];
  // One after the other, so that they arrive in their order.
  let queue = Promise.resolve();
  return {
    element,
    add: (files) => [...files].forEach(add),
    take,
    watch: (other) => { changed = other; },
    /** How many will be sent: without those that were refused. */
    get count() { return entries.filter((entry) => !entry.isRefused).length; },
    get isReady() { return entries.every((entry) => entry.id || entry.isRefused); },
    /** Why the others cannot be sent yet. */
    get reason() { return say(entries.some((entry) => entry.hasFailed) ? "attachments.failed" : "attachments.uploading"); },
  };

  function add(file) {
    if (entries.length >= MOST) return toast(say("attachments.most", { most: MOST }));
    const entry = { file, id: null, stop: new AbortController() };
    entry.place = h("span.picture", icon("file"));
    entry.note = h("span.quiet.small", say("attachments.preparing"));
    entry.bar = h("progress", { max: 1, "aria-label": say("attachments.upload_of", { name: file.name }) });
    entry.again = h("button.plain", { hidden: true, onclick: () => later(entry) }, say("common.try_again"));
    entry.row = h("li", entry.place,
      h("span.grow", h("span.name", file.name), entry.note, entry.bar, entry.again),
      iconButton("cross", say("attachments.remove_this", { name: file.name }), say("common.remove"), () => { drop(entry); changed(); }));
    entries.push(entry);
    element.append(entry.row);
    later(entry);
    changed();
  }

  function later(entry) {
    queue = queue.then(() => begin(entry));
  }

  async function begin(entry) {
    if (entry.stop.signal.aborted) return;
    entry.again.hidden = true;
    entry.bar.hidden = false;
    entry.note.classList.remove("problem");
    entry.hasFailed = false;
    try {
      entry.ready ??= await prepare(entry.file);
      const { blob, name, thumbnail } = entry.ready;
      if (thumbnail) entry.place.replaceChildren(thumbnail);
      const most = household.config?.limits?.attachment_bytes ?? Infinity;
      if (blob.size > most) throw Object.assign(new Error(say("attachments.too_large", { size: size(blob.size), most: size(most) })), { isFinal: true });
      entry.note.textContent = size(blob.size);
      entry.id = await upload(household, blob, name, entry.stop.signal, (part) => { entry.bar.value = part; });
      entry.bar.hidden = true;
    } catch (error) {
      if (entry.stop.signal.aborted) return;
      complainIn(entry.note, error);
      entry.note.classList.add("problem");
      entry.bar.hidden = true;
      entry.isRefused = entry.again.hidden = error.isFinal || ["invalid_request", "too_large"].includes(error.code);
      entry.hasFailed = !entry.isRefused;
    }
    changed();
  }

  function drop(entry) {
    entry.stop.abort();
    entry.row.remove();
    entries = entries.filter((other) => other !== entry);
  }

  /** Those that are sent now: [{attachment_id, name}]. */
  function take() {
    const taken = entries.filter((entry) => entry.id).map(({ id, ready }) => ({ attachment_id: id, name: ready.name, type: ready.blob.type, bytes: ready.blob.size }));
    entries = [];
    element.replaceChildren();
    return taken;
  }
}

/** A picture is drawn anew: small, upright, and without place and time. Other files stay as they are. */
async function prepare(file) {
  if (!SENT.test(file.type)) return { blob: file, name: file.name };
  let bitmap;
  try {
    bitmap = await createImageBitmap(file, { imageOrientation: "from-image" });
  } catch {
    throw Object.assign(new Error(say("attachments.cannot_open")), { isFinal: true });
  }
  const scale = Math.min(1, LONGEST_SIDE / Math.max(bitmap.width, bitmap.height));
  const draw = (longest, ground) => {
    const canvas = h("canvas");
    canvas.width = Math.max(1, Math.round(bitmap.width * longest));
    canvas.height = Math.max(1, Math.round(bitmap.height * longest));
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    if (ground) {
      context.fillStyle = "#fff";
      context.fillRect(0, 0, canvas.width, canvas.height);
    }
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    return canvas;
  };
  const encode = (canvas, type) => new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error(say("attachments.picture_too_large")))), type, 0.86);
  });
  let blob = file.type === "image/png" ? await encode(draw(scale), "image/png") : null;
  if (!blob || blob.size > LARGEST_PNG) blob = await encode(draw(scale, true), "image/jpeg");
  const name = `${file.name.replace(/\.\w{2,5}$/, "")}.${blob.type === "image/png" ? "png" : "jpg"}`;
  const thumbnail = draw(Math.min(1, 160 / Math.min(bitmap.width, bitmap.height)), true);
  bitmap.close();
  return { blob, name, thumbnail };
}

/** Sends a file in parts and resolves to its id. Parts are sent again after an interruption. */
async function upload(household, blob, name, signal, progress) {
  const ask = (type, fields) => household.request(type, fields, { keep: true, timeout: 0 });
  const { attachment_id: id } = await ask("put_attachment", { name, bytes: blob.size, ...(blob.type && { media_type: blob.type }) });
  for (let offset = 0; offset < blob.size; offset += PART) {
    const data = await base64(blob.slice(offset, offset + PART));
    if (signal.aborted) throw new Error(say("attachments.stopped"));
    await ask("put_attachment_part", { attachment_id: id, offset, data });
    progress(Math.min(1, (offset + PART) / blob.size));
  }
  return id;
}

function base64(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(new Error(say("attachments.unreadable")));
    reader.readAsDataURL(blob);
  });
}

/** What was loaded last: the base64 of files, by their id. */
const loaded = new Map();

/** The content of a file, in base64. */
function load(household, { attachment_id: id, bytes }, progress = () => {}) {
  if (!loaded.has(id)) {
    const loading = fetchParts(household, id, bytes, progress);
    loaded.set(id, loading);
    loading.catch(() => loaded.delete(id));
    for (const old of [...loaded.keys()].slice(0, -MOST_KEPT)) loaded.delete(old);
  }
  return loaded.get(id);
}

async function fetchParts(household, id, bytes, progress) {
  const parts = [];
  for (let offset = 0; offset < bytes; offset += PART) {
    const { data } = await household.request("get_attachment", { attachment_id: id, offset, length: PART }, { keep: true, timeout: 0 });
    parts.push(data);
    progress(Math.min(1, (offset + PART) / bytes));
  }
  return parts.join("");
}

const bytesOf = (data) => Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));

/** Thumbnails of pictures, and the other files with their names and sizes. */
export function attachmentList(household, attachments) {
  const list = h("ul.files", { "aria-label": say("attachments.files") }, attachments.map((one) => {
    const isPicture = SHOWN.test(one.type);
    const isShown = READ.test(one.type);
    const button = h(isPicture ? "button.thumbnail" : "button.file", {
      "aria-label": say(isShown ? "attachments.show_this" : "attachments.download_this", { name: one.name, size: size(one.bytes) }),
      title: one.name,
      onclick: () => (isShown ? view(household, attachments, one) : save(household, one).catch(complain)),
    });
    button.append(icon("file"), h("span.grow", h("span.name", one.name), h("span.quiet.small", size(one.bytes))));
    if (isPicture && one.bytes <= LARGEST_THUMBNAIL) thumbnail(household, one, button);
    return h("li", button);
  }));
  roving(list, () => [...list.querySelectorAll("button")], () => [], true)();
  return list;
}

/** Loads a picture once somebody scrolls to it. */
function thumbnail(household, one, button) {
  const watcher = new IntersectionObserver(async ([{ isIntersecting }]) => {
    if (!isIntersecting) return;
    watcher.disconnect();
    const data = await load(household, one).catch(() => null);
    if (data !== null) button.replaceChildren(h("img", { src: `data:${one.type};base64,${data}`, alt: "" }));
  }, { rootMargin: "300px" });
  watcher.observe(button);
}

/** Saves a file on this device. */
async function save(household, one) {
  const note = h("progress", { max: 1 });
  const data = await load(household, one, (part) => { note.value = part; });
  const address = URL.createObjectURL(new Blob([bytesOf(data)], { type: "application/octet-stream" }));
  h("a", { href: address, download: one.name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

/** Shows a picture or a text whole; the arrow keys go on to the others of the message. */
function view(household, attachments, first) {
  const all = attachments.filter((one) => READ.test(one.type));
  let at = all.indexOf(first);
  const name = h("h2");
  const place = h("div.view");
  const count = h("span.quiet.small");
  const move = (step) => {
    at = (at + step + all.length) % all.length;
    draw();
  };
  const dialog = h("dialog.viewer", { "aria-label": say("attachments.file") },
    h("div.row", name, count,
      all.length > 1 && iconButton("back", say("attachments.previous_file"), say("attachments.previous"), () => move(-1)),
      all.length > 1 && h("span.turned", iconButton("back", say("attachments.next_file"), say("attachments.next"), () => move(1))),
      iconButton("download", say("attachments.download"), say("attachments.download"), () => save(household, all[at]).catch(complain)),
      iconButton("cross", say("common.close"), say("common.close"), () => dialog.close())),
    place);
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && all.length > 1) move(step);
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog || event.target === place) dialog.close(); });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  draw();

  async function draw() {
    const one = all[at];
    name.textContent = one.name;
    count.textContent = all.length > 1 ? say("common.of", { at: at + 1, all: all.length }) : "";
    const bar = h("progress", { max: 1, "aria-label": say("attachments.loading") });
    place.replaceChildren(bar);
    try {
      const isPdf = one.type === PDF;
      const data = await (isPdf ? household.read("read_attachment", { attachment_id: one.attachment_id }) : load(household, one, (part) => { bar.value = part; }));
      if (all[at] !== one) return;
      if (isPdf) return place.replaceChildren(h("pre", { tabindex: 0, dir: "auto" }, data.text, data.is_cut && `\n\n${say("attachments.text_goes_on")}`));
      place.replaceChildren(SHOWN.test(one.type)
        ? h("img", { src: `data:${one.type};base64,${data}`, alt: one.name })
        : h("pre", { tabindex: 0 }, new TextDecoder().decode(bytesOf(data))));
    } catch (error) {
      place.replaceChildren(h("p.problem", { role: "alert" }, error.message));
    }
  }
}
