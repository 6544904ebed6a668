// A short message at the edge of the page, read aloud politely, gone after a while.
const SHOWN_MS = 4000;

/** Shows `text`. tone: "", "ok", "warn" or "bad". Errors stay until the next message. */
export function toast(text, tone = "ok") {
  const region = document.getElementById("toasts");
  if (!region) return;
  const box = document.createElement("div");
  box.className = tone ? `alert alert--${tone}` : "alert";
  const words = document.createElement("p");
  words.textContent = text;
  box.append(words);
  region.replaceChildren(box);
  if (tone !== "bad") setTimeout(() => box.remove(), SHOWN_MS);
}
