// Light or dark: as the system says until somebody chooses.
const dark = matchMedia("(prefers-color-scheme: dark)");

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : dark.matches;
};

export const toggleTheme = () => {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("sluicegate-theme", next);
  document.dispatchEvent(new Event("theme"));
};

dark.addEventListener("change", () => document.dispatchEvent(new Event("theme")));

// A canvas knows no variables: let the browser work one out. `share` of 100: the rest of it is the card below.
export const colour = (name, share = 100) => {
  const probe = document.createElement("i");
  probe.style.color = `color-mix(in srgb, var(--${name}) ${share}%, var(--card))`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
};
