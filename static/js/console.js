// Keeps a console page fresh: asks for it again every few seconds and lets htmx take over the parts that live.
// It waits while nobody looks, while the reader has paused it, and while text is selected in a part that would change.
const live = document.querySelector("[data-console-live]");

function isSelecting() {
  const selection = document.getSelection();
  const main = document.getElementById("content");
  return Boolean(selection && !selection.isCollapsed && main?.contains(selection.anchorNode));
}

function start(element) {
  const pause = element.querySelector("[data-console-pause]");
  const stale = element.querySelector("[data-console-stale]");
  const news = element.querySelector("[data-console-news]");
  const healthText = () => document.getElementById("console-health")?.textContent.replace(/\s+/g, " ").trim() ?? "";
  let asking = false;
  let known = healthText();

  const refresh = () => {
    if (asking || document.hidden || isSelecting()) return;
    element.dispatchEvent(new CustomEvent("console:refresh"));
  };
  let timer = setInterval(refresh, Number(element.dataset.consoleLive) * 1000);

  element.addEventListener("htmx:beforeRequest", () => (asking = true));
  element.addEventListener("htmx:afterRequest", (event) => {
    asking = false;
    stale.hidden = event.detail.successful;
  });
  // Said aloud only when it changes: a reader must not hear the same line every few seconds.
  document.addEventListener("htmx:afterSettle", () => {
    const now = healthText();
    if (now !== known) news.textContent = now;
    known = now;
  });
  document.addEventListener("visibilitychange", () => {
    if (timer) refresh();
  });
  pause.addEventListener("click", () => {
    const paused = Boolean(timer);
    clearInterval(timer);
    timer = paused ? 0 : setInterval(refresh, Number(element.dataset.consoleLive) * 1000);
    pause.setAttribute("aria-pressed", String(paused));
    if (!paused) refresh();
  });
}

if (live) start(live);
