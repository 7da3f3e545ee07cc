"use strict";
// Light or dark: as the system says, until the button says otherwise.
const theme = (() => {
  const root = document.documentElement;
  const listeners = [];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("radp-theme"); } catch { /* storage may be forbidden for files */ }

  function apply() {
    root.dataset.theme = current();
    for (const listener of listeners) listener();
  }
  function current() { return chosen ?? (dark.matches ? "dark" : "light"); }
  function set(name) {
    chosen = name;
    try { localStorage.setItem("radp-theme", name); } catch { /* then only for this page */ }
    apply();
  }
  dark.addEventListener("change", apply);
  apply();
  return {
    current, set,
    toggle: () => set(current() === "dark" ? "light" : "dark"),
    onChange: (listener) => listeners.push(listener),
    color: (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim(),
  };
})();

// An element with text and attributes; text is never read as HTML.
function element(tag, { text, title, className, ...attributes } = {}, ...children) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (title !== undefined) node.title = title;
  if (className) node.className = className;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const readData = () => JSON.parse(document.getElementById("data").textContent);

// A pressure, log(1 + level), in words: how many times its usual level.
function levelWords(pressure, most) {
  const level = Math.expm1(pressure);
  return level > most ? `>${most}×` : `${level.toFixed(level < 9.95 ? 1 : 0)}×`;
}
