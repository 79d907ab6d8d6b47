// A roofline calculator as people write one with Chart.js: a form, two formulas, a chart drawn anew from both. Only a yardstick.
const form = document.getElementById("form");
const chart = new Chart(document.getElementById("chart"), {
  type: "scatter",
  data: { datasets: [{ label: "Roof", showLine: true, pointRadius: 0, borderColor: "#a85a06", data: [] }, { label: "Prefill", pointRadius: 7, backgroundColor: "#0a746f", data: [] }, { label: "Decode", pointRadius: 7, backgroundColor: "#a85a06", data: [] }] },
  options: { animation: false, responsive: true, maintainAspectRatio: false, scales: { x: { type: "logarithmic", title: { display: true, text: "FLOP/byte" } }, y: { type: "logarithmic", title: { display: true, text: "FLOP/s" } } } },
  plugins: [{ id: "done", afterDraw: () => { globalThis.drawn = true; } }],
});
function draw() {
  const v = Object.fromEntries([...new FormData(form)].map(([k, t]) => [k, Number(t)]));
  const peak = v.peak * 1e12, bandwidth = v.bandwidth * 1e12, weights = v.parameters * 1e9 * v.width, cache = v.kv * v.context * v.batch, work = 2 * v.parameters * 1e9;
  const at = (x) => ({ x, y: Math.min(peak, x * bandwidth) });
  const prefill = (work * v.context * v.batch) / (weights + cache), decode = (work * v.batch) / (weights + cache);
  const step = Math.max((work * v.batch) / v.chips / peak, (weights + cache) / v.chips / bandwidth);
  chart.data.datasets[0].data = [0.3, peak / bandwidth, 3e4].map(at);
  chart.data.datasets[1].data = [at(prefill)];
  chart.data.datasets[2].data = [at(decode)];
  chart.update();
  document.getElementById("answer").textContent = `At most ${(1 / step).toFixed(1)} tokens/s per user, ${(v.batch / step).toFixed(0)} in all.`;
}
form.addEventListener("input", draw);
draw();
