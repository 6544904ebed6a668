// The studio's form: Ctrl+Enter or ⌘+Enter in the text sends it; a refusal takes the focus.

import { bind } from "./bind.js";

function startShortcut(field) {
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    field.form.requestSubmit(field.form.querySelector("[data-submit]"));
  });
}

bind("[data-send-shortcut]", startShortcut);
bind("[data-focus-me]", (element) => element.focus());
