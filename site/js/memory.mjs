// @ts-check
// The memory snapshot is stored as the pages in which it differs (XOR) from the memory a fresh engine starts with: the engine's
// own constant data, which the visitor downloads anyway inside the .wasm file, is then not downloaded a second time, and the
// empty two thirds of the memory are neither packed, inflated nor copied. The build packs with this file, the worker unpacks with it.

/** Granule of what is stored [bytes]. */
const PAGE = 1024;
/** What stands before an image's head [bytes]. */
const START = 20;

/**
 * Hook into the moment when the engine's memory holds its constant data and nothing else.
 * @param {Function} create  Pyodide's module factory (default export of pyodide.asm.mjs)
 * @param {(memory: Uint8Array, instance: any) => void} atBirth  called once with that memory
 */
export function atMemoryBirth(create, atBirth) {
  return (/** @type {any} */ settings) => {
    const instantiate = settings.instantiateWasm;
    settings.instantiateWasm = (/** @type {any} */ imports, /** @type {Function} */ done) =>
      instantiate(imports, (/** @type {any} */ instance, /** @type {any} */ module) => {
        atBirth(new Uint8Array((instance.exports.memory ?? imports.env.memory).buffer), instance);
        done(instance, module);
      });
    return create(settings);
  };
}

/** The constant data of a fresh engine: its memory up to the last page that holds anything. @param {Uint8Array} memory */
export function constants(memory) {
  const words = new Uint32Array(memory.buffer, memory.byteOffset, memory.length >> 2);
  let end = words.length;
  while (end && !words[end - 1]) end--;
  return memory.slice(0, Math.ceil((end * 4) / PAGE) * PAGE);
}

/** For the build. Layout, in 32-bit words: bytes of all this, of memory, of head, of constants, number of runs; head; [first page, pages] of each run; the runs.
 * @param {Uint8Array} snapshot  as Pyodide makes it: a head whose second word is its own length, then the memory
 * @param {Uint8Array} born  the constants of a fresh engine
 */
export function packImage(snapshot, born) {
  const head = new Uint32Array(snapshot.buffer, snapshot.byteOffset, 2)[1], memory = snapshot.slice(head);
  if (head % 4 || memory.length % PAGE) throw new Error("the snapshot's head is not one");
  for (let i = 0; i < born.length; i++) memory[i] ^= born[i];
  /** @type {number[][]} */ const runs = [];
  for (let page = 0; page < memory.length / PAGE; page++) {
    if (memory.subarray(page * PAGE, (page + 1) * PAGE).every((byte) => byte === 0)) continue;
    const last = runs.at(-1);
    if (last && last[0] + last[1] === page) last[1]++;
    else runs.push([page, 1]);
  }
  const start = START + head + 8 * runs.length, pages = runs.reduce((sum, [, count]) => sum + count, 0);
  const image = new Uint8Array(start + pages * PAGE), words = new Uint32Array(image.buffer);
  words.set([image.length, memory.length, head, born.length, runs.length]);
  image.set(snapshot.subarray(0, head), START);
  words.set(runs.flat(), (START + head) / 4);
  let at = start;
  for (const [page, count] of runs) { image.set(memory.subarray(page * PAGE, (page + count) * PAGE), at); at += count * PAGE; }
  return image;
}

/** How long an image is, out of its first bytes. @param {Uint8Array} start */
export const lengthOf = (start) => new DataView(start.buffer, start.byteOffset).getUint32(0, true);

/**
 * Make a memory what the image says, whatever the engine has written into it since its birth.
 * @param {Uint8Array} image @param {Uint8Array} heap @param {Uint8Array} born its constants at birth @param {number} used address above which it has written nothing
 */
function lay(image, heap, born, used) {
  const words = new Uint32Array(image.buffer, image.byteOffset, image.length >> 2), [length, memory, head, constant, count] = words;
  if (length !== image.length || memory > heap.length || constant !== born.length) throw new Error("the snapshot does not fit the engine's memory");
  const target = new Uint32Array(heap.buffer, heap.byteOffset, heap.length >> 2), base = new Uint32Array(born.buffer, born.byteOffset, born.length >> 2), end = used >> 2;
  /** As at birth. @param {number} from @param {number} to */
  const untouched = (from, to) => {
    if (from < base.length) target.set(base.subarray(from, Math.min(to, base.length)), from);
    if (to > base.length && from < end) target.fill(0, Math.max(from, base.length), Math.min(to, end)); // beyond, it is zero and need not even be made
  };
  let at = 0, list = (START + head) / 4, next = list + 2 * count;
  for (let run = 0; run < count; run++, list += 2) {
    const from = (words[list] * PAGE) / 4, to = from + (words[list + 1] * PAGE) / 4;
    untouched(at, from);
    target.set(words.subarray(next, next + to - from), from);
    for (let i = from; i < Math.min(to, base.length); i++) target[i] ^= base[i];
    next += to - from;
    at = to;
  }
  untouched(at, target.length);
}

/**
 * Pyodide's module factory that restores an image. The engine starts while the image is still on its way.
 * @param {Function} create @param {Promise<Uint8Array>} imageSoon @param {number} constant bytes of constant data, as the build found
 */
export function withImage(create, imageSoon, constant) {
  return async (/** @type {any} */ settings) => {
    /** @type {Uint8Array} */ let born;
    /** @type {() => number} the engine's own mark of how far its memory is in use */ let used;
    const module = await atMemoryBirth(create, (memory, instance) => {
      born = memory.slice(0, constant);
      used = () => (typeof instance.exports.sbrk === "function" ? instance.exports.sbrk(0) : memory.length);
    })(settings);
    const image = await imageSoon, head = new Uint32Array(image.buffer, image.byteOffset, 3)[2];
    const restore = module.API.restoreSnapshot; // checks the head and reads the state in it; the memory that should follow is laid here
    module.API.restoreSnapshot = () => {
      const state = restore(image.slice(START, START + head));
      lay(image, module.HEAPU8, born, used());
      return state;
    };
    return module;
  };
}
