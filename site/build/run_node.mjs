// Answer bridge requests with the built files, in Pyodide under Node: one JSON request a line in, one answer a line out.
// usage: node run_node.mjs DIST snapshot|plain < requests.jsonl
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import { withImage } from "../js/memory.mjs";

const [dist, mode] = [resolve(process.argv[2]), process.argv[3]];
const index = readFileSync(`${dist}/index.html`, "utf-8");
const build = JSON.parse(/<script type="application\/json" id="data-build">(.*?)<\/script>/s.exec(index)[1]);
const folder = `${dist}/${build.pyodide}`;
const { loadPyodide } = await import(pathToFileURL(`${folder}pyodide.mjs`).href);
const { default: create } = await import(pathToFileURL(`${folder}pyodide.asm.mjs`).href);
const options = { indexURL: folder, lockFileContents: build.lock, packageBaseUrl: `${dist}/`, env: { PYTHONHASHSEED: "0" } };
if (mode === "snapshot") {
  const image = new Uint8Array(gunzipSync(readFileSync(`${dist}/${build.snapshot.path}`)));
  const empty = join(mkdtempSync(join(tmpdir(), "roofline-")), "empty.zip");
  writeFileSync(empty, "");
  Object.assign(options, { _loadSnapshot: new Uint8Array(0), stdLibURL: empty, createPyodideModule: withImage(create, Promise.resolve(image), build.snapshot.constants) });
}
const pyodide = await loadPyodide(options);
if (mode !== "snapshot") {
  pyodide.unpackArchive(new Uint8Array(readFileSync(`${dist}/${build.wheel.path}`)), "wheel");
  pyodide.FS.writeFile("/home/pyodide/roofline_bridge.py", readFileSync(`${dist}/${build.bridge.path}`));
  pyodide.runPython("import importlib; importlib.invalidate_caches()");
}
const { handle } = pyodide.pyimport("roofline_bridge");
const answers = readFileSync(0, "utf-8").split("\n").filter(Boolean).map((line) => `${handle(line)}\n`);
process.stdout.write(answers.join(""), () => process.exit(0)); // a pipe takes its time
