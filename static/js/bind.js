// Binds behaviour to elements by a data-* attribute: those of the page, and those that htmx brings in later.

export function bind(selector, start) {
  const seen = new WeakSet();
  const scan = (root) => {
    const found = [...root.querySelectorAll(selector)];
    if (root instanceof Element && root.matches(selector)) found.push(root);
    for (const element of found) {
      if (seen.has(element)) continue;
      seen.add(element);
      start(element);
    }
  };
  document.addEventListener("htmx:load", (event) => scan(event.detail.elt));
  scan(document);
}
