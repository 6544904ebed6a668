// Small manners of forms:
//   form[data-once]            is sent once: its button shows that it is busy
//   [data-submit-on-change]    sends its form when its value changes; the form keeps a button for no scripts
//   [data-count-for="#id"]     shows how many characters that field holds
//   [data-dismiss]             removes the alert that it stands in
//   [aria-invalid=true]        gets the focus when the page arrives
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("form[data-once]") || event.defaultPrevented) return;
  if (form.dataset.sent !== undefined) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "";
  const button = event.submitter ?? form.querySelector("[type=submit]");
  if (button) button.dataset.busy = "";
});

// Coming back by the browser's history shows the page as it was left: let it be sent again.
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    for (const button of form.querySelectorAll("[data-busy]")) delete button.dataset.busy;
  }
});

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit-on-change]")) event.target.form?.requestSubmit();
});

function showCount(field) {
  for (const place of document.querySelectorAll(`[data-count-for="#${CSS.escape(field.id)}"]`)) {
    // Characters as people count them, not UTF-16 units.
    place.textContent = [...field.value].length.toLocaleString(document.documentElement.lang);
  }
}

document.addEventListener("input", (event) => {
  if (event.target.id) showCount(event.target);
});

document.addEventListener("click", (event) => {
  event.target.closest("[data-dismiss]")?.closest(".alert")?.remove();
});

// A form that came back with something wrong: go on where it is wrong.
document.querySelector("main [aria-invalid=true]")?.focus();
