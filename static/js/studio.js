// The studio's form: sent once however often it is pressed, by Ctrl+Enter or ⌘+Enter from the text as well.

import { bind } from "./bind.js";

function startOnce(form) {
  let sent = false;
  form.addEventListener("submit", (event) => {
    if (event.submitter?.hasAttribute("formaction")) return;
    if (sent) {
      // The server would make one job of both as well; this only spares the second request.
      event.preventDefault();
      return;
    }
    sent = true;
    const button = form.querySelector("[data-submit]");
    button?.setAttribute("aria-busy", "true");
  });
  // A page that comes back from the browser's memory may be sent again.
  window.addEventListener("pageshow", () => {
    sent = false;
    form.querySelector("[data-submit]")?.removeAttribute("aria-busy");
  });
}

function startShortcut(field) {
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    field.form.requestSubmit(field.form.querySelector("[data-submit]"));
  });
}

bind("form[data-send-once]", startOnce);
bind("textarea[data-send-shortcut]", startShortcut);
bind("[data-focus-me]", (element) => element.focus());
