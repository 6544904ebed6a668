// Values of a chart for the pointer and the keyboard: the column that is pointed at, or chosen with the arrow keys while
// the drawing has the focus, is said in the line below. The choice stays when the drawing is refreshed.
const language = document.documentElement.lang === "en" ? "en-GB" : document.documentElement.lang;
const time = new Intl.DateTimeFormat(language, {
  day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23",
});
const STEPS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
const chosen = new Map();

function parts(svg) {
  const figure = svg.closest("[data-chart]");
  return {
    id: figure.dataset.chart,
    columns: [...svg.querySelectorAll(".chart__column")],
    readout: figure.querySelector("[data-chart-readout]"),
  };
}

function show(svg, index) {
  const { id, columns, readout } = parts(svg);
  const column = columns[index];
  for (const other of columns) other.toggleAttribute("data-chosen", other === column);
  if (!column) return;
  chosen.set(id, index);
  // A day of a calendar comes in words: it is the same day in every zone.
  const when = column.dataset.label ?? time.format(new Date(column.dataset.moment));
  const text = `${when}: ${column.dataset.text}`;
  if (readout.textContent !== text) readout.textContent = text;
}

function clear(svg) {
  const { id, columns, readout } = parts(svg);
  for (const column of columns) column.removeAttribute("data-chosen");
  chosen.delete(id);
  readout.textContent = "";
}

document.addEventListener("pointerover", (event) => {
  const column = event.target.closest?.(".chart__column");
  if (!column) return;
  const svg = column.ownerSVGElement;
  show(svg, parts(svg).columns.indexOf(column));
});
document.addEventListener("pointerout", (event) => {
  const svg = event.target.closest?.("[data-chart-svg]");
  if (svg && !svg.contains(event.relatedTarget) && document.activeElement !== svg) clear(svg);
});
document.addEventListener("focusin", (event) => {
  if (!event.target.matches?.("[data-chart-svg]")) return;
  const { id, columns } = parts(event.target);
  show(event.target, chosen.get(id) ?? columns.length - 1);
});
document.addEventListener("focusout", (event) => {
  const svg = event.target;
  if (!svg.matches?.("[data-chart-svg]")) return;
  // A drawing that is being refreshed loses the focus to its successor of the same name, and the choice stays.
  setTimeout(() => {
    const here = document.getElementById(svg.id);
    if (here && document.activeElement !== here) clear(here);
  });
});
document.addEventListener("keydown", (event) => {
  if (!event.target.matches?.("[data-chart-svg]") || !(event.key in STEPS)) return;
  event.preventDefault();
  const { id, columns } = parts(event.target);
  const from = chosen.get(id) ?? columns.length - 1;
  show(event.target, Math.min(columns.length - 1, Math.max(0, from + STEPS[event.key])));
});
document.addEventListener("htmx:afterSettle", () => {
  for (const [id, index] of chosen) {
    const svg = document.querySelector(`[data-chart="${CSS.escape(id)}"] [data-chart-svg]`);
    if (svg) show(svg, index);
  }
});
