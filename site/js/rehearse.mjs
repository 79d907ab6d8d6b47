// @ts-check
// The browser compiles what an answer runs while it runs it, so the first dozen take two or three times as long: they are had while the visitor reads.

let done = false;
/** Once a page: a Python that was started anew may have died of it. @param {import("./engine.mjs").Engine} engine @param {import("./state.mjs").State} state @param {() => boolean} touched whether the visitor asks something himself */
export async function rehearse(engine, state, touched) {
  if (done) return;
  done = true;
  for (let batch = 1; batch <= 16 && !touched() && engine.ready; batch++) {
    await new Promise((go) => setTimeout(go, 30));
    await engine.ask("evaluate", { form: { ...state.form, batch: String(batch) } }).catch(() => {});
  }
}
