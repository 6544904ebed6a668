// <time datetime="…" data-local="moment|date|second|clock|minute|day">: rewritten in the reader's own time zone.
const FORMS = {
  moment: { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  date: { year: "numeric", month: "short", day: "numeric" },
  second: { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
  clock: { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
  minute: { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  day: { month: "short", day: "numeric" },
};
// British order is the one that the server writes: 3 May 2026, 14:05.
const language = document.documentElement.lang === "en" ? "en-GB" : document.documentElement.lang;

/** Rewrites every time under `root`; its title keeps the exact moment. */
export function localiseTimes(root = document) {
  for (const element of root.querySelectorAll("time[data-local]")) {
    const moment = new Date(element.dateTime);
    const form = FORMS[element.dataset.local];
    if (!form || Number.isNaN(moment.getTime())) continue;
    element.title = element.textContent;
    element.textContent = new Intl.DateTimeFormat(language, form).format(moment);
    delete element.dataset.local;
  }
}

document.addEventListener("htmx:load", (event) => localiseTimes(event.target.parentElement ?? document));
localiseTimes();
