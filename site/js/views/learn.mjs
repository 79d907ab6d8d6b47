// @ts-check
// The course: each lesson is a real question of this page with one knob; its texts hold live numbers that Python writes.
// A lesson takes the question's place only when it is started, and the visitor's own question comes back with one button.

import { fill, h, reducedMotion, toast } from "../dom.mjs";
import { glossary } from "../gloss.mjs";
import { language, named, nodes, rich, say, t } from "../i18n.mjs";
import { data } from "../lazy.mjs";
import { segmented } from "../tabs.mjs";
import { newest, partOf } from "./common.mjs";

const PARTS = ["lessons", "glossary"], BOUNDS = ["bound", "prefill_bound"];

/** @param {any} page */
export function view(page) {
  const { state, engine } = page;
  /** @type {any[]} */ let lessons = [];
  /** @type {any} */ let lesson = null;
  /** @type {{lesson: any, own: Record<string, string>, form: Record<string, string>} | null} the lesson that is on, the visitor's own question, the lesson's */ let on = null;
  /** @type {HTMLElement} */ let panel;
  /** @type {Record<string, string>} */ let numbers = {};
  /** @type {string[]} */ let labels = [];
  let part = "lessons";
  const ask = newest(engine);

  /** The part of a lesson in the reader's language. @param {any} each */
  const words = (each) => each[language] ?? each.en;
  const written = (/** @type {string} */ text) => nodes(text, Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, number(name, value)])));
  const number = (/** @type {string} */ name, /** @type {string} */ value) => h("span", { class: "num live" }, BOUNDS.includes(name) ? named("bound", value) : value);

  /** Ask for the numbers of the question as it stands (lesson on) or of the lesson's own (not started). */
  async function count() {
    const { link, knob } = lesson, asked = lesson;
    const result = await ask("learn", on?.lesson === lesson ? { form: state.form, knob } : { link, knob, form: state.form });
    if (!result || asked !== lesson) return;
    ({ numbers, labels } = result);
    // A link into the middle of a lesson: its question is the lesson's already.
    if (result.on && on?.lesson !== lesson) on = { lesson, own: on?.own ?? state.default, form: state.form };
    draw();
  }

  /** @param {any} next */
  function choose(next) {
    const running = on !== null;
    lesson = next;
    state.page.lesson = next.id;
    numbers = {};
    state.writeAddress();
    if (running) start();
    else { draw(); count().catch(said); }
  }

  async function start() {
    const own = on?.own ?? state.form, starting = lesson;
    try {
      const { form } = await engine.ask("from_link", { fragment: starting.link });
      if (starting !== lesson) return;
      on = { lesson, own, form };
      state.page.lesson = lesson.id;
      state.replace(form, { push: true });
      await count();
      panel.scrollIntoView({ behavior: reducedMotion() ? "auto" : "smooth", block: "start" });
      panel.querySelector("h3")?.focus({ preventScroll: true });
    } catch (error) { said(error); }
  }

  /** Whether another question has taken the lesson's place (undo, an example, a link), rather than a change or two of it. @param {NonNullable<typeof on>} lesson */
  function left({ lesson: { knob }, own, form }) {
    const now = state.form, other = [...new Set([...Object.keys(now), ...Object.keys(form)])].filter((name) => name !== knob.field && now[name] !== form[name]);
    return other.length > 3 || JSON.stringify(own) === JSON.stringify(now);
  }

  /** Whether the question the lesson took the place of is the visitor's, and not the example that the page opens with. */
  const mine = () => on !== null && [...new Set([...Object.keys(on.own), ...Object.keys(state.default)])].some((name) => on?.own[name] !== state.default[name]);

  function leave() {
    const own = on?.own, done = mine() ? "learn.back.done" : "learn.leave.done";
    on = null;
    if (own) state.replace(own, { push: true });
    toast(() => t(done));
    choose(lesson);
  }

  /** A question that is refused is said where it is asked; the lesson stays. @param {any} error */
  const said = (error) => error.kind !== "input" && fill(panel, h("p", { class: "error" }, say(/** @type {Error} */ (error).message)));

  function drawLesson() {
    const at = lessons.indexOf(lesson), told = words(lesson), running = on?.lesson === lesson, field = lesson.knob.field;
    const go = (/** @type {number} */ step, /** @type {string} */ key) => h("button", { type: "button", class: "quiet", disabled: !lessons[at + step], onclick: () => choose(lessons[at + step]) }, t(key));
    const knob = () => h("div", { class: "knob" }, h("span", { id: "knob-label", class: "hint" }, t(`field.${field}`)),
      segmented(t(`field.${field}`), lesson.knob.values.map((/** @type {any} */ v, /** @type {number} */ i) => ({ id: String(v), text: labels[i] ?? String(v) })), state.get(field), (value) => state.set({ [field]: value })));
    const watched = () => h("dl", { class: "watch" }, lesson.watch.map((/** @type {string} */ name) => h("div", {}, h("dt", {}, ...rich(`live.${name}`)), h("dd", {}, number(name, numbers[name] ?? "–")))));
    return h("article", { class: `lesson ${running ? "on" : ""}`, "aria-labelledby": "lesson-title" },
      h("p", { class: "hint" }, t("learn.at", { n: at + 1, of: lessons.length })),
      h("h3", { id: "lesson-title", tabindex: "-1" }, told.title),
      h("div", { class: "prose" }, told.text.map((/** @type {string} */ text) => h("p", {}, ...written(text)))),
      running ? [h("p", { class: "try" }, ...written(told.try)), h("div", { class: "bench" }, knob(), watched())] : null,
      h("div", { class: "row" },
        running ? h("button", { type: "button", class: "quiet", id: "lesson-back", onclick: leave }, t(mine() ? "learn.back" : "learn.leave")) : h("button", { type: "button", class: "solid", id: "lesson-start", disabled: !engine.ready, onclick: start }, t("learn.start")),
        go(-1, "learn.previous"), go(1, "learn.next")),
      running ? null : h("p", { class: "hint" }, engine.ready ? t("learn.start.hint") : t("waiting")));
  }

  /** Draw anew, keeping the focus on the control that has it. */
  function draw() {
    const held = panel.contains(document.activeElement) ? document.activeElement : null, id = held?.id, text = held?.textContent;
    const choice = segmented(t("tab.learn"), PARTS.map((each) => ({ id: each, text: t(`learn.${each}`) })), part, (next) => { part = state.page.part = next; state.writeAddress(); draw(); });
    const list = () => h("ol", { class: "course", "aria-label": t("learn.lessons") }, lessons.map((each, i) => h("li", {}, h("button", { type: "button", class: "link", "aria-current": each === lesson ? "step" : null, onclick: () => choose(each) }, `${i + 1}. ${words(each).title}`))));
    if (part === "glossary") {
      const place = h("dl", { class: "glossary" });
      fill(panel, h("div", { class: "panel-top" }, choice), place);
      glossary(engine.build).then((terms) => fill(place, terms.map((term) => h("div", {}, h("dt", {}, words(term)[0]), h("dd", {}, words(term)[1])))), said);
    } else fill(panel, h("div", { class: "panel-top" }, choice), h("div", { class: "learn" }, drawLesson(), list()));
    if (held) (/** @type {any} */ (id && document.getElementById(id)) || [...panel.querySelectorAll("button")].find((b) => b.textContent === text))?.focus({ preventScroll: true });
  }

  async function open(/** @type {HTMLElement} */ place) {
    panel = place;
    part = partOf(page, PARTS);
    lessons = (await data(`${engine.build.views}lessons.json`)).lessons;
    const wanted = lessons.find((each) => each.id === state.page.lesson) ?? lesson ?? lessons[0];
    if (wanted !== lesson) { lesson = wanted; numbers = {}; }
    draw();
    if (engine.ready) await count();
  }

  return {
    open: (/** @type {HTMLElement} */ place) => { open(place).catch(said); },
    update: () => {
      if (on && left(on)) on = null;
      if (lesson && part === "lessons") count().catch(said);
    },
  };
}
