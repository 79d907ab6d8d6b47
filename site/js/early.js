// Runs while the page is still being read, before its chart is laid out: what stands above it is painted meanwhile.
// The theme the visitor chose last time, so that nothing flashes. Storage may be refused; then the system's theme holds.
try {
  var theme = localStorage.getItem("roofline-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch (e) { /* no storage, no memory */ }
document.documentElement.classList.add("js");

// Who stirs wants the live chart (main.mjs), and may do so before its script is here.
["pointermove", "pointerdown", "keydown", "wheel", "touchstart"].forEach(function (sign) {
  addEventListener(sign, function () { document.documentElement.dataset.stirred = "yes"; }, { once: true, passive: true });
});

// When the answer and its chart are painted, the page's scripts are sent for and Python starts beside them. It may say something
// before the page's side of it (engine.mjs) listens: that is kept here.
document.addEventListener("DOMContentLoaded", function () {
  var gone = false;
  function go() {
    if (gone) return;
    gone = true;
    document.head.append(document.getElementById("late").content);
    try {
      var build = JSON.parse(document.getElementById("data-build").textContent);
      if (!build.snapshot) return;
      var base = new URL("./", document.baseURI).href, worker = new Worker(base + build.app + "js/worker.mjs", { type: "module", name: "python" }), said = [];
      worker.onmessage = function (event) { said.push(event.data); };
      worker.onerror = function (event) { event.preventDefault(); said.push({ type: "failed", stage: "shell", message: event.message || "the worker could not be loaded" }); };
      worker.postMessage({ type: "boot", mode: "snapshot", base: base, build: build });
      globalThis.earlyPython = { worker: worker, said: said };
    } catch (e) { /* engine.mjs tries again, and says why it cannot */ }
  }
  requestAnimationFrame(function () { setTimeout(go, 0); });
  setTimeout(go, 300); // a page in the background has no frames
});
