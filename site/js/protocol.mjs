// @ts-check
// What the page and its worker say to each other, in one place. tests/test_bridge.py compares it with bridge.py.

export const PROTOCOL = 1;

/** The stages of a boot, in order; "failed" is final until a new worker is made. */
export const STAGES = /** @type {const} */ (["shell", "engine-download", "engine-start", "model-load", "ready", "failed"]);

/** Every method the page may call in Python. */
export const METHODS = /** @type {const} */ (["evaluate", "catalogue", "parse_config", "read_gguf", "link", "from_link", "sweep", "levers", "layouts", "compare", "explain", "explore", "export", "learn", "serving", "queue", "place", "ping"]);

/** How long a stage may take without a sign of life before it is called failed, and a call before Python is started anew [ms]. */
export const PATIENCE_MS = { "engine-download": 120_000, "engine-start": 60_000, "model-load": 45_000, call: 60_000 };

/**
 * @typedef {typeof STAGES[number]} Stage
 * @typedef {{path: string, bytes: number, sha256: string}} Asset
 * @typedef {{build: string, version: string, pyodide: string, snapshot: Asset & {constants: number} | null, wheel: Asset, bridge: Asset,
 *   micropip: Asset, packaging: Asset, numpy: Asset | null, wasm: Asset, lock: object}} Build
 * @typedef {{type: "boot", mode: "snapshot" | "plain", base: string, build: Build}} BootMessage
 * @typedef {{type: "call", id: number, method: string, params: string}} CallMessage
 * @typedef {{type: "load", id: number, what: "library" | "numpy"}} LoadMessage
 * @typedef {{type: "progress", stage: Stage, done?: number, total?: number}} ProgressEvent_
 * @typedef {{type: "ready", mode: string, ms: Record<string, number>}} ReadyEvent
 * @typedef {{type: "failed", stage: Stage, message: string}} FailedEvent
 * @typedef {{type: "answer", id: number, text?: string, error?: {kind: string, message: string}}} AnswerEvent
 */
