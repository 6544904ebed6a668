// Keeps the live part of a job ([data-live]) fresh: server-sent events say that something changed, htmx brings the
// part as the server draws it. Where events cannot be had, it asks every few seconds instead.

import { bind } from "./bind.js";

const KINDS = ["queued", "running", "segment", "succeeded", "failed", "canceled"];
const ENDED = new Set(["succeeded", "failed", "canceled"]);
const GATHER_MS = 200;
const POLL_MS = 3000;

class Live {
  constructor(root) {
    this.root = root;
    // A long job is drawn anew less often: hundreds of its segments change.
    this.gatherMs = Number(root.dataset.gatherMs ?? GATHER_MS);
    this.timer = 0;
    this.poll = 0;
    this.busy = false;
    this.again = false;
    this.listen = document.querySelector("[data-listen-live]");
    if (this.ended()) return;
    window.addEventListener("pagehide", () => this.stop());
    if ("EventSource" in window) this.follow();
    else this.startPolling();
  }

  part() {
    return this.root.querySelector("[data-live-state]");
  }

  ended() {
    return ENDED.has(this.part()?.dataset.liveState);
  }

  follow() {
    this.source = new EventSource(this.root.dataset.eventsUrl);
    for (const kind of KINDS) this.source.addEventListener(kind, () => this.soon());
    this.source.addEventListener("first_audio", () => this.offerToListen());
    this.source.addEventListener("error", () => {
      // The browser connects again by itself unless the server refused; then, and meanwhile, ask.
      if (this.source.readyState === EventSource.CLOSED) this.startPolling();
      this.soon();
    });
  }

  startPolling() {
    if (!this.poll) this.poll = setInterval(() => this.soon(), POLL_MS);
  }

  // Many events at once are one look at the server.
  soon() {
    if (!this.timer) this.timer = setTimeout(() => this.refresh(), this.gatherMs);
  }

  async refresh() {
    this.timer = 0;
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    try {
      await window.htmx.ajax("GET", this.root.dataset.refreshUrl, { target: this.root, swap: "innerHTML" });
    } finally {
      this.busy = false;
    }
    this.announce();
    if (!this.root.isConnected || this.ended()) {
      this.stop();
      this.withdrawOffer();
      // What was set aside is free again: a price that names the balance asks anew.
      document.body.dispatchEvent(new Event("job-ended"));
    } else if (this.again) {
      this.again = false;
      this.soon();
    }
  }

  // Screen readers hear what changed, not the whole part anew.
  announce() {
    const region = document.querySelector("[data-live-status]");
    const text = this.part()?.dataset.liveText.trim() ?? "";
    if (region && region.textContent !== text) region.textContent = text;
  }

  offerToListen() {
    if (this.listen && !this.ended()) this.listen.hidden = false;
  }

  // Who is listening already hears it to the end.
  withdrawOffer() {
    const audio = this.listen?.querySelector("audio");
    if (!audio) return;
    if (audio.paused) this.listen.hidden = true;
    else audio.addEventListener("ended", () => (this.listen.hidden = true), { once: true });
  }

  stop() {
    this.source?.close();
    clearInterval(this.poll);
    clearTimeout(this.timer);
    this.poll = 0;
    this.timer = 0;
  }
}

// A list that refreshes itself waits while something in it sounds, is asked about, or has the focus.
document.addEventListener("htmx:beforeRequest", (event) => {
  const list = event.target.closest?.("[data-keep-while-used]");
  if (list?.querySelector("[data-playing], :focus-visible") || (list && document.querySelector("dialog[open]"))) {
    event.preventDefault();
  }
});

bind("[data-live]", (root) => new Live(root));
