// The players of jobs, voices and samples: [data-player], see templates/partials/player.html.
// One thing sounds at a time. Without scripts the browser's own controls stay.

import { bind } from "./bind.js";
import { toast } from "./toast.js";
import { Waveform, formatTime } from "./waveform.js";
import { word } from "./words.js";

let sounding = null;

function takeTurn(audio) {
  if (sounding && sounding !== audio) sounding.pause();
  sounding = audio;
}

class Player {
  constructor(root) {
    this.root = root;
    this.audio = root.querySelector("audio");
    this.button = root.querySelector("[data-player-toggle]");
    this.clock = root.querySelector("[data-player-time]");
    this.frame = 0;
    this.waveform = new Waveform({
      field: root.querySelector("[data-player-seek]"),
      played: root.querySelector("[data-player-played]"),
      duration: () => this.duration(),
      seek: (s) => this.seek(s),
    });
    this.audio.addEventListener("play", () => {
      takeTurn(this.audio);
      this.mark();
      if (!this.frame) this.frame = requestAnimationFrame(() => this.follow());
    });
    for (const kind of ["pause", "ended"]) this.audio.addEventListener(kind, () => this.mark());
    for (const kind of ["seeked", "loadedmetadata", "durationchange"]) {
      this.audio.addEventListener(kind, () => this.show());
    }
    this.button.addEventListener("click", () => this.toggle());
    root.addEventListener("player:seek", (event) => {
      this.seek(event.detail.ms / 1000);
      this.play();
    });
    root.dataset.ready = "";
    this.mark();
  }

  duration() {
    const known = Number(this.clock.dataset.durationMs) / 1000;
    return Number.isFinite(this.audio.duration) && this.audio.duration > 0 ? this.audio.duration : known;
  }

  seek(s) {
    if (this.audio.readyState === 0) {
      // Nothing was loaded yet (preload is off): go there as soon as the length is known.
      this.audio.addEventListener("loadedmetadata", () => (this.audio.currentTime = s), { once: true });
      this.audio.load();
    } else {
      this.audio.currentTime = s;
    }
    this.waveform.show(s);
  }

  show() {
    const { currentTime, paused } = this.audio;
    this.waveform.show(currentTime);
    const total = this.duration();
    if (currentTime > 0 || total > 0) {
      this.clock.textContent = currentTime > 0 ? `${formatTime(currentTime)} / ${formatTime(total)}` : formatTime(total);
    }
    this.root.dispatchEvent(new CustomEvent("player:time", { detail: { ms: currentTime * 1000, playing: !paused } }));
  }

  // timeupdate comes four times a second: too seldom for a playhead that glides.
  follow() {
    this.show();
    this.frame = this.audio.paused ? 0 : requestAnimationFrame(() => this.follow());
  }

  mark() {
    const { paused } = this.audio;
    this.root.toggleAttribute("data-playing", !paused);
    this.button.setAttribute("aria-label", `${word(paused ? "play" : "pause")}: ${this.button.dataset.label}`);
    this.show();
  }

  toggle() {
    if (this.audio.paused) this.play();
    else this.audio.pause();
  }

  async play() {
    try {
      await this.audio.play();
    } catch (error) {
      // Paused before it began to sound: not a fault.
      if (error.name !== "AbortError") toast(word("audioFailed"), "bad");
    }
  }
}

// The text of a job, by segment: the one that sounds is lit, and a press on one plays from there.
function startSegments(list) {
  const player = document.querySelector(list.dataset.segmentsOf);
  if (!player) return;
  const items = [...list.querySelectorAll("[data-start-ms]")];
  let lit = null;
  player.addEventListener("player:time", (event) => {
    const { ms, playing } = event.detail;
    const sounds = (item) => ms >= Number(item.dataset.startMs) && ms < Number(item.dataset.endMs);
    const now = playing || ms > 0 ? (items.find(sounds) ?? null) : null;
    if (now === lit) return;
    lit?.removeAttribute("aria-current");
    now?.setAttribute("aria-current", "true");
    lit = now;
  });
  for (const item of items) {
    item.querySelector("[data-play-from]")?.addEventListener("click", () => {
      player.dispatchEvent(new CustomEvent("player:seek", { detail: { ms: Number(item.dataset.startMs) } }));
    });
  }
}

bind("[data-player]", (root) => new Player(root));
bind("[data-segments-of]", startSegments);
