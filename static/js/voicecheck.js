// The report on a recording as soon as there is one: the file is sent to be measured, nothing of it is kept, and the
// checklist comes back as a part of the page. Saving does not wait for it: the recording is checked there again.

import { bind } from "./bind.js";

function startCheck(root) {
  const file = document.getElementById(root.dataset.fileField);
  const found = root.querySelector("[data-found]");
  const status = root.querySelector("[data-status]");
  const failed = root.querySelector("[data-failed]");
  const limit = Number(root.dataset.limitBytes);
  let running = null;

  const check = async () => {
    running?.abort();
    const mine = (running = new AbortController());
    failed.hidden = true;
    status.hidden = true;
    found.replaceChildren();
    const chosen = file.files[0];
    if (!chosen || chosen.size > limit) return;
    status.hidden = false;
    const body = new FormData();
    body.append("clip", chosen);
    body.append("csrfmiddlewaretoken", file.form.elements.csrfmiddlewaretoken.value);
    try {
      const response = await fetch(root.dataset.voiceCheck, { method: "POST", body, signal: mine.signal });
      const part = await response.text();
      if (mine !== running) return;
      if (response.headers.get("X-Part") !== "check") throw new Error("not a part");
      // The server's own words, with everything in them escaped.
      found.innerHTML = part;
    } catch {
      if (mine === running && !mine.signal.aborted) failed.hidden = false;
    } finally {
      if (mine === running) status.hidden = true;
    }
  };

  file.addEventListener("change", check);
  file.form.addEventListener("htmx:beforeRequest", () => running?.abort());
  file.form.addEventListener("htmx:afterSwap", (event) => {
    // The refusal of the save brings the same checklist.
    if (event.detail.target.querySelector(".report")) found.replaceChildren();
  });
  window.addEventListener("pagehide", () => running?.abort());
}

bind("[data-voice-check]", startCheck);
