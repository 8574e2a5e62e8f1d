// Elements without markup in strings: names from outside can never become markup.
const SVG = "http://www.w3.org/2000/svg";

const filled = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
};

export const html = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);
export const byId = (id) => document.getElementById(id);

// A bar for a share of one; its width is set by script, since the page allows no inline styles.
export const meter = (value, kind) => {
  const bar = html("i");
  bar.style.width = `${Math.min(Math.max(value ?? 0, 0), 1) * 100}%`;
  return html("span", { class: `meter ${kind}`, "aria-hidden": "true" }, bar);
};
