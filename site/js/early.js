// Runs while the page is still being read, before its chart is laid out: what stands above it is painted meanwhile.
// The theme the visitor chose last time, so that nothing flashes. Storage may be refused; then the system's theme holds.
try {
  var theme = localStorage.getItem("roofline-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch (e) { /* no storage, no memory */ }
document.documentElement.classList.add("js");

// The first stop of the keyboard moves the focus and nothing else: the address holds the visitor's question.
addEventListener("click", function (event) {
  var skip = event.target && event.target.closest && event.target.closest("a.skip");
  if (!skip) return;
  event.preventDefault();
  document.getElementById("question").focus();
});

document.addEventListener("click", function (event) {
  if (event.target.id === "again") { event.preventDefault(); location.reload(); } // with the question in the address
});

// Who stirs wants the live chart (main.mjs), and may do so before its script is here.
["pointermove", "pointerdown", "keydown", "wheel", "touchstart"].forEach(function (sign) {
  addEventListener(sign, function () { document.documentElement.dataset.stirred = "yes"; }, { once: true, passive: true });
});

// When the answer and its chart are painted, the page's scripts are sent for: before that, their arrival would hold the painting up.
// Python waits until they have drawn the page, which would be slower to answer the hand if both did their work at once.
document.addEventListener("DOMContentLoaded", function () {
  function go() {
    var late = document.getElementById("late");
    if (!late) return;
    // A module that is missing (a page left open over a release, a blocker) stops them all, and nothing else would say so.
    late.content.querySelector("script").addEventListener("error", function () {
      if (/[#&]lang=zh/.test(location.hash)) { // not in the HTML, whose first paint would wait for a font that has it
        document.getElementById("broken").firstChild.data = "页面的一部分没有载入，因此无法提问；显示的是第一个示例。";
        document.getElementById("again").textContent = "重新加载";
      }
      document.documentElement.classList.remove("js");
      document.documentElement.dataset.late = "failed";
    });
    document.head.append(late.content);
    late.remove();
  }
  requestAnimationFrame(function () { setTimeout(go, 0); });
  setTimeout(go, 300); // a page in the background has no frames
});
