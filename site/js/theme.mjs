// @ts-check
// The theme: the one the visitor chose, else the system's. Charts are painted in its colours.

import { readPalette } from "./charts.mjs";
import { $ } from "./dom.mjs";

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

/** What paper needs besides its stylesheet: the address, and charts no larger than a sheet, since they are not drawn anew for it. @param {HTMLElement} chart */
export function forPaper(chart) {
  $("printed").textContent = location.href;
  document.documentElement.style.setProperty("--paper-fit", String(Math.min(1, 680 / chart.clientWidth, 360 / chart.clientHeight)));
}
