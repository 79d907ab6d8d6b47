// @ts-check
// The address bar: it holds the answered question, and what stands in it when the page opens or the visitor goes back is asked.

import { debounce } from "./dom.mjs";
import { PRESETS, presetOf } from "./presets.mjs";
import { splitFragment } from "./state.mjs";

/** @typedef {Record<string, string>} Form */
/**
 * @typedef {object} Reader what the page does with an address
 * @property {(own: Record<string, string>) => Promise<void>} own  take over the page's own keys: language, view, embedding
 * @property {() => void} waiting  a link is being opened
 * @property {(fragment: string) => Promise<{form: Form, notices: string[]}>} open  let Python read a link
 * @property {(notices: string[]) => void} opened  a link was opened; these are its notices
 * @property {(why: string) => void} failed  a link could not be read
 */

export class Address {
  /** @param {import("./state.mjs").State} state @param {Reader} reader */
  constructor(state, reader) {
    this.state = state;
    this.reader = reader;
    this.settled = state.form;
    this.turn = 0;
    this.opening = false;
    this.wrote = 0;
    this.later = debounce(() => { if (this.mine()) state.writeAddress(); }, 300);
  }

  /** Whether the question on the page is answered and none is being taken out of the address: only then is it written there. */
  mine() { return !this.opening && this.settled === this.state.form && this.state.fragment !== ""; }

  /** A question was answered: an example has a short link. @param {Form} form @param {string} fragment */
  answered(form, fragment) {
    const preset = presetOf(form);
    this.settled = form;
    this.state.fragment = preset ? `p=${preset.id}` : fragment;
  }

  /** Keep the address: at once, but not at every step of a slider, for which browsers slow a page down or refuse. */
  keep() {
    if (!this.mine()) return;
    if (performance.now() - this.wrote > 300) this.state.writeAddress();
    else this.later();
    this.wrote = performance.now();
  }

  /** Take the question out of the address. @param {boolean} first the page has just opened */
  async read(first) {
    const { question: wanted, page: own } = splitFragment(location.hash), turn = ++this.turn, { state, reader } = this;
    const { lang, view } = state.page; // Back and Forward go through questions; language and view stay as they are
    state.page = { ...(lang && { lang }), ...(view && { view }), ...own };
    this.opening = true;
    try {
      await reader.own(own);
      if (turn !== this.turn) return; // the visitor has gone on
      if ((wanted === state.fragment && this.settled === state.form) || (first && !wanted)) return; // it is on the page
      const preset = wanted ? PRESETS.find((p) => `p=${p.id}` === wanted) : { form: state.default };
      if (preset) return this.ask(preset.form);
      reader.waiting();
      const { form, notices } = await reader.open(wanted);
      if (turn !== this.turn) return;
      this.ask(form);
      reader.opened(notices);
    } catch (error) {
      if (turn === this.turn) reader.failed(/** @type {Error} */ (error).message);
    } finally {
      if (turn === this.turn) this.opening = false;
    }
  }

  /** @param {Form} form */
  ask(form) {
    this.opening = false;
    this.state.replace(form, { silent: true });
  }
}
