// @ts-check
// What the visitor sees while Python starts: a thin bar, words only if it takes long; and one screen if it cannot.

import { $, h, fill } from "./dom.mjs";
import { t } from "./i18n.mjs";

const WEIGHT = /** @type {Record<string, [number, number]>} */ ({
  "engine-download": [2, 60], "engine-start": [60, 88], "model-load": [88, 98], ready: [100, 100],
});

/** @param {import("./engine.mjs").Engine} engine */
export function showBoot(engine) {
  const box = $("boot"), bar = $("boot-bar"), text = $("boot-text");
  let words = 0, said = () => "", failed = /** @type {any} */ (null);
  const tell = () => { text.textContent = said(); };
  document.addEventListener("language", tell);
  const talk = () => { clearTimeout(words); words = window.setTimeout(() => box.classList.add("slow"), 1500); };
  const begin = () => { box.hidden = false; box.classList.remove("slow"); bar.value = 2; said = () => t("boot.engine-download"); tell(); talk(); };
  begin();

  engine.addEventListener("start", begin);
  engine.addEventListener("progress", (/** @type {any} */ { detail }) => {
    const [from, to] = WEIGHT[detail.stage] ?? [0, 0];
    bar.value = from + (detail.total ? (to - from) * (detail.done / detail.total) : 0);
    const key = detail.mode === "plain" ? "boot.plain" : `boot.${detail.stage}`;
    said = () => t(key) + (detail.total && detail.stage === "engine-download" ? ` ${Math.round((100 * detail.done) / detail.total)}\u2009%` : "");
    tell();
  });
  let ran = () => "";
  const sayHow = () => { $("engine-state").textContent = ran(); };
  document.addEventListener("language", sayHow);
  engine.addEventListener("ready", (/** @type {any} */ { detail: { ms, mode } }) => {
    ran = () => t("engine.ready", { s: (ms.ready / 1000).toFixed(1), how: t(`engine.${mode}`) });
    sayHow();
    clearTimeout(words);
    bar.value = 100;
    box.classList.add("done");
    window.setTimeout(() => { box.hidden = true; box.classList.remove("done"); }, 500);
    $("failure").hidden = true;
  });
  engine.addEventListener("failed", (/** @type {any} */ { detail }) => {
    clearTimeout(words);
    box.hidden = true;
    failed = detail;
    showFailure(engine, failed);
  });
  document.addEventListener("language", () => { if (!$("failure").hidden) showFailure(engine, failed); });
}

/** Say what went wrong, what still holds, and what can be done. @param {any} engine @param {any} detail */
function showFailure(engine, detail) {
  const report = [`Roofline ${engine.build.version}, build ${engine.build.build}`, navigator.userAgent, ...detail.history].join("\n");
  fill($("failure"),
    h("h2", {}, t("failure.title")), h("p", {}, t(`failure.${detail.stage}`)), h("p", {}, t("failure.still")),
    h("div", { class: "row" },
      h("button", { type: "button", class: "solid", id: "retry", onclick: () => { $("failure").hidden = true; engine.start(); } }, t("retry")),
      h("button", { type: "button", class: "quiet", onclick: clearAndReload }, t("failure.clear"))),
    h("details", {}, h("summary", {}, t("failure.details")), h("pre", { tabindex: "0", lang: "en" }, report)));
  $("failure").hidden = false;
}

/** Drop what this page stored and load it anew, keeping the question in the address. */
async function clearAndReload() {
  try {
    for (const registration of (await navigator.serviceWorker?.getRegistrations()) ?? []) await registration.unregister();
    for (const name of await caches.keys()) if (name.startsWith("roofline-")) await caches.delete(name);
  } catch { /* storage refused: there was nothing to clear */ }
  location.reload();
}
