// Make the memory snapshot: boot Pyodide under Node, install our wheel, import and warm the bridge, store the memory.
// usage: node snapshot.mjs PYODIDE_DIR WHEEL BRIDGE OUT.bin
// Clocks and entropy are frozen first, so that the same inputs give the same bytes.
import nodeCrypto from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { atMemoryBirth, constants, packImage } from "../js/memory.mjs";

// An uncaught error would print Pyodide's minified source; its own words are what helps.
process.on("uncaughtException", (error) => { console.error(String(error?.message ?? error).slice(-3000)); process.exit(1); });

const [folder, wheel, bridge, out] = process.argv.slice(2).map((p) => resolve(p));
const now = 1_760_000_000_000;
Date.now = () => now;
performance.now = () => 0;
Math.random = () => 0.5;
nodeCrypto.randomFillSync = (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength).fill(7) && array;
crypto.getRandomValues = (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength).fill(7) && array;

/** Fill the memory that was freed with zeros: what stands in it still would be packed, sent and inflated for nothing. */
function blankFree(/** @type {any} */ engine) {
  const held = [];
  engine._malloc_set_footprint_limit(engine._malloc_footprint()); // hand out what there is, and no more
  for (let size = 1 << 22; size >= 8;) {
    const at = engine._malloc(size);
    if (!at) { size = size > 64 ? size >> 1 : size - 8; continue; }
    engine.HEAPU8.fill(0, at, at + engine._malloc_usable_size(at));
    held.push(at);
  }
  engine._malloc_set_footprint_limit(-1);
  held.forEach((at) => engine._free(at));
}

const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`).href);
const { default: create } = await import(pathToFileURL(`${folder}/pyodide.asm.mjs`).href);
let born = null;
const pyodide = await loadPyodide({
  _makeSnapshot: true, indexURL: `${folder}/`, _sysExecutable: "python",
  // Docstrings stay out of the image (a twelfth of its size): nothing in the page reads them.
  env: { PYTHONHASHSEED: "0", PYTHONOPTIMIZE: "2", HOME: "/home/pyodide", LANG: "en_US.UTF-8", _: "python" }, // else the machine's own would be in it
  createPyodideModule: atMemoryBirth(create, (memory) => { born = constants(memory); }),
});
pyodide.unpackArchive(new Uint8Array(readFileSync(wheel)), "wheel");
pyodide.FS.writeFile(`${pyodide.runPython("import sysconfig; sysconfig.get_path('purelib')")}/roofline_bridge.py`, readFileSync(bridge));
// warm() touches everything a call may import or read: after a restore there is no file system to read from.
const seconds = pyodide.runPython(`
import sys
sys.dont_write_bytecode = True
import importlib
importlib.invalidate_caches()
import roofline_bridge
roofline_bridge.warm()
if "random" in sys.modules:
    sys.modules["random"].seed(0)
import gc
gc.collect(); gc.collect()
len(sys.modules)
`);
blankFree(pyodide._module);
const snapshot = pyodide.makeMemorySnapshot();
const image = packImage(snapshot, born);
const packed = gzipSync(image, { level: 9 });
packed[9] = 255; // the "operating system" byte of the header: the same on every machine
writeFileSync(out, packed);
console.log(JSON.stringify({ modules: seconds, raw: image.length, packed: packed.length }));
process.exit(0);
