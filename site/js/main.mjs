// @ts-check
// Puts the page together: shows the default answer at once, starts Python, answers every edit, keeps the address.

import { Address } from "./address.mjs";
import { showChartTable, showFigures, showFinding, showNotices, showSaid } from "./answer.mjs";
import { showBoot } from "./boot.mjs";
import { RooflineChart, readPalette } from "./charts.mjs";
import { $, debounce, h, toast } from "./dom.mjs";
import { Engine } from "./engine.mjs";
import { explainOnClick, openExplanation } from "./explain.mjs";
import { Question } from "./fields.mjs";
import { language, phrases, t, useEnglish, useLanguage } from "./i18n.mjs";
import { firstOf, showLever, showWays } from "./lever.mjs";
import { keepOffline } from "./offline.mjs";
import { showGlosses } from "./gloss.mjs";
import { data as fetched, lazyTab, wordsAgain } from "./lazy.mjs";
import { listenForConfigs, openPaste } from "./paste.mjs";
import { memoryTab, methodTab, operatorsTab, timeTab } from "./panels.mjs";
import { rehearse } from "./rehearse.mjs";
import { Sentence } from "./sentence.mjs";
import { openShare } from "./share.mjs";
import { State, alike, joinFragment } from "./state.mjs";
import { compareTab, sweepTab } from "./studies.mjs";
import { keepStill } from "./still.mjs";
import { Tabs } from "./tabs.mjs";
import { forPaper, repaint, switchTheme } from "./theme.mjs";

const data = (/** @type {string} */ name) => JSON.parse($(`data-${name}`).textContent);
const build = data("build"), catalogue = data("catalogue"), first = data("default"), root = document.documentElement.classList;
useEnglish(data("words"));

let result = first, lever = first.lever, touched = false, notices = /** @type {any[]} */ ([]), tabs = /** @type {Tabs | null} */ (null), rest = 0, rested = 0;
const state = new State(catalogue.default);
let answered = state.form, drawn = state.form; // the question of the answer, and that of the chart on show
const engine = new Engine(build, new URL("./worker.mjs", import.meta.url).href, new URL("./", document.baseURI).href);
const question = new Question(state, catalogue, `${build.app}catalogue.json`, () => openPaste(page));
const sentence = new Sentence(state, question);
const figure = (/** @type {string} */ name) => () => fetched(`${build.app}charts.json`).then((all) => all[name]);
const figures = { roofline: figure("roofline"), sweep: figure("sweep"), sweep_linear: figure("sweep_linear") };
const chart = new RooflineChart($("roofline"), figures.roofline);
/** The question asked last, and why it was refused if so; and why what is on show is not the form's answer (null: it is). */
let outcome = { form: state.form, why: /** @type {string | null} */ (null) }, trouble = /** @type {any} */ (null);
const page = { state, engine, figures, question, sentence, chart, charts: [chart], wantChart, repaint: () => repaint(page.charts), latest: () => result, drawn: () => !rest, describe: (form = null) => sentence.asked(form) };
// For tests, the benchmark and the curious: what the page is made of. Nothing in the page reads it.
Object.assign(globalThis, { roofline: page });

/** The least time between two drawings of what stands around sentence and chart [ms]: of a slider that is dragged, not every step need be read there. */
const REST_MS = 150;

/** Show an answer: sentence, figures and chart at once, the rest after that frame, so that a dragged slider stays fluid. */
function show() {
  sentence.answer(result);
  showFigures(result.view, (key) => openExplanation(page, key));
  if (chart.doc) chart.show(result.chart, alike(answered, drawn));
  else if (result !== first) wantChart();
  drawn = answered;
  rest ||= window.setTimeout(() => requestAnimationFrame(() => setTimeout(showRest, 0)), rested + REST_MS - performance.now());
}

function showRest() {
  rest = 0;
  rested = performance.now();
  if (result.view.ways.length) lever = null;
  if (result.view.ways.length || (!lever && $("lever").childElementCount)) sayLever();
  showNotices(result.view.warnings);
  showFinding(result.view);
  if ($("chart-table").childElementCount || $("chart-table").closest("details").open) showChartTable(result.view);
  question.showResolved(result.view);
  showTrouble();
  tabs?.update();
  address.keep();
  $("whole").href = `#${joinFragment(state.fragment, { ...state.page, embed: /** @type {any} */ (undefined) })}`;
}

