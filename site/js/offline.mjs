// @ts-check
// The service worker's side of the page: works offline after the first visit, offers updates, never loses the question.

import { $, toast } from "./dom.mjs";
import { t } from "./i18n.mjs";

let kept = false;
/** Once a page. @param {() => boolean} touched whether the visitor has done anything that a reload would disturb */
export async function keepOffline(touched) {
  if (kept) return;
  kept = true;
  const mark = $("net");
  const draw = () => {
    mark.hidden = navigator.onLine;
    mark.textContent = navigator.onLine ? "" : t("offline");
  };
  addEventListener("online", draw);
  document.addEventListener("language", draw);
  addEventListener("offline", draw);
  draw();
  if (!("serviceWorker" in navigator) || !isSecureContext) return;
  try {
    const hadWorker = Boolean(navigator.serviceWorker.controller);
    const registration = await navigator.serviceWorker.register("sw.js", { updateViaCache: "none" });
    let reloading = false;
    navigator.serviceWorker.addEventListener("controllerchange", () => {
      if (hadWorker && !reloading && takingOver) { reloading = true; location.reload(); }
    });
    let takingOver = false;
    const takeOver = () => { takingOver = true; registration.waiting?.postMessage("take-over"); };
    const arrived = () => {
      if (!registration.waiting || !navigator.serviceWorker.controller) return;
      if (!touched()) takeOver();
      else toast(() => t("update.ready"), () => t("update.reload"), takeOver, 0);
    };
    if (registration.waiting) arrived();
    registration.addEventListener("updatefound", () => {
      const worker = registration.installing;
      worker?.addEventListener("statechange", () => {
        if (worker.state === "installed") arrived();
        if (worker.state === "activated") document.documentElement.dataset.offline = "yes";
      });
    });
    await navigator.serviceWorker.ready;
    document.documentElement.dataset.offline = "yes";
  } catch { /* refused (private window, policy): the page works without it */ }
}
