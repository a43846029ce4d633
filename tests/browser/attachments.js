// Helpers of the tests of attachments, run in the page.

/** A picture of this size, as a phone makes it: turned, and with its place in it. */
window.photograph = async (name, width, height) => {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  for (let row = 0; row < 12; row += 1) {
    context.fillStyle = `hsl(${row * 30} 70% 55%)`;
    context.fillRect(0, (row * height) / 12, width, height / 12 + 1);
  }
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.9));
  const bytes = new Uint8Array(await blob.arrayBuffer());
  // Exif with the orientation 6 (a quarter turn) and a text (TIFF 6.0; Exif 2.3).
  const secret = new TextEncoder().encode("48.2082 N 16.3738 E\0");
  const tiff = [0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 2,
    0x01, 0x0E, 0, 2, 0, 0, 0, secret.length, 0, 0, 0, 38,
    0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0,
    0, 0, 0, 0, ...secret];
  const segment = [0x45, 0x78, 0x69, 0x66, 0, 0, ...tiff];
  const length = segment.length + 2;
  const head = [0xFF, 0xD8, 0xFF, 0xE1, length >> 8, length & 255, ...segment];
  return new File([new Uint8Array(head), bytes.slice(2)], name, { type: "image/jpeg" });
};

const carried = (files) => {
  const data = new DataTransfer();
  for (const file of files) data.items.add(file);
  return data;
};

window.drop = (...files) => {
  const target = document.querySelector(".chat");
  const event = (name) => new DragEvent(name, { bubbles: true, cancelable: true, dataTransfer: carried(files) });
  target.dispatchEvent(event("dragover"));
  window.wasDropping = target.classList.contains("dropping");
  target.dispatchEvent(event("drop"));
};

window.paste = (...files) => {
  const event = new ClipboardEvent("paste", { bubbles: true, cancelable: true });
  // Firefox makes none with files in it.
  Object.defineProperty(event, "clipboardData", { value: carried(files) });
  document.querySelector(".composer textarea").dispatchEvent(event);
};

window.choose = (place, ...files) => {
  const input = document.querySelectorAll(".composer input[type=file]")[place];
  input.files = carried(files).files;
  input.dispatchEvent(new Event("change"));
};

/** Width, height and type of a picture in base64. */
window.measured = async (type, data) => {
  const picture = new Image();
  picture.src = `data:${type};base64,${data}`;
  await picture.decode();
  return [picture.naturalWidth, picture.naturalHeight];
};