const address = new Address(state, {
  own: async (keys) => {
    if (keys.lang && keys.lang !== language) await setLanguage(keys.lang, false);
    if (keys.view) tabs?.select(keys.view, false);
    root.toggle("embed", "embed" in keys);
  },
  waiting: () => { if (!engine.ready) stale(() => t("link.opening")); },
  open: async (fragment) => { await ready; return engine.ask("from_link", { fragment, as_written: true }); },
  opened: (said) => { notices = [...new Set(said)]; showTrouble(); },
  failed: (why) => {
    notices = [() => t(root.contains("embed") ? "link.bad" : "link.bad.first", { why: phrases(why) })];
    if (outcome.form === state.form) stale(outcome.why);
    else if (engine.ready) ask();
    show();
  },
});
const announce = debounce(() => { $("summary").textContent = sentence.text(); }, 900);

const tryLever = (/** @type {any} */ row) => { state.set(row.change, { push: true }); toast(() => t("applied", { what: phrases(row.title) }), () => t("undo"), () => state.undo()); };
const sayLever = () => (result.view.ways.length ? showWays(result.view.ways, tryLever) : showLever(lever, tryLever));
const nameLever = debounce(async () => {
  const form = state.form;
  try {
    const { rows } = await engine.ask("levers", { form, goal: "tpot" });
    if (form !== state.form) return;
    lever = firstOf(rows);
  } catch {
    if (form !== state.form) return;
    lever = null; // a courtesy: without it the answer stands, but not with that of another question
  }
  sayLever();
}, 500);

/** Ask Python the form's question; the newest one wins. */
async function ask() {
  const form = state.form;
  root.add("asking");
  try {
    result = await engine.newest("evaluate", { form });
    answered = form;
    outcome = { form, why: null };
    question.complain(null);
    if (root.contains("stale")) stale(null);
    show();
    address.answered(form, result.fragment);
    announce();
    nameLever();
    document.documentElement.dataset.answered = String(Number(document.documentElement.dataset.answered ?? 0) + 1);
  } catch (error) {
    const problem = /** @type {import("./engine.mjs").EngineError} */ (error);
    if (problem.kind === "stale" || form !== state.form) return; // a newer question is on its way
    outcome = { form, why: problem.message };
    question.complain(problem);
    stale(problem.message);
    document.documentElement.dataset.answered = String(Number(document.documentElement.dataset.answered ?? 0) + 1);
  }
  if (form === state.form) root.remove("asking");
}

/** Keep the last good answer, dimmed and said to be that; null: the answer is the question's. @param {string | (() => string) | null} why */
function stale(why) {
  trouble = why;
  // A link that is refused has no numbers, least of all those of the first example; where it is embedded, they are not its either while it opens.
  root.toggle("unanswered", result === first && (root.contains("embed") ? why !== null || notices.length > 0 : outcome.why !== null));
  if (root.toggle("stale", why !== null)) showTrouble();
}

/** What is to be said of the question: of its link, and why what is on show is not its answer. */
function showTrouble() {
  const other = root.contains("unanswered");
  if (other) { question.forget(); sentence.forget(); }
  showSaid(trouble === null || other ? notices : [t("stale"), ...notices], trouble);
}

state.addEventListener("change", () => {
  touched = true;
  notices = [];
  question.show();
  sentence.show();
  $("undo").disabled = !state.past.length;
  $("redo").disabled = !state.future.length;
  if (engine.ready) ask();
  else stale(() => t(engine.failed ? "failure.unasked" : "waiting.first"));
});

/** @param {string} name @param {boolean} [keep] */
async function setLanguage(name, keep = true) {
  try { await wordsAgain(build, name); await useLanguage(name, build.app); /* in this order, so that all of the page changes at once */ } catch (error) { return toast(() => phrases(/** @type {Error} */ (error).message)); }
  $("language").value = language;
  if (keep) { state.page.lang = language === "en" ? /** @type {any} */ (undefined) : language; state.writeAddress(); }
  question.draw();
  sentence.draw();
  question.complain(question.problem);
  tabs?.draw();
  sayLever();
  if (chart.doc) chart.words();
  delete chart.shown.phase_labels;
  show(); showRest(); // at once, not after the least time between two drawings
  if ($("summary").textContent) $("summary").textContent = sentence.text(); // what was said last is not left in another language
  document.dispatchEvent(new Event("language")); // what is open besides: toast, dialogs, badges
}

