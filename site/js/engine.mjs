// @ts-check
// The page's side of the worker: boot with watchdogs and one fallback, then calls. Of the questions asked while one is
// being answered only the newest is kept (one in flight, one pending); other calls queue behind them.

import { PATIENCE_MS, PROTOCOL } from "./protocol.mjs";

/** @typedef {import("./protocol.mjs").Build} Build */

export class EngineError extends Error {
  /** @param {{kind: string, field?: string | null, message: string, traceback?: string}} error */
  constructor(error) {
    super(error.message);
    this.kind = error.kind;
    this.field = error.field ?? null;
    this.traceback = error.traceback ?? "";
  }
}

/** What a WebAssembly engine says when it can answer nothing more. */
const FATAL = /fatally failed|out of memory|out of bounds|unreachable|Maximum call stack/i;

export class Engine extends EventTarget {
  /** @param {Build} build @param {string} workerUrl @param {string} base */
  constructor(build, workerUrl, base) {
    super();
    this.build = build;
    this.workerUrl = workerUrl;
    this.base = base;
    this.ready = false;
    this.failed = false;
    this.mode = "";
    /** @type {string[]} what went wrong on the way, for the failure screen */ this.history = [];
    /** @type {Worker | null} */ this.worker = null;
    /** @type {Map<number, {resolve: Function, reject: Function}>} */ this.calls = new Map();
    this.nextId = 1;
    this.busy = false;
    /** @type {{method: string, params: object, resolve: Function, reject: Function} | null} */ this.pending = null;
    /** @type {Function[]} */ this.queue = [];
    this.watchdog = 0;
    this.deaths = 0; // since something was answered
  }

  start() {
    this.failed = false;
    this.history = [];
    this.dispatchEvent(new Event("start"));
    this.boot(this.build.snapshot ? "snapshot" : "plain");
  }

  /** @param {"snapshot" | "plain"} mode */
  boot(mode) {
    this.worker?.terminate();
    this.mode = mode;
    try {
      this.worker = new Worker(this.workerUrl, { type: "module", name: "python" });
    } catch (error) {
      return this.giveUp("shell", String(error));
    }
    const worker = this.worker;
    worker.onmessage = ({ data }) => { if (worker === this.worker) this.receive(data); };
    worker.onerror = (event) => {
      event.preventDefault?.();
      if (worker === this.worker && !this.ready) this.fallBack("shell", event.message || "the worker could not be loaded");
    };
    this.watch("engine-download");
    worker.postMessage({ type: "boot", mode, base: this.base, build: this.build });
  }

  /** @param {string} stage */
  watch(stage) {
    clearTimeout(this.watchdog);
    const patience = /** @type {Record<string, number>} */ (PATIENCE_MS)[stage];
    if (patience) this.watchdog = setTimeout(() => this.fallBack(stage, `nothing happened for ${patience / 1000} seconds`), patience);
  }

  /** A snapshot boot that failed is followed by one plain boot in a fresh worker; that is the last try. @param {string} stage @param {string} message */
  fallBack(stage, message) {
    this.history.push(`${this.mode}, ${stage}: ${message}`);
    if (this.mode === "snapshot") this.boot("plain");
    else this.giveUp(stage, message);
  }

  /** @param {string} stage @param {string} message */
  giveUp(stage, message) {
    clearTimeout(this.watchdog);
    this.worker?.terminate();
    this.worker = null;
    this.failed = true;
    this.dispatchEvent(new CustomEvent("failed", { detail: { stage, message, history: this.history } }));
  }

  /** @param {any} data */
  receive(data) {
    if (data.type === "progress") {
      this.watch(data.stage);
      this.dispatchEvent(new CustomEvent("progress", { detail: { ...data, mode: this.mode } }));
    } else if (data.type === "ready") {
      clearTimeout(this.watchdog);
      this.ready = true;
      this.dispatchEvent(new CustomEvent("ready", { detail: data }));
      this.pump();
    } else if (data.type === "failed") {
      this.fallBack(data.stage, data.message);
    } else if (data.type === "answer") {
      const call = this.calls.get(data.id);
      this.calls.delete(data.id);
      if (!call) return;
      if (data.error) {
        call.reject(new EngineError(data.error));
        return FATAL.test(data.error.message) ? this.restart() : undefined;
      }
      this.deaths = 0;
      const answer = JSON.parse(data.text);
      if (answer.ok) call.resolve(answer.result);
      else call.reject(new EngineError(answer.error));
    }
  }

  /** Send one call now. @param {string} method @param {object} params @returns {Promise<any>} */
  send(method, params) {
    return new Promise((resolve, reject) => {
      const id = this.nextId++, late = setTimeout(() => this.restart(), PATIENCE_MS.call);
      const done = (/** @type {Function} */ then) => (/** @type {any} */ value) => { clearTimeout(late); then(value); };
      this.calls.set(id, { resolve: done(resolve), reject: done(reject) });
      this.worker?.postMessage({ type: "call", id, method, params: JSON.stringify({ v: PROTOCOL, id, method, params }) });
    });
  }

  /** Python does not answer any more: what was asked of it fails, and it starts anew. */
  restart() {
    this.ready = false;
    this.deaths += 1;
    for (const { reject } of this.calls.values()) reject(new EngineError({ kind: "load", message: "Python did not answer and is started anew." }));
    this.calls.clear();
    this.start();
  }

  /** Ask in turn; every such call is answered. @param {string} method @param {object} params @returns {Promise<any>} */
  ask(method, params) {
    return new Promise((resolve, reject) => {
      this.queue.push(() => this.send(method, params).then(resolve, reject));
      this.pump();
    });
  }

  /** Ask the newest question: an older one still waiting is dropped (its promise rejects with kind "stale"). @param {object} params */
  newest(method, params) {
    return new Promise((resolve, reject) => {
      this.pending?.reject(new EngineError({ kind: "stale", message: "a newer question was asked" }));
      this.pending = { method, params, resolve, reject };
      this.pump();
    });
  }

  /** Bring more into the worker: the files of the package (readers of benchmarks), or those and NumPy (Explore). @param {"library" | "numpy"} what @returns {Promise<void>} */
  async load(what) {
    if (!this.ready) await new Promise((go) => this.addEventListener("ready", go, { once: true }));
    return new Promise((resolve, reject) => {
      const id = this.nextId++;
      this.calls.set(id, { resolve, reject });
      this.worker?.postMessage({ type: "load", id, what });
    });
  }

  /** Only the Explore view needs it. */
  loadNumpy() { return this.load("numpy"); }

  async pump() {
    if (!this.ready || this.busy) return;
    const next = this.pending;
    const job = next ? null : this.queue.shift();
    if (!next && !job) return;
    this.busy = true;
    if (next) {
      this.pending = null;
      await this.send(next.method, next.params).then((v) => next.resolve(v), (e) => next.reject(e));
    } else if (job) {
      await job();
    }
    this.busy = false;
    this.pump();
  }
}
