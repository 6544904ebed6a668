// Counts what is typed at once; the price comes from the server a moment later (htmx, see the page).

import { bind } from "./bind.js";

function startCounter(output) {
  const field = document.getElementById(output.dataset.counterOf);
  // The class of urgency says how long a text may be.
  const chosenField = () => field.form?.querySelector("[data-text-limit]:checked");
  const chosen = () => chosenField()?.dataset;
  let wasTooLong = false;
  const show = () => {
    const limit = Number(chosen()?.textLimit ?? output.dataset.limit);
    const text = chosen()?.counterText ?? output.dataset.text;
    // Code points, as the server counts; a surrogate pair is one character.
    const count = [...field.value].length;
    output.textContent = text.replace("{count}", count.toLocaleString(document.documentElement.lang));
    // Another class may take it: where to choose one is shown.
    if (count > limit && !wasTooLong) chosenField()?.closest("details")?.setAttribute("open", "");
    wasTooLong = count > limit;
    output.dataset.tone = count > limit ? "bad" : count > limit * 0.9 ? "warn" : "";
    field.setAttribute("aria-invalid", String(count > limit || field.dataset.refused === "true"));
  };
  field.addEventListener("input", () => {
    delete field.dataset.refused;
    show();
  });
  field.form?.addEventListener("change", show);
  show();
}

// What was opened stays open when the next quote replaces it.
const opened = new Set();
document.addEventListener(
  "toggle",
  (event) => {
    if (!event.target.matches("#quote-extra details[id]")) return;
    if (event.target.open) opened.add(event.target.id);
    else if (event.target.isConnected) opened.delete(event.target.id);
  },
  true,
);

bind("[data-counter-of]", startCounter);
bind("#quote-extra details[id]", (details) => {
  details.open = opened.has(details.id);
});
