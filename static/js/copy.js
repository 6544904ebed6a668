// [data-copy="#id"] copies the text of that element, or the value of that field.
import { toast } from "./toast.js";
import { word } from "./words.js";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.querySelector(button.dataset.copy);
  if (!source) return;
  try {
    // Not there on plain HTTP from another machine.
    await navigator.clipboard.writeText(source.value ?? source.textContent.trim());
    toast(word("copied"));
  } catch {
    getSelection().selectAllChildren(source);
    toast(word("copyFailed"), "warn");
  }
});
