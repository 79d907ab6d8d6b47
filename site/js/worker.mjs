// @ts-check
// Boots Python (Pyodide) and answers calls with one kept function. It knows nothing about the page.
// Two ways to boot: "snapshot" lays a memory image over a fresh engine, with the package already imported; "plain" starts
// the interpreter and installs the wheel. The page asks for the second in a fresh worker when the first fails.

import { lengthOf, withImage } from "./memory.mjs";

/** @typedef {import("./protocol.mjs").BootMessage} BootMessage */

const realFetch = globalThis.fetch.bind(globalThis);
const started = performance.now();
/** @type {any} */ let pyodide = null;
/** @type {((request: string) => string) | null} */ let handle = null;
/** @type {BootMessage | null} */ let settings = null;
/** @type {import("./protocol.mjs").Stage} */ let stage = "engine-download";
/** @type {Record<string, number>} */ const marks = {};

const post = (/** @type {object} */ message) => self.postMessage(message);

/** @param {import("./protocol.mjs").Stage} next @param {number} [done] @param {number} [total] */
function progress(next, done, total) {
  if (next !== stage || !(next in marks)) marks[next] = Math.round(performance.now() - started);
  stage = next;
  post({ type: "progress", stage, done, total });
}

/** Anything thrown, as a sentence: Pyodide can throw objects that print as "[object Object]", and Safari cannot post an Error. */
function sentence(/** @type {unknown} */ thrown) {
  if (thrown instanceof Error) return `${thrown.name}: ${thrown.message}`.slice(0, 2000);
  try { return typeof thrown === "string" ? thrown : JSON.stringify(thrown) ?? String(thrown); } catch { return String(thrown); }
}

/** @param {string} path @param {RequestPriority} [priority] @returns {Promise<Response>} */
async function get(path, priority = "auto") {
  const response = await realFetch(new URL(path, settings?.base), { priority });
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  return response;
}

/** Compile the engine while everything else downloads; refuse what is not WebAssembly (a missing or HTML file would hang Pyodide). */
async function compileEngine(/** @type {string} */ path) {
  const response = await get(path);
  if (response.headers.get("content-type")?.startsWith("application/wasm")) return WebAssembly.compileStreaming(response);
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (bytes[0] !== 0 || bytes[1] !== 0x61 || bytes[2] !== 0x73 || bytes[3] !== 0x6d) throw new Error(`${path} is not WebAssembly (the server sent something else)`);
  return WebAssembly.compile(bytes);
}

/** Download the snapshot and inflate it as it comes; check it against the build's hash before anybody uses it. */
async function downloadSnapshot(/** @type {import("./protocol.mjs").Asset} */ asset) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ ((await get(asset.path, "low")).body).getReader(); // the engine is compiled while this comes, so it goes first
  const packed = new Uint8Array(asset.bytes), gunzip = new DecompressionStream("gzip"), feed = gunzip.writable.getWriter();
  const inflated = inflate(gunzip.readable);
  inflated.catch(() => {}); // awaited below; a download that breaks is the better reason
  let done = 0, told = performance.now();
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    if (done + chunk.value.length > packed.length) throw new Error("the snapshot is longer than it was built");
    packed.set(chunk.value, done);
    feed.write(packed.subarray(done, done + chunk.value.length)).catch(() => {});
    done += chunk.value.length;
    if (performance.now() - told > 120 || done === asset.bytes) { // not oftener: each is a frame drawn by the core that also compiles
      told = performance.now();
      progress("engine-download", done, asset.bytes);
    }
  }
  if (done !== asset.bytes) throw new Error(`the snapshot is cut short: ${done} of ${asset.bytes} bytes`);
  feed.close().catch(() => {});
  if (globalThis.crypto?.subtle) {
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", packed));
    if ([...hash].map((b) => b.toString(16).padStart(2, "0")).join("") !== asset.sha256) throw new Error("the snapshot is not the one this page was built with");
  }
  return inflated;
}

/** @param {ReadableStream<Uint8Array>} stream of an image, whose first bytes say its length @returns {Promise<Uint8Array>} */
async function inflate(stream) {
  const reader = stream.getReader();
  let image = new Uint8Array(0), done = 0;
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    if (!done) image = new Uint8Array(lengthOf(chunk.value));
    image.set(chunk.value, done);
    done += chunk.value.length;
  }
  return image;
}

