// @ts-check
// Explore: which chips, how many, in which format and batch meet what is asked at the best price. NumPy comes when it is first opened;
// the space is tried block by block, so that there is progress, a way to stop, and room for the calculator in between.

import { debounce, fill, h } from "../dom.mjs";
import { named, rich, say, t } from "../i18n.mjs";
import { segmented, table } from "../tabs.mjs";
import { capability } from "./capability.mjs";
import { newest, partOf } from "./common.mjs";
import { form } from "./explore_form.mjs";
import { found } from "./explore_found.mjs";
import { fleet } from "./fleet.mjs";

const PARTS = ["search", "tornado", "fleet", "capability"];
const GOALS = ["cost", "latency", "throughput", "ttft-alone", "energy"];

/** @param {any} page */
export function view(page) {
  const { state, engine } = page, step = newest(engine), swing = newest(engine);
  const asks = form(page, () => (part === "fleet" ? sizing.update() : search())), sizing = fleet(page, asks, (name, value) => state.keep(name, value), (asking) => { fill(problem); return through("fleet", asking); }), able = capability({ ...page, redraw: () => open(panel) });
  const formAt = async (/** @type {number[]} */ at) => (await engine.ask("explore", { ...asked, do: "open", at })).form;
  const shown = found(page, { open: openScenario, form: formAt, csv: async () => (await engine.ask("explore", { ...asked, do: "csv" })).csv, choose: (cell) => { keep("x.cell", cell ? String(cell) : ""); search(); } });
  const progress = h("progress", { max: "1", value: 0 }), said = h("span", { class: "hint", role: "status" });
  const stopper = h("button", { type: "button", class: "chip", onclick: () => stop() }), bar = h("div", { class: "trying", hidden: true }, progress, said, stopper);
  const problem = h("p", { class: "error", role: "alert" }), bars = h("div");
  /** @type {HTMLElement} */ let panel;
  /** What the answer on the page was asked with. @type {any} */ let asked = {};
  /** @type {any} */ let key = null;
  /** The worker that has NumPy; one that is started anew has not. @type {Worker | null} */ let has = null;
  let part = "search", soon = 0, swung = /** @type {any} */ (null);

  /** Keep something of this view in the address. @param {string} name @param {string} value */
  const keep = (name, value) => state.keep(name, value);

  /** Something is on its way; progress that would only flash up is not shown. @param {boolean} on */
  function busy(on) {
    panel.setAttribute("aria-busy", String(on));
    clearTimeout(soon);
    if (on) soon = setTimeout(() => { bar.hidden = false; }, 200);
    else bar.hidden = true;
  }
  async function numpy() {
    busy(true);
    const { worker } = engine;
    if (has === worker) return;
    fill(said, t("explore.numpy"));
    progress.removeAttribute("value"); // how much of it has come is not known
    await engine.load("numpy");
    has = worker;
  }
  const stop = () => { key = null; busy(false); fill(problem, t("explore.stopped")); };

  /**
   * Ask step by step, with progress and a way to stop, until there is an answer; a newer question ends an older one (null).
   * @param {string} want the part that wants it @param {any} asking
   */
  async function through(want, asking) {
    const mine = (key = JSON.stringify([want, asking]));
    try {
      await numpy();
      for (;;) {
        if (key !== mine || panel.hidden || part !== want) return null;
        const now = await step("explore", asking);
        if (!now || key !== mine) return null;
        progress.value = now.share;
        fill(said, t("explore.tried", now));
        if (!now.answer) continue;
        busy(false);
        return now.answer;
      }
    } catch (error) {
      if (key !== mine) return null;
      busy(false);
      throw error;
    }
  }

  /** Try the space of the form, and show what it holds. */
  async function search() {
    const asking = { form: state.form, fields: asks.fields(), cell: Number(state.page["x.cell"]) || 0 };
    fill(problem);
    try {
      const answer = await through("search", { ...asking, do: "step" });
      if (!answer) return;
      asked = asking;
      shown.show(answer);
    } catch (error) { fill(problem, say(/** @type {Error} */ (error).message)); }
  }

  /** @param {number[]} at */
  async function openScenario(at) {
    state.replace(await formAt(at), { push: true });
    document.getElementById("answer")?.scrollIntoView({ block: "start" });
  }

  async function tornado() {
    fill(problem);
    try {
      await numpy();
      busy(false);
      const objective = goal(), told = await swing("explore", { do: "tornado", form: state.form, objective });
      if (!told || part !== "tornado") return;
      swung = { objective, told };
      showSwing();
    } catch (error) { busy(false); fill(problem, say(/** @type {Error} */ (error).message)); }
  }
  function showSwing() {
    const { objective, told } = swung;
    const side = (/** @type {any} */ row, /** @type {"low" | "high"} */ which) => h("i", { class: which, style: { left: `${50 + 50 * Math.min(0, row[`${which}_at`])}%`, width: `${50 * Math.abs(row[`${which}_at`])}%` } });
    fill(bars, h("p", { class: "lead" }, ...rich("explore.tornado.told", { base: t(`explore.goal.${objective}`, { goal: told.base }), first: told.rows[0] ? named("explore.parameter", told.rows[0].parameter) : "–", step: h("span", { class: "num" }, told.step) })),
      table({ caption: t("explore.part.tornado"), rows: told.rows, columns: [{ key: "parameter", label: t("explore.assumption") }, { key: "bar", label: t("explore.change") }, ...["low", "high"].map((key) => ({ key, label: h("span", {}, h("i", { class: `swatch ${key}`, "aria-hidden": "true" }), t(key === "low" ? "explore.less" : "explore.greater", told)), num: true }))],
        cell: (row, k) => (k === "parameter" ? named("explore.parameter", row.parameter) : k === "bar" ? h("span", { class: "tornado", "aria-hidden": "true" }, side(row, "low"), side(row, "high")) : h("span", {}, row[k], h("small", { class: "block" }, row[`${k}_value`]))) }));
  }
  /** What the tornado is of. */
  const goal = () => (GOALS.includes(state.page["x.goal"]) ? state.page["x.goal"] : GOALS[0]);

  /** @param {HTMLElement} target */
  function open(target) {
    panel = target;
    part = partOf(page, PARTS);
    fill(stopper, t("explore.stop"));
    fill(said);
    progress.setAttribute("aria-label", t("explore.progress"));
    if (swung) showSwing();
    const body = part === "search" ? [asks.build(), bar, problem, ...shown.build()]
      : part === "capability" ? [bar, problem, ...able.build()]
        : part === "fleet" ? [sizing.build(), bar, problem, sizing.problem, sizing.place]
          : [h("p", { class: "hint" }, t("explore.tornado.hint")), segmented(t("levers.goal"), GOALS.map((id) => ({ id, text: t(`explore.objective.${id}`) })), goal(), (id) => { keep("x.goal", id === GOALS[0] ? "" : id); open(panel); }), bar, problem, bars];
    fill(panel, h("div", { class: "panel-top" }, segmented(t("tab.explore"), PARTS.map((id) => ({ id, text: t(`explore.part.${id}`) })), part, (id) => { part = state.page.part = id; state.writeAddress(); open(panel); /** @type {any} */ (panel.querySelector("[aria-pressed=true]"))?.focus(); })), body);
    if (shown.answer && part === "search") shown.show(shown.answer);
    again();
    // The vendors and kinds of all chips come a moment after the page.
    const known = page.question.catalogue.chips.length;
    page.question.lists().then(() => { if (page.question.catalogue.chips.length !== known && !panel.hidden) open(panel); }, () => {});
  }

  const again = () => {
    fill(problem, engine.ready ? null : h("span", { class: "hint" }, t("waiting")));
    if (!engine.ready) return;
    if (part === "search") { asks.tell(); search(); }
    else if (part === "tornado") tornado();
    else numpy().then(() => { busy(false); (part === "fleet" ? sizing : able).update(); }, (error) => { busy(false); fill(problem, say(error.message)); });
  };
  return { open, update: debounce(again, 150) };
}
