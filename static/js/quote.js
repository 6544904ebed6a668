// Counts what is typed at once; the price comes from the server a moment later (htmx, see the page).

import { bind } from "./bind.js";

function startCounter(output) {
  const field = document.getElementById(output.dataset.counterOf);
  const limit = Number(output.dataset.limit);
  const show = () => {
    // Code points, as the server counts; a surrogate pair is one character.
    const count = [...field.value].length;
    output.textContent = output.dataset.text.replace("{count}", count.toLocaleString(document.documentElement.lang));
    output.dataset.tone = count > limit ? "bad" : count > limit * 0.9 ? "warn" : "";
    field.setAttribute("aria-invalid", String(count > limit || field.dataset.refused === "true"));
  };
  field.addEventListener("input", () => {
    delete field.dataset.refused;
    show();
  });
  show();
}

bind("[data-counter-of]", startCounter);
