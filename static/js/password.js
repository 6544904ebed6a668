// Passwords:
//   [data-password-toggle="#id"]  shows and hides what was typed
//   [data-password-rules="#id"]   ticks its rules off while the password is typed; the server checks them all again
//     li[data-rule=length][data-minimum]      characters
//     li[data-rule=letters]                   not digits alone
//     li[data-rule=different][data-compare]   unlike the e-mail address: a field ("#id") or the address itself
//     li[data-rule=common][data-list]         not in the list at this address, which is fetched on first focus
import { word } from "./words.js";

// As django.contrib.auth.password_validation.UserAttributeSimilarityValidator.
const MAX_SIMILARITY = 0.7;
const lists = new Map();

function similarity(a, b) {
  const left = new Map();
  for (const character of b) left.set(character, (left.get(character) ?? 0) + 1);
  let matches = 0;
  for (const character of a) {
    const count = left.get(character) ?? 0;
    if (count > 0) matches += 1;
    left.set(character, count - 1);
  }
  return a.length + b.length ? (2 * matches) / ([...a].length + [...b].length) : 1;
}

function isTooSimilar(password, address) {
  const typed = password.toLowerCase();
  const whole = address.toLowerCase();
  return [...whole.split(/[^\p{L}\p{N}_]+/u), whole]
    .filter((part) => !(typed.length >= 10 * part.length && part.length < (MAX_SIMILARITY / 2) * typed.length))
    .some((part) => similarity(typed, part) >= MAX_SIMILARITY);
}

function isMet(rule, password) {
  switch (rule.dataset.rule) {
    case "length":
      return [...password].length >= Number(rule.dataset.minimum);
    case "letters":
      return !/^\p{Nd}+$/u.test(password);
    case "different": {
      const compare = rule.dataset.compare;
      const address = compare.startsWith("#") ? (document.querySelector(compare)?.value ?? "") : compare;
      return !address || !isTooSimilar(password, address);
    }
    case "common": {
      const list = lists.get(rule.dataset.list);
      return list instanceof Set ? !list.has(password.toLowerCase().trim()) : null;
    }
    default:
      return null;
  }
}

function check(rules) {
  const field = document.querySelector(rules.dataset.passwordRules);
  const password = field?.value ?? "";
  for (const rule of rules.querySelectorAll("[data-rule]")) {
    const met = password ? isMet(rule, password) : null;
    if (met === null) delete rule.dataset.met;
    else rule.dataset.met = met ? "yes" : "no";
    const state = rule.querySelector("[data-rule-state]");
    if (state) state.textContent = met === null ? "" : met ? rule.dataset.wordYes : rule.dataset.wordNo;
  }
}

function rulesAbout(field) {
  return [...document.querySelectorAll("[data-password-rules]")].filter(
    (rules) =>
      field.matches(rules.dataset.passwordRules) ||
      [...rules.querySelectorAll("[data-compare^='#']")].some((rule) => field.matches(rule.dataset.compare)),
  );
}

document.addEventListener("focusin", async (event) => {
  for (const rules of rulesAbout(event.target)) {
    const address = rules.querySelector("[data-list]")?.dataset.list;
    if (!address || lists.has(address)) continue;
    lists.set(address, "coming");
    try {
      const response = await fetch(address);
      if (!response.ok) throw new Error(response.statusText);
      lists.set(address, new Set((await response.json()).passwords));
    } catch {
      // The server still refuses a common one; the next focus tries again.
      lists.delete(address);
    }
    check(rules);
  }
});

document.addEventListener("input", (event) => {
  for (const rules of rulesAbout(event.target)) check(rules);
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-password-toggle]");
  if (!button) return;
  const field = document.querySelector(button.dataset.passwordToggle);
  const isShown = field.type === "text";
  field.type = isShown ? "password" : "text";
  button.setAttribute("aria-pressed", String(!isShown));
  button.setAttribute("aria-label", isShown ? word("show") : word("hide"));
});
