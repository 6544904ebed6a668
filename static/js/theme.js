// <form data-theme-form>: applies the colours at once and keeps the choice where the server reads it.
const YEAR_SECONDS = 365 * 24 * 3600;

document.addEventListener("submit", (event) => {
  const form = event.target.closest("[data-theme-form]");
  const theme = event.submitter?.value ?? (form ? new FormData(form).get("theme") : null);
  if (!form || theme === null) return;
  event.preventDefault();
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `theme=${theme}; Path=/; Max-Age=${YEAR_SECONDS}; SameSite=Lax${secure}`;
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  for (const button of document.querySelectorAll("[data-theme-form] [name=theme][aria-pressed]")) {
    button.setAttribute("aria-pressed", String(button.value === theme));
  }
});
