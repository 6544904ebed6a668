// The studio's text outlives a reload and a look at another page, in this tab alone: what was sent needs it no more,
// and the pages of who signed out forget it.

import { bind } from "./bind.js";

const DRAFT = "studio-draft";
// What the text is to be: of these a person chooses one.
const CHOICES = ["mode", "voice", "job_class"];

// A browser may refuse to keep anything.
function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(DRAFT));
  } catch {
    return null;
  }
}

function keep(draft) {
  try {
    if (draft.text) sessionStorage.setItem(DRAFT, JSON.stringify(draft));
    else sessionStorage.removeItem(DRAFT);
  } catch {
    // Then it is lost on a reload, as without scripts.
  }
}

function startDraft(form) {
  const field = form.elements.text;
  const workspace = form.dataset.draft;
  const now = () => ({
    workspace,
    text: field.value,
    choices: Object.fromEntries(CHOICES.map((name) => [name, form.elements[name]?.value])),
  });
  const draft = kept();
  // A text that the server put there was asked for.
  if (field.value === "" && draft?.workspace === workspace) {
    field.value = draft.text;
    for (const [name, value] of Object.entries(draft.choices)) {
      const choice = form.querySelector(`input[name="${name}"][value="${CSS.escape(value)}"]`);
      if (choice) choice.checked = true;
    }
  }
  for (const kind of ["input", "change"]) form.addEventListener(kind, () => keep(now()));
  form.addEventListener("submit", () => keep({ text: "" }));
}

bind("form[data-draft]", startDraft);
if (!document.querySelector(".rail")) keep({ text: "" });
