// The page's own translations: <template id="words" data-name="…">.
export function word(name) {
  return document.getElementById("words")?.dataset[name] ?? "";
}
