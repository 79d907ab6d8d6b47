// @ts-check
// The theme: the one the visitor chose, else the system's. Charts are painted in its colours.

import { readPalette } from "./charts.mjs";

/** @param {import("./charts.mjs").Chart[]} charts */
export function repaint(charts) {
  readPalette();
  for (const each of charts) each.restyle();
}

/** @param {import("./charts.mjs").Chart[]} charts */
export function switchTheme(charts) {
  const { dataset } = document.documentElement, dark = dataset.theme ? dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("roofline-theme", dataset.theme); } catch { /* storage refused */ }
  repaint(charts);
}
