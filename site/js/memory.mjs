// @ts-check
// The memory snapshot is stored as its difference (XOR) from the memory a fresh engine starts with: the engine's own
// constant data, which the visitor downloads anyway inside the .wasm file, is then not downloaded a second time
// (4.7 MB instead of 6.2). The build makes the difference and the worker undoes it with this one function.

/**
 * Hook into the moment when the engine's memory holds its constant data and nothing else.
 * @param {Function} create  Pyodide's module factory (default export of pyodide.asm.mjs)
 * @param {(memory: Uint8Array) => void} atBirth  called once with that memory
 */
export function atMemoryBirth(create, atBirth) {
  return (/** @type {any} */ settings) => {
    const instantiate = settings.instantiateWasm;
    settings.instantiateWasm = (/** @type {any} */ imports, /** @type {Function} */ done) =>
      instantiate(imports, (/** @type {any} */ instance, /** @type {any} */ module) => {
        atBirth(new Uint8Array((instance.exports.memory ?? imports.env.memory).buffer));
        done(instance, module);
      });
    return create(settings);
  };
}

/**
 * XOR a snapshot, in place, with the memory of a fresh engine: packs it, and done again unpacks it.
 * @param {Uint8Array} snapshot  as Pyodide makes it: a header whose second word is its own length, then the memory
 * @param {Uint8Array} fresh
 */
export function xorWithFresh(snapshot, fresh) {
  const start = new Uint32Array(snapshot.buffer, snapshot.byteOffset, 2)[1];
  if (start % 4 || start > snapshot.length) throw new Error("the snapshot's header is not one");
  const words = Math.min(fresh.length, snapshot.length - start) >> 2;
  const target = new Uint32Array(snapshot.buffer, snapshot.byteOffset + start, words);
  const base = new Uint32Array(fresh.buffer, fresh.byteOffset, words);
  for (let i = 0; i < words; i++) target[i] ^= base[i];
}
