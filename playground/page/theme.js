// The light or the dark theme, for the playground's page and the console: the system's, until the button with the id
// "theme" is pressed. Loaded before the body is drawn, and therefore no module.
{
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const other = { light: "dark", dark: "light" };
  const systems = () => (system.matches ? "dark" : "light");

  const show = () => {
    const chosen = localStorage.getItem("theme");
    if (chosen in other) root.dataset.theme = chosen;
    else delete root.dataset.theme;
    const isDark = (root.dataset.theme ?? systems()) === "dark";
    document.getElementById("theme")?.setAttribute("aria-pressed", String(isDark));
  };

  // If it is the system's theme again, nothing is stored, and the page follows the system.
  const change = () => {
    const wanted = other[root.dataset.theme ?? systems()];
    if (wanted === systems()) localStorage.removeItem("theme");
    else localStorage.setItem("theme", wanted);
    show();
  };

  show();
  system.addEventListener("change", show);
  addEventListener("storage", show); // changed in another tab
  document.addEventListener("DOMContentLoaded", show);
  document.addEventListener("click", (event) => event.target.closest("#theme") && change());
}
