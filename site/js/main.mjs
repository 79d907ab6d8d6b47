// placeholder
import { Engine } from "./engine.mjs";
const build = JSON.parse(document.getElementById("data-build").textContent);
const e = new Engine(build, new URL("./worker.mjs", import.meta.url).href, new URL("./", document.baseURI).href);
e.addEventListener("ready", (ev) => { document.documentElement.dataset.ready = "yes"; console.log(JSON.stringify(ev.detail)); });
e.addEventListener("failed", (ev) => console.log(JSON.stringify(ev.detail)));
window.engine = e; e.start();
