// The waveform of a player: drawn twice by the server, the upper copy cut off at the place that plays. A range field
// lies over both and takes clicks, drags and keys. Used by player.js.

const STEP_S = 1;
const PAGE_S = 5;
const STEPS = {
  ArrowRight: STEP_S,
  ArrowUp: STEP_S,
  ArrowLeft: -STEP_S,
  ArrowDown: -STEP_S,
  PageUp: PAGE_S,
  PageDown: -PAGE_S,
};

export function formatTime(s) {
  const whole = Number.isFinite(s) ? Math.max(0, Math.floor(s)) : 0;
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

export class Waveform {
  // `duration` tells the length in seconds; `seek` is called with a time in seconds.
  constructor({ field, played, duration, seek }) {
    Object.assign(this, { field, played, duration, seek, current: 0 });
    this.field.step = "any";
    this.field.addEventListener("input", () => seek((Number(field.value) / Number(field.max)) * duration()));
    this.field.addEventListener("keydown", (event) => this.key(event));
  }

  show(current) {
    const total = this.duration();
    const share = total > 0 ? Math.min(1, current / total) : 0;
    this.current = current;
    this.field.value = String(share * Number(this.field.max));
    this.field.setAttribute("aria-valuetext", `${formatTime(current)} / ${formatTime(total)}`);
    this.played.style.clipPath = `inset(0 ${((1 - share) * 100).toFixed(3)}% 0 0)`;
  }

  // A range field's own steps are shares of the whole; people expect seconds.
  key(event) {
    if (!(event.key in STEPS) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.seek(Math.min(Math.max(this.current + STEPS[event.key], 0), this.duration()));
  }
}
