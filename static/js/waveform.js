// The waveform that the server drew twice: the upper copy is cut off at the place that plays, and a range field above
// both takes clicks, drags and keys. Used by player.js.

const STEP_S = 1;
const PAGE_S = 5;

export function formatTime(s) {
  const whole = Number.isFinite(s) ? Math.max(0, Math.floor(s)) : 0;
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

export class Waveform {
  // `duration` tells the length in seconds; `seek` is called with a time in seconds.
  constructor(track, { duration, seek }) {
    this.field = track.querySelector("[data-seek-field]");
    this.played = track.querySelector("[data-played]");
    this.duration = duration;
    this.seek = seek;
    this.field.addEventListener("input", () => seek(Number(this.field.value) / 1000));
    this.field.addEventListener("keydown", (event) => this.key(event));
  }

  show(current) {
    const total = this.duration();
    const share = total > 0 ? Math.min(1, current / total) : 0;
    this.field.max = String(Math.max(1, Math.round(total * 1000)));
    this.field.value = String(Math.round(current * 1000));
    this.field.setAttribute("aria-valuetext", `${formatTime(current)} / ${formatTime(total)}`);
    this.played.style.clipPath = `inset(0 ${((1 - share) * 100).toFixed(3)}% 0 0)`;
    this.current = current;
  }

  // A range field's own step is either too fine for keys or too coarse for a mouse.
  key(event) {
    const steps = {
      ArrowRight: STEP_S,
      ArrowUp: STEP_S,
      ArrowLeft: -STEP_S,
      ArrowDown: -STEP_S,
      PageUp: PAGE_S,
      PageDown: -PAGE_S,
    };
    if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.seek(Math.min(Math.max(this.current + steps[event.key], 0), this.duration()));
  }
}
