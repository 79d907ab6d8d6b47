// @ts-check
// A file of a model on the hub, fetched by a frame with a policy of its own (hub/hub.html): the policy of this page lets nothing out.

import { h } from "../dom.mjs";

const PART = "[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9])?", ID = new RegExp(`^${PART}/${PART}$`);
const PATIENCE_MS = 30_000; // the frame's own patience with the hub is shorter

/** The id in what was typed (an address of a model's page will do), or "". @param {string} typed */
export function modelId(typed) {
  const page = /^https?:\/\/(?:www\.)?huggingface\.co\/([^/?#]+\/[^/?#]+)(?:[/?#].*)?$/.exec(typed.trim());
  const id = page ? page[1] : typed.trim();
  return ID.test(id) && !/\.\.|--/.test(id) ? id : "";
}

/**
 * Ask the hub for one file. Resolves with its text, or with the word for what went wrong.
 * @param {any} build @param {string} id @param {"config.json" | "model.safetensors.index.json"} file @returns {Promise<{text?: string, error?: string, status?: number}>}
 */
export function ask(build, id, file) {
  return new Promise((resolve) => {
    const frame = h("iframe", { class: "hub", title: "huggingface.co", hidden: true, sandbox: "allow-scripts allow-same-origin", referrerpolicy: "no-referrer", src: new URL(`${build.app}hub/hub.html`, document.baseURI).href });
    const done = (/** @type {any} */ answer) => {
      removeEventListener("message", listen);
      clearTimeout(late);
      frame.remove();
      resolve(answer);
    };
    const late = setTimeout(() => done({ error: navigator.onLine === false ? "offline" : "timeout" }), PATIENCE_MS);
    function listen(/** @type {MessageEvent} */ { source, origin, data }) {
      if (source !== frame.contentWindow || origin !== location.origin || data?.roofline !== "hub") return;
      if (data.ready) frame.contentWindow.postMessage({ roofline: "ask", id, file }, location.origin);
      else if (typeof data.answer?.text === "string" || typeof data.answer?.error === "string") done(data.answer);
    }
    addEventListener("message", listen);
    document.body.append(frame);
  });
}
