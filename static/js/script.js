// The speakers of a script: each has a button that plays the sample of the voice that is chosen for it.

const sample = new Audio();
sample.preload = "none";
// Whose sample sounds, and which: a new price brings other buttons for the same speakers.
let sounding = null;

const sampleOf = (button) => document.getElementById(button.dataset.castPlay).selectedOptions[0]?.dataset.sample ?? "";
const sounds = (button) =>
  sounding !== null && sounding.speaker === button.dataset.speaker && sounding.url === sampleOf(button);

// The buttons say what sounds. Who speaks no more, or by another voice, is not heard on.
function show() {
  const buttons = [...document.querySelectorAll("[data-cast-play]")];
  if (!buttons.some(sounds)) {
    sample.pause();
    sounding = null;
  }
  for (const button of buttons) {
    button.disabled = !sampleOf(button);
    button.setAttribute("aria-pressed", String(sounds(button)));
  }
}

function stop() {
  sounding = null;
  show();
}

function play(button) {
  for (const other of document.querySelectorAll("audio")) other.pause();
  const mine = { speaker: button.dataset.speaker, url: sampleOf(button) };
  sounding = mine;
  sample.src = mine.url;
  // Refused late, when another one sounds already, it stops nothing.
  sample.play().catch(() => sounding === mine && stop());
  show();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-cast-play]");
  if (!button) return;
  if (sounds(button)) stop();
  else play(button);
});
document.addEventListener("change", (event) => {
  if (!event.target.matches("[name=speaker_voice]")) return;
  // A price on its way brings the list with the voice of before: the next one is asked for with this voice.
  document.getElementById("quote").dispatchEvent(new CustomEvent("htmx:abort", { bubbles: true, detail: {} }));
  show();
});
// One thing sounds at a time.
document.addEventListener("play", stop, true);
for (const kind of ["ended", "error"]) sample.addEventListener(kind, stop);
// Once htmx has given new buttons the attributes of the page that came, which says that nothing sounds.
document.addEventListener("htmx:afterSettle", show);
show();
