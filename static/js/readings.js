// Characters with several readings: choosing one puts its annotation in the character's place in the text field.

const form = document.getElementById("studio-form");
const field = form?.elements.text;

// The text that the marks were made of: a place in it is led on to the text as it is now.
let asked = field?.value;
let shown = field?.value;

function isOfQuote(event) {
  return event.detail.elt?.id === "quote";
}

// Where a place of the shown text is now: what was typed since stands in one stretch, and all around it is the same.
// -1: in that stretch.
function placeNow(start, end) {
  const now = field.value;
  const shorter = Math.min(now.length, shown.length);
  let before = 0;
  while (before < shorter && now[before] === shown[before]) before += 1;
  if (end <= before) return start;
  let after = 0;
  while (after < shorter - before && now.at(-1 - after) === shown.at(-1 - after)) after += 1;
  return start >= shown.length - after ? start + now.length - shown.length : -1;
}

function insert(menu, annotation) {
  const { readingOf } = menu.dataset;
  const start = placeNow(Number(menu.dataset.start), Number(menu.dataset.start) + readingOf.length);
  const end = start + readingOf.length;
  menu.open = false;
  if (start < 0 || field.value.slice(start, end) !== readingOf) return;
  field.focus();
  field.setSelectionRange(start, end);
  // Typed as a person would: the browser's undo takes it back. Where that is not known the text is still changed.
  if (!document.execCommand("insertText", false, annotation)) {
    field.setRangeText(annotation, start, end, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

if (field) {
  let answered = "";
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!isOfQuote(event)) return;
    const { formData, triggeringEvent } = event.detail.requestConfig;
    // Leaving the field is a change too. The same answer again would only close the menu that it was left for.
    if (triggeringEvent?.type === "change" && String(new URLSearchParams(formData)) === answered) {
      event.preventDefault();
    }
    asked = field.value;
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!isOfQuote(event) || !event.detail.successful) return;
    answered = String(new URLSearchParams(event.detail.requestConfig.formData));
    shown = asked;
  });
  document.addEventListener("click", (event) => {
    const choice = event.target.closest("[data-annotation]");
    if (choice) insert(choice.closest("[data-reading-of]"), choice.dataset.annotation);
    for (const open of document.querySelectorAll("[data-reading-of][open]")) {
      if (!open.contains(event.target)) open.open = false;
    }
  });
  document.addEventListener(
    "toggle",
    (event) => {
      if (!event.target.matches("[data-reading-of][open]")) return;
      delete event.target.dataset.side;
      const { right } = event.target.lastElementChild.getBoundingClientRect();
      if (right > document.documentElement.clientWidth) event.target.dataset.side = "end";
    },
    true,
  );
  document.addEventListener("keydown", (event) => {
    const menu = event.target.closest?.("[data-reading-of][open]");
    if (event.key !== "Escape" || !menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}
