// @ts-check
// A model of one's own: its dialog comes when it is first opened (views/model.mjs); what is dropped on the page or pasted outside a field opens it too.

import { toast } from "./dom.mjs";
import { t } from "./i18n.mjs";
import { viewWords } from "./lazy.mjs";

/** Open the dialog, with a text or a file at hand or with none. @param {any} page @param {string | File} [given] */
export async function openPaste(page, given = "") {
  try {
    const [{ open }] = await Promise.all([import("./views/model.mjs"), viewWords(page.engine.build)]);
    open(page, given);
  } catch (error) {
    toast(() => t("view.failed", { why: /** @type {Error} */ (error).message }));
  }
}

/** Files dropped anywhere on the page, and JSON pasted outside a field. @param {any} page */
export function listenForConfigs(page) {
  addEventListener("dragover", (event) => { if (event.dataTransfer?.types.includes("Files")) { event.preventDefault(); document.body.classList.add("dropping"); } });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  addEventListener("drop", (event) => {
    const file = event.dataTransfer?.files[0];
    document.body.classList.remove("dropping");
    if (!file) return;
    event.preventDefault();
    openPaste(page, file);
  });
  addEventListener("paste", (event) => {
    const inField = /** @type {HTMLElement} */ (event.target)?.closest?.("input, textarea, select, dialog");
    const text = event.clipboardData?.getData("text") ?? "";
    if (!inField && /^\s*\{[\s\S]*"\w/.test(text)) openPaste(page, text);
  });
}
