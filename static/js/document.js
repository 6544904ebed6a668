// A document for the Studio's text: chosen in the dialog or dropped on the field, its chapters chosen, put into the
// text, and undone. Nothing is sent but the file; its chapters come back as a part of a page.

import { bind } from "./bind.js";

const dialog = document.getElementById("document-dialog");
const field = document.querySelector(".editor__field");
const undo = document.querySelector("[data-document-undo]");
const found = dialog?.querySelector("[data-document-found]");
const failed = dialog?.querySelector("[data-document-failed]");
let asked = 0;

async function send(form) {
  const status = form.querySelector("[data-document-status]");
  const mine = (asked += 1);
  failed.hidden = true;
  status.hidden = false;
  found.replaceChildren();
  try {
    const response = await fetch(form.action, { method: "POST", body: new FormData(form), headers: { "X-Part": "document" } });
    if (mine !== asked) return;
    if (response.headers.get("X-Part") !== "document") throw new Error("not a part");
    // The server's own page, with everything in it escaped.
    found.innerHTML = await response.text();
    found.querySelector("[data-focus-me]")?.focus();
    const chapters = found.querySelector("[data-chapters]");
    if (chapters) startChapters(chapters);
  } catch {
    if (mine === asked) failed.hidden = false;
  } finally {
    if (mine === asked) status.hidden = true;
  }
}

function startForm(form) {
  if (!dialog?.contains(form)) return;
  const file = form.querySelector('input[type="file"]');
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
  file.addEventListener("change", () => {
    if (file.files.length) send(form);
  });
}

function startChapters(form) {
  const boxes = [...form.querySelectorAll('input[name="chapter"]')];
  const sum = form.querySelector("[data-chosen-sum]");
  const question = form.querySelector("[data-question]");
  const put = form.querySelector("[data-put]");
  const limit = Number(form.dataset.limit);
  const chosen = () => boxes.filter((box) => box.checked);

  const show = () => {
    const lengths = chosen().map((box) => Number(box.dataset.characters));
    const count = lengths.reduce((all, one) => all + one, 0) + 2 * Math.max(0, lengths.length - 1);
    sum.textContent = sum.dataset.text.replace("{count}", count.toLocaleString(document.documentElement.lang));
    sum.dataset.tone = count > limit ? "bad" : "";
    form.querySelector("[data-put-text]").disabled = lengths.length === 0;
  };
  const ask = (asks) => {
    question.hidden = !asks;
    put.hidden = asks;
  };

  form.addEventListener("change", show);
  for (const button of form.querySelectorAll("[data-choose]")) {
    button.addEventListener("click", () => {
      for (const box of boxes) box.checked = button.dataset.choose === "all";
      show();
    });
  }
  form.querySelector("[data-question-close]").addEventListener("click", () => {
    ask(false);
    form.querySelector("[data-put-text]").focus();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = chosen()
      .map((box) => form.elements[`text-${box.value}`].value)
      .join("\n\n");
    if (question.hidden && field.value.trim() !== "") {
      ask(true);
      question.querySelector("button").focus();
      return;
    }
    const before = field.value;
    const isAppended = event.submitter?.value === "append";
    write(isAppended ? `${before.trimEnd()}\n\n${text}` : text);
    undo.hidden = false;
    undo.onclick = () => {
      write(before);
      // Before it goes with the button that had it.
      field.focus();
      undo.hidden = true;
    };
    dialog.close();
    found.replaceChildren();
    dialog.querySelector("[data-document-form]").reset();
    field.focus();
  });
  show();
}

function write(text) {
  field.value = text;
  // The counter and the price follow as if it had been typed.
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

// Only files are taken over: dropped words are the browser's own affair.
function startDrop() {
  const hasFile = (event) => [...event.dataTransfer.types].includes("Files");
  for (const kind of ["dragenter", "dragover"]) {
    field.addEventListener(kind, (event) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      field.dataset.over = "true";
    });
  }
  for (const kind of ["dragleave", "drop"]) field.addEventListener(kind, () => delete field.dataset.over);
  field.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    const transfer = new DataTransfer();
    transfer.items.add(event.dataTransfer.files[0]);
    const form = dialog.querySelector("[data-document-form]");
    form.querySelector('input[type="file"]').files = transfer.files;
    if (!dialog.open) dialog.showModal();
    send(form);
  });
}

bind("[data-document-form]", startForm);
if (dialog && field) startDrop();
