// Follows the system until the reader chooses; the choice is kept where the browser allows it.
{
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const remembered = (write) => {
    try {
      return write === undefined ? localStorage.getItem("opweaver-theme") : localStorage.setItem("opweaver-theme", write);
    } catch {
      return null; // pages opened from a disk may have no storage
    }
  };
  const label = () => (button.textContent = isDark() ? "Light theme" : "Dark theme");
  const kept = remembered();
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remembered(root.dataset.theme);
    label();
  });
  system.addEventListener("change", label);
  label();
  button.hidden = false;
}
