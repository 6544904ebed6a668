// Passwords:
//   [data-password-toggle="#id"]  shows and hides what was typed
//   [data-password-rules="#id"]   ticks the rules off as the password is typed; the server checks them all again
//     li[data-rule=length][data-minimum], li[data-rule=letters], li[data-rule=different][data-compare="#email"],
//     li[data-rule=common][data-list="address of a JSON list of SHA-256 prefixes"]
import { word } from "./words.js";

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-password-toggle]");
  if (!button) return;
  const field = document.querySelector(button.dataset.passwordToggle);
  const shown = field.type === "text";
  field.type = shown ? "password" : "text";
  button.setAttribute("aria-pressed", String(!shown));
  button.setAttribute("aria-label", shown ? word("show") : word("hide"));
});
