// @ts-check
// The examples: each is a whole question that teaches something. Names are words of the page ("preset.chat").

/** Links name them for ever ("#p=chat"), so a form that stands here is never changed; a better example gets an id of its own. @type {{id: string, form: Record<string, string>}[]} */
export const PRESETS = [
  { id: "serve", form: { model: "llama-3.1-70b", hardware: "h200-sxm", devices: "2", weights: "fp8", batch: "32", prompt: "8k", output: "512" } },
  { id: "chat", form: { model: "llama-3.1-8b", hardware: "rtx-4090", weights: "Q4_K_M", batch: "1", prompt: "2k", output: "512" } },
  { id: "one", form: { model: "llama-3.1-70b", hardware: "h100-sxm", devices: "1", weights: "int4-g128", batch: "4", prompt: "4k", output: "512" } },
  { id: "eight", form: { model: "llama-3.1-70b", hardware: "h100-sxm", devices: "8", weights: "bf16", batch: "64", prompt: "4k", output: "512" } },
  { id: "deepseek", form: { model: "deepseek-v3", hardware: "h200-sxm", devices: "8", batch: "64", prompt: "4k", output: "1k" } },
  { id: "long", form: { model: "llama-3.1-8b", hardware: "h100-sxm", devices: "1", weights: "fp8", kv: "fp8", batch: "4", prompt: "120k", output: "1k" } },
  { id: "offline", form: { model: "llama-3.1-8b", hardware: "h100-sxm", devices: "1", weights: "fp8", kv: "fp8", batch: "512", prompt: "1k", output: "256" } },
  { id: "laptop", form: { model: "gpt-oss-20b", hardware: "apple-m4-max", devices: "1", batch: "1", prompt: "2k", output: "512" } },
];

/** @param {Record<string, string>} form */
const key = (form) => JSON.stringify(Object.entries(form).sort());

/** The example that a form is, if it is one. @param {Record<string, string>} form */
export const presetOf = (form) => PRESETS.find((p) => key(p.form) === key(form)) ?? null;
