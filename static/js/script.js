// The speakers of a script: each has a button that plays the sample of the voice that is chosen for it.

import { bind } from "./bind.js";

const sample = new Audio();
sample.preload = "none";
let pressed = null;

function stop() {
  sample.pause();
  pressed?.setAttribute("aria-pressed", "false");
  pressed = null;
}

// One thing sounds at a time.
document.addEventListener("play", stop, true);
for (const kind of ["ended", "error"]) sample.addEventListener(kind, stop);

function startSample(button) {
  const select = document.getElementById(button.dataset.castPlay);
  const url = () => select.selectedOptions[0]?.dataset.sample;
  const show = () => (button.disabled = !url());
  button.addEventListener("click", () => {
    const wasPlaying = pressed === button;
    stop();
    if (wasPlaying) return;
    for (const other of document.querySelectorAll("audio")) other.pause();
    pressed = button;
    button.setAttribute("aria-pressed", "true");
    sample.src = url();
    sample.play().catch(stop);
  });
  select.addEventListener("change", () => {
    stop();
    show();
  });
  show();
}

bind("[data-cast-play]", startSample);
