// @ts-check
// What several views share: asking Python without a queue building up, and sentences of the engine in the reader's language.

import { h } from "../dom.mjs";
import { language } from "../i18n.mjs";

/**
 * A way to ask in which only the newest question counts: one is in flight, one waits, those between are dropped (null).
 * @param {import("../engine.mjs").Engine} engine @returns {(method: string, params: object) => Promise<any>}
 */
export function newest(engine) {
  let busy = false;
  /** @type {{method: string, params: object, done: Function, fail: Function} | null} */ let waiting = null;
  const run = async () => {
    while (waiting) {
      const { method, params, done, fail } = waiting;
      waiting = null;
      await engine.ask(method, params).then((result) => done(result), (error) => fail(error));
    }
    busy = false;
  };
  return (method, params) => new Promise((done, fail) => {
    waiting?.done(null);
    waiting = { method, params, done, fail };
    if (!busy) { busy = true; run(); }
  });
}