/** Start Pyodide while the engine compiles and the image (a snapshot, or null) is on its way. */
async function startEngine(/** @type {any} */ build, /** @type {Promise<any[]>} */ scripts, /** @type {Promise<WebAssembly.Module>} */ compiled, /** @type {Promise<Uint8Array> | null} */ imageSoon) {
  const index = new URL(build.pyodide, settings?.base).href;
  const [{ loadPyodide }, { default: create }] = await scripts;
  // Pyodide fetches and instantiates by itself, and hangs if that fails; it is handed what was already fetched and checked.
  globalThis.fetch = async (input, init) => {
    const url = String(input instanceof Request ? input.url : input);
    if (url === `${index}pyodide.asm.wasm`) return new Response(null);
    if (imageSoon && url === `${index}python_stdlib.zip`) return new Response(new Uint8Array(0)); // the image holds all it needs
    return realFetch(input, init);
  };
  const instantiateStreaming = WebAssembly.instantiateStreaming;
  /** @type {(reason: unknown) => void} */ let fail = () => {};
  const failure = new Promise((_, reject) => { fail = reject; });
  const arrived = Promise.all([compiled, imageSoon]).then(() => progress("engine-start"));
  arrived.catch(fail);
  WebAssembly.instantiateStreaming = /** @type {any} */ (async (/** @type {any} */ _response, /** @type {any} */ imports) => {
    try { return { module: await compiled, instance: await WebAssembly.instantiate(await compiled, imports) }; } catch (error) { fail(error); throw error; }
  });
  const options = {
    indexURL: index, lockFileContents: build.lock, packageBaseUrl: settings?.base, checkIntegrity: true, env: { PYTHONHASHSEED: "0" },
    stdout: () => {}, stderr: () => {},
    ...(imageSoon && { _loadSnapshot: new Uint8Array(0), createPyodideModule: withImage(create, imageSoon, build.snapshot.constants) }),
  };
  try {
    return await Promise.race([loadPyodide(options), failure]);
  } finally {
    WebAssembly.instantiateStreaming = instantiateStreaming;
    globalThis.fetch = realFetch;
  }
}

async function boot(/** @type {BootMessage} */ message) {
  settings = message;
  const { build, mode } = message;
  progress("engine-download", 0, build.snapshot?.bytes);
  // The scripts first: they must be read before anything can start, and the large files beside them would hold them up.
  const scripts = Promise.all(["pyodide.mjs", "pyodide.asm.mjs"].map((name) => import(new URL(build.pyodide + name, settings?.base).href)));
  const compiled = compileEngine(build.wasm.path);
  const image = mode === "snapshot" && build.snapshot ? downloadSnapshot(build.snapshot) : null;
  const files = image ? null : Promise.all([build.wheel, build.bridge].map(async (a) => new Uint8Array(await (await get(a.path)).arrayBuffer())));
  for (const early of [scripts, compiled, image, files]) early?.catch(() => {}); // each is awaited below; this only silences the race
  pyodide = await startEngine(build, scripts, compiled, image);
  progress("model-load");
  if (files) await installPlainly(build, await files);
  else pyodide.runPython("import sys\nif 'random' in sys.modules: sys.modules['random'].seed()"); // the image froze its seed
  const module = pyodide.pyimport("roofline_bridge");
  handle = module.handle.copy();
  module.destroy();
  JSON.parse(handle?.('{"v":1,"id":0,"method":"ping","params":{}}') ?? "");
  progress("ready");
  post({ type: "ready", mode, ms: marks });
}

/** Install the wheel with micropip from our own origin, and lay the bridge beside it. */
async function installPlainly(/** @type {any} */ build, /** @type {Uint8Array[]} */ [, bridge]) {
  await pyodide.loadPackage(["micropip"], { messageCallback: () => {} });
  const micropip = pyodide.pyimport("micropip");
  await micropip.install.callKwargs(new URL(build.wheel.path, settings?.base).href, { deps: false });
  micropip.destroy();
  pyodide.FS.writeFile("/home/pyodide/roofline_bridge.py", bridge);
}

const loaded = /** @type {Record<string, Promise<void> | null>} */ ({ library: null, numpy: null });
const bring = {
  /** The standard library and the package's files: after a snapshot boot they are not on disk, and parts that few need are not in the snapshot. */
  async library() {
    const build = /** @type {BootMessage} */ (settings).build;
    if (settings?.mode !== "snapshot") return;
    const [library, wheel] = await Promise.all([`${build.pyodide}python_stdlib.zip`, build.wheel.path].map(async (p) => (await get(p)).arrayBuffer()));
    pyodide.FS.writeFile("/lib/python314.zip", new Uint8Array(library));
    pyodide.runPython("import importlib; importlib.invalidate_caches()");
    pyodide.unpackArchive(wheel, "wheel");
  },
  async numpy() {
    if (!(/** @type {BootMessage} */ (settings).build.numpy)) throw new Error("this build of the page has no NumPy");
    await load("library");
    await pyodide.loadPackage("numpy", { messageCallback: () => {} });
    pyodide.runPython("import numpy");
  },
};
/** Bring something in, once; what failed is tried again when asked again. @param {"library" | "numpy"} what */
function load(what) {
  const soon = (loaded[what] ??= bring[what]());
  soon.catch(() => { loaded[what] = null; });
  return soon;
}

self.onmessage = async ({ data }) => {
  if (data.type === "boot") {
    try { await boot(data); } catch (error) { post({ type: "failed", stage, message: sentence(error) }); }
  } else if (data.type === "call") {
    try { post({ type: "answer", id: data.id, text: handle?.(data.params) }); }
    catch (error) { post({ type: "answer", id: data.id, error: { kind: "bug", message: sentence(error) } }); }
  } else if (data.type === "load") {
    try { await load(data.what); post({ type: "answer", id: data.id, text: '{"ok":true,"result":null}' }); }
    catch (error) { post({ type: "answer", id: data.id, error: { kind: "load", message: sentence(error) } }); }
  }
};
