// Everything can be done without a mouse; these keys make it quick.
import { byId, html } from "./elements.js";

export const bindKeys = (keys) => {
  byId("shortcut-list").replaceChildren(
    ...Object.entries({ ...keys, "?": { what: "this list" }, Tab: { what: "from part to part" }, "← →": { what: "along a plot or the slider" } })
      .flatMap(([key, { what }]) => [html("dt", {}, html("kbd", {}, key)), html("dd", {}, what)]));
  const help = () => byId("shortcuts").showModal();
  byId("help").addEventListener("click", help);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const act = event.key === "?" ? help : keys[event.key]?.act;
    if (!act) return;
    event.preventDefault();
    act();
  });
};
