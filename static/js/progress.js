// Keeps the live part of a job ([data-live]) fresh: server-sent events say that something changed, htmx brings the
// part as the server draws it. Where events cannot be had, it asks every few seconds instead.

import { bind } from "./bind.js";

const KINDS = ["queued", "running", "segment", "first_audio", "succeeded", "failed", "canceled"];
const ENDED = new Set(["succeeded", "failed", "canceled"]);
const GATHER_MS = 250;
const POLL_MS = 3000;

function startLive(root) {
  const { eventsUrl, refreshUrl } = root.dataset;
  let timer = 0;
  let poll = 0;
  let source = null;
  let busy = false;
  let again = false;

  const part = () => root.querySelector("[data-live-state]");
  const ended = () => ENDED.has(part()?.dataset.liveState);
  const announce = () => {
    const region = document.querySelector("[data-live-status]");
    const text = part()?.dataset.liveText ?? "";
    if (region && region.textContent !== text) region.textContent = text;
  };
  const stop = () => {
    source?.close();
    clearInterval(poll);
    clearTimeout(timer);
  };
  const refresh = async () => {
    timer = 0;
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      await window.htmx.ajax("GET", refreshUrl, { target: root, swap: "innerHTML" });
    } finally {
      busy = false;
    }
    announce();
    if (!root.isConnected || ended()) stop();
    else if (again) {
      again = false;
      soon();
    }
  };
  // Many events at once are one look at the server.
  const soon = () => {
    if (!timer) timer = setTimeout(refresh, GATHER_MS);
  };
  const startPolling = () => {
    if (!poll) poll = setInterval(soon, POLL_MS);
  };

  if (ended()) return;
  window.addEventListener("pagehide", stop);
  if (!("EventSource" in window)) {
    startPolling();
    return;
  }
  source = new EventSource(eventsUrl);
  for (const kind of KINDS) source.addEventListener(kind, soon);
  source.addEventListener("error", () => {
    // The browser connects again by itself unless the server refused; then, and meanwhile, ask.
    if (source.readyState === EventSource.CLOSED) startPolling();
    soon();
  });
}

bind("[data-live]", startLive);
