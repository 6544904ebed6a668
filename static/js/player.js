// [data-player]: a play button, a waveform to seek in, and the time, around a plain <audio controls>.
// One player sounds at a time. Markup: templates/partials/player.html.
import { word } from "./words.js";

const STEPS = 1000;

function clock(seconds) {
  const whole = Math.floor(seconds);
  const rest = String(whole % 60).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes}:${rest}` : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}`;
}

function parts(player) {
  return {
    audio: player.querySelector("audio"),
    toggle: player.querySelector("[data-player-toggle]"),
    seek: player.querySelector("[data-player-seek]"),
    played: player.querySelector("[data-player-played]"),
    time: player.querySelector("[data-player-time]"),
  };
}

function durationOf(player) {
  const { audio, time } = parts(player);
  if (Number.isFinite(audio.duration) && audio.duration > 0) return audio.duration;
  return Number(time?.dataset.durationMs ?? 0) / 1000;
}

function draw(player) {
  const { audio, toggle, seek, played, time } = parts(player);
  const duration = durationOf(player);
  const share = duration ? Math.min(1, audio.currentTime / duration) : 0;
  if (played) played.style.clipPath = `inset(0 ${(1 - share) * 100}% 0 0)`;
  if (seek && document.activeElement !== seek) seek.value = String(Math.round(share * STEPS));
  if (seek) seek.setAttribute("aria-valuetext", `${clock(audio.currentTime)} / ${clock(duration)}`);
  if (time) {
    const small = player.classList.contains("player--small");
    if (audio.paused && audio.currentTime === 0) time.textContent = duration ? clock(duration) : "";
    else time.textContent = small || !duration ? clock(audio.currentTime) : `${clock(audio.currentTime)} / ${clock(duration)}`;
  }
  const state = audio.paused ? word("play") : word("pause");
  toggle.setAttribute("aria-label", toggle.dataset.label ? `${state}: ${toggle.dataset.label}` : state);
  player.toggleAttribute("data-playing", !audio.paused);
}

function follow(player) {
  draw(player);
  if (!parts(player).audio.paused) requestAnimationFrame(() => follow(player));
}

function fail(player) {
  if (player.querySelector(".player__error")) return;
  const words = document.createElement("span");
  words.className = "player__error";
  words.setAttribute("role", "alert");
  words.textContent = word("audioFailed");
  player.append(words);
}

/** Prepares every player under `root` that is not prepared yet. Safe to call again. */
export function preparePlayers(root = document) {
  for (const player of root.querySelectorAll("[data-player]:not([data-ready])")) {
    const { audio } = parts(player);
    if (!audio) continue;
    player.dataset.ready = "";
    audio.controls = false;
    draw(player);
    for (const name of ["pause", "ended", "timeupdate", "loadedmetadata", "durationchange", "seeked"]) {
      audio.addEventListener(name, () => draw(player));
    }
    audio.addEventListener("play", () => {
      for (const other of document.querySelectorAll("audio")) if (other !== audio) other.pause();
      follow(player);
    });
    audio.addEventListener("ended", () => {
      audio.currentTime = 0;
      draw(player);
    });
    audio.addEventListener("error", () => fail(player));
  }
}

document.addEventListener("click", async (event) => {
  const player = event.target.closest("[data-player-toggle]")?.closest("[data-player]");
  if (!player) return;
  const { audio } = parts(player);
  if (!audio.paused) {
    audio.pause();
    return;
  }
  try {
    await audio.play();
  } catch (error) {
    // Paused again before it began is no failure.
    if (error.name !== "AbortError") fail(player);
  }
});

document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-player-seek]")) return;
  const player = event.target.closest("[data-player]");
  const { audio } = parts(player);
  const duration = durationOf(player);
  if (duration) audio.currentTime = (Number(event.target.value) / STEPS) * duration;
  draw(player);
});

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-player-seek]")) draw(event.target.closest("[data-player]"));
});

document.addEventListener("htmx:load", (event) => preparePlayers(event.target.parentElement ?? document));
preparePlayers();
