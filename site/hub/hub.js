// @ts-check
"use strict";
// The only script that may speak to another host, in a hidden frame that the page makes when its visitor asks for a model by id, and takes
// away after the answer. The page's own policy stays closed; the policy of this frame opens one host, and a redirect to any other is stopped by it.
// It fetches one file of one model's repository and hands its text to the page that made it. It sends nothing but the address.
(() => {
  const HOST = "https://huggingface.co", PART = "[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9])?", PATIENCE_MS = 20_000;
  const ID = new RegExp(`^${PART}/${PART}$`);
  /** Bytes a file may have; Python has the last word on what is in it. @type {Record<string, number>} */
  const FILES = { "config.json": 8_000_000, "model.safetensors.index.json": 48_000_000 };
  let blocked = false;
  addEventListener("securitypolicyviolation", () => { blocked = true; });

  /** @param {string} id @param {string} file @returns {Promise<{text: string} | {error: string, status?: number}>} */
  async function get(id, file) {
    if (!ID.test(id) || /\.\.|--/.test(id) || !Object.hasOwn(FILES, file)) return { error: "id" };
    if (navigator.onLine === false) return { error: "offline" };
    const stop = new AbortController();
    const late = setTimeout(() => stop.abort(), PATIENCE_MS);
    blocked = false;
    try {
      const response = await fetch(`${HOST}/${id}/resolve/main/${file}`, { credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store", mode: "cors", signal: stop.signal });
      if (new URL(response.url || HOST).origin !== HOST) return { error: "redirect" };
      if (!response.ok) return { error: reason(response), status: response.status };
      return await read(response, FILES[file]);
    } catch {
      if (stop.signal.aborted) return { error: "timeout" };
      await new Promise((done) => setTimeout(done, 50)); // the policy's own report comes a moment after the refusal
      return { error: blocked ? "redirect" : "unreachable" };
    } finally {
      clearTimeout(late);
    }
  }

  /** Why the hub refuses. It answers 401 for a gated model and for one that does not exist, and says which in a header. @param {Response} response */
  function reason(response) {
    const said = response.headers.get("x-error-code") ?? "";
    if (said === "RepoNotFound") return "missing";
    if (said === "EntryNotFound") return "file";
    if (response.status === 401 || response.status === 403) return "gated";
    return response.status === 404 ? "missing" : "status";
  }

  /** The text of an answer, as long as it stays within the limit. @param {Response} response @param {number} limit */
  async function read(response, limit) {
    const reader = response.body?.getReader(), decoder = new TextDecoder("utf-8", { fatal: true });
    let text = "", bytes = 0;
    for (let chunk = await reader?.read(); chunk && !chunk.done; chunk = await reader?.read()) {
      bytes += chunk.value.length;
      if (bytes > limit) { reader?.cancel().catch(() => {}); return { error: "large" }; }
      try { text += decoder.decode(chunk.value, { stream: true }); } catch { return { error: "json" }; }
    }
    return /^\s*\{/.test(text) ? { text } : { error: "json" };
  }

  const tell = (/** @type {object} */ message) => parent.postMessage({ roofline: "hub", ...message }, location.origin);
  addEventListener("message", async ({ source, origin, data }) => {
    if (source !== parent || origin !== location.origin || data?.roofline !== "ask") return;
    tell({ answer: await get(String(data.id), String(data.file)) });
  });
  if (parent !== window) tell({ ready: true });
})();