const ready = new Promise((resolve) => engine.addEventListener("ready", resolve, { once: true }));

function start() {
  readPalette();
  question.draw();
  sentence.draw();
  tabs = new Tabs([operatorsTab(page.latest, build, state), timeTab(page.latest), memoryTab(page.latest), lazyTab(page, "serving"), sweepTab(page), lazyTab(page, "levers"), compareTab(page), ...["explore", "measured", "learn"].map((id) => lazyTab(page, id)), methodTab(page.latest)], (id) => { state.page.view = id === "operators" ? /** @type {any} */ (undefined) : id; state.writeAddress(); });
  tabs.draw();
  show();
  sayLever();
  keepStill($("roofline"), first.chart);
  showBoot(engine);
  engine.start();

  engine.addEventListener("ready", (/** @type {any} */ { detail }) => {
    document.documentElement.dataset.ready = detail.mode;
    Object.assign($("engine-state").dataset, { ms: String(detail.ms.ready), at: String(Math.round(performance.now())) }); // by the worker's clock, and since the visit began
    if (engine.deaths > 1) { // asked once more, it would die once more
      root.remove("asking");
      stale(() => t("engine.dies"));
    } else if (touched) ask();
    else if (tabs?.current !== "operators") tabs?.update(); // the first tab stands since the beginning; others may have waited for Python
    keepOffline(() => touched);
    rehearse(engine, state, () => touched);
    question.lists().catch(() => {}); // asked for again when a list is opened
  });
  engine.addEventListener("failed", () => { document.documentElement.dataset.ready = "failed"; if (touched) stale(() => t("failure.unasked")); });

  $("language").append(h("option", { value: "zh", lang: "zh-Hans" }, "中文")); // not in the HTML, whose first paint would wait for a font that has it
  $("language").addEventListener("change", () => setLanguage($("language").value));
  $("theme").addEventListener("click", () => switchTheme(page.charts));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", page.repaint);
  $("undo").addEventListener("click", () => state.undo());
  $("redo").addEventListener("click", () => state.redo());
  $("reset").addEventListener("click", () => { const before = state.form; state.replace(state.default, { push: true }); toast(() => t("reset.done"), () => t("undo"), () => state.replace(before)); });
  $("chart-table").closest("details").addEventListener("toggle", () => showChartTable(result.view));
  $("share").addEventListener("click", () => { state.writeAddress(); openShare(page); });
  $("question").addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
  $("sheet").addEventListener("click", (/** @type {MouseEvent} */ event) => { if (event.target === $("sheet")) $("sheet").close(); });
  addEventListener("popstate", () => address.read(false));
  addEventListener("keydown", (event) => {
    const typing = /** @type {HTMLElement} */ (event.target)?.closest?.("input:not([type=range], [type=checkbox]), textarea, select");
    if (typing || event.altKey || !(event.ctrlKey || event.metaKey) || !/^[zy]$/i.test(event.key)) return;
    event.preventDefault();
    if (event.shiftKey || /y/i.test(event.key)) state.redo();
    else state.undo();
  });
  listenForConfigs(page);
  explainOnClick(page);
  addEventListener("beforeprint", () => forPaper($("roofline")));
  showGlosses(build);
  address.read(true);
  for (const sign of ["pointermove", "pointerdown", "keydown", "wheel", "touchstart"]) addEventListener(sign, wantChart, { once: true, passive: true });
  if (document.documentElement.dataset.stirred) wantChart();
}

/** @type {Promise<void> | null} */ let charted = null;
/** Put Bokeh's chart in the place of the still one: when the visitor first stirs, or when the answer is not the one drawn in the HTML. */
function wantChart() {
  return charted ??= chart.embed().then(() => {
    chart.words();
    chart.show(result.chart);
    $("roofline").classList.remove("gone");
    document.documentElement.dataset.chart = "yes";
  }).catch(() => {
    charted = null; // the next answer tries again; until then the still picture stands only while it is this answer's
    $("roofline").classList.toggle("gone", result !== first);
    $("chart-table").closest("details").open ||= result !== first;
    $("roofline").dataset.note = t("chart.failed");
  });
}

start();
