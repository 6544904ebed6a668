// A new voice: a file that is dropped or chosen is checked for size and can be heard before it is sent, and the text
// to read follows the chosen language. Also the filter over a long list of voices.

import { bind } from "./bind.js";

function startDropZone(zone) {
  const field = zone.querySelector('input[type="file"]');
  const chosen = zone.querySelector("[data-chosen]");
  const problem = zone.querySelector("[data-problem]");
  const listen = zone.querySelector("[data-listen]");
  const limit = Number(zone.dataset.limitBytes);
  let url = null;

  const show = (recorded) => {
    if (url) URL.revokeObjectURL(url);
    url = null;
    const file = field.files[0];
    const tooLarge = Boolean(file) && file.size > limit;
    problem.hidden = !tooLarge;
    field.setCustomValidity(tooLarge ? problem.textContent.trim() : "");
    const own = Boolean(file) && !recorded;
    chosen.hidden = !own;
    listen.hidden = !own || tooLarge;
    if (!own) {
      listen.removeAttribute("src");
      return;
    }
    chosen.textContent = `${file.name} · ${(file.size / 1024 / 1024).toFixed(1)} MiB`;
    url = URL.createObjectURL(file);
    listen.src = url;
  };

  field.addEventListener("change", (event) => show(Boolean(event.detail?.recorded)));
  for (const kind of ["dragenter", "dragover"]) {
    zone.addEventListener(kind, (event) => {
      event.preventDefault();
      zone.dataset.over = "true";
    });
  }
  for (const kind of ["dragleave", "drop"]) zone.addEventListener(kind, () => delete zone.dataset.over);
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    if (!event.dataTransfer.files.length) return;
    const transfer = new DataTransfer();
    transfer.items.add(event.dataTransfer.files[0]);
    field.files = transfer.files;
    // As if it had been chosen: setting files says so to nobody.
    field.dispatchEvent(new Event("change", { bubbles: true }));
  });
}

// Only the reading text of the chosen language is shown; a recording of it needs no transcript to be typed.
function startReadings(root) {
  const select = document.getElementById(root.dataset.readingsOf);
  const transcript = document.getElementById(root.dataset.transcriptField);
  const file = document.getElementById(root.dataset.fileField);
  const readings = [...root.querySelectorAll("[data-reading]")];
  let filled = "";
  const current = () => readings.find((reading) => reading.dataset.reading === select.value) ?? readings[0];
  const show = () => {
    for (const reading of readings) reading.hidden = reading !== current();
  };
  select.addEventListener("change", show);
  file.addEventListener("change", (event) => {
    if (event.detail?.recorded && (transcript.value === "" || transcript.value === filled)) {
      filled = current().textContent.trim();
      transcript.value = filled;
    } else if (!event.detail?.recorded && transcript.value === filled) {
      // The text that was read aloud is not what another file says.
      transcript.value = "";
      filled = "";
    }
  });
  show();
}

function startFilter(field) {
  const items = [...document.querySelectorAll(field.dataset.filter)];
  const none = document.querySelector(field.dataset.filterNone);
  const apply = () => {
    const words = field.value.trim().toLocaleLowerCase();
    let shown = 0;
    for (const item of items) {
      const fits = item.dataset.words.toLocaleLowerCase().includes(words) || item.querySelector("input:checked") !== null;
      item.hidden = !fits;
      shown += Number(fits);
    }
    if (none) none.hidden = shown > 0;
  };
  field.hidden = false;
  field.addEventListener("input", apply);
  // Enter in a filter must not send the form that it stands in.
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault();
  });
}

bind("[data-drop-zone]", startDropZone);
bind("[data-readings-of]", startReadings);
bind("[data-filter]", startFilter);

// The form of a new voice is sent by htmx, so that a refused recording is still in the page. What the server found
// comes back as a part even when it is a refusal; anything else is a broken connection.
function startVoiceForm(form) {
  const failed = form.querySelector("[data-send-failed]");
  form.addEventListener("htmx:beforeRequest", () => (failed.hidden = true));
  form.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr } = event.detail;
    if (xhr.status < 400) return;
    const isFindings = xhr.getResponseHeader("X-Part") === "findings";
    event.detail.shouldSwap = isFindings;
    event.detail.isError = !isFindings;
    const tooLarge = xhr.status === 413 && !isFindings;
    if (tooLarge) form.querySelector("[data-drop-zone] [data-problem]").hidden = false;
    failed.hidden = isFindings || tooLarge;
    if (!isFindings) form.querySelector("#findings").replaceChildren();
  });
  for (const kind of ["htmx:sendError", "htmx:timeout"]) form.addEventListener(kind, () => (failed.hidden = false));
}

bind("[data-voice-form]", startVoiceForm);
