// Keeps a console page fresh: asks for it again every few seconds and lets htmx take over the parts that live.
// It waits while nobody looks, while the reader has paused it, while text is selected in a part that would change,
// and while a question is open. Links of [data-act] open their form as a dialog; without scripts it is a page.
const live = document.querySelector("[data-console-live]");
const dialog = document.getElementById("act-dialog");

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
    if (asking || document.hidden || dialog?.open || isSelecting()) return;
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

async function ask(link) {
  let response;
  try {
    response = await fetch(link.href, { headers: { "HX-Request": "true" } });
  } catch {
    response = null;
  }
  // Whatever is no form of ours (signed out, gone, no network) the browser shows itself.
  if (!response?.ok || response.headers.has("HX-Redirect")) {
    location.assign(link.href);
    return;
  }
  dialog.replaceChildren(document.createRange().createContextualFragment(await response.text()));
  dialog.showModal();
  dialog.querySelector("select, input:not([type=hidden])")?.focus();
  // The card may have been drawn anew meanwhile: back to the link of the same name.
  dialog.addEventListener("close", () => document.getElementById(link.id)?.focus(), { once: true });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-act]");
  if (!link || !dialog || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  ask(link);
});

if (live) start(live);
