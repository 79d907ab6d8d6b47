// @ts-check
// Sharing and saving: the link, the same question for Python and the command line, the answer as files, the chart as a picture.

import { $, h, sheet, toast } from "./dom.mjs";
import { t } from "./i18n.mjs";

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast(t("copied"), undefined, undefined, 2000);
  } catch {
    toast(t("copy.refused"));
  }
}

/** @param {string} name @param {Blob} blob */
function save(name, blob) {
  const url = URL.createObjectURL(blob), link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** @param {any} page */
export async function openShare(page) {
  const link = location.href;
  const field = (/** @type {string} */ id, /** @type {string} */ label, /** @type {string} */ value, rows = 2) => h("div", { class: "field" }, h("label", { for: id }, label),
    h("textarea", { id, readonly: true, rows, spellcheck: "false", onfocus: (/** @type {any} */ e) => e.target.select() }, value), h("button", { type: "button", class: "quiet", onclick: () => copy($(id).value) }, t("copy")));
  const rest = h("div", {}, h("p", { class: "hint" }, t("waiting")));
  sheet(t("share.title"), h("p", {}, t("share.text")), field("share-link", t("share.link"), link), rest);
  $("share-link").select();
  try {
    const [same, files] = await Promise.all([page.engine.ask("link", { form: page.state.form }), page.engine.ask("export", { form: page.state.form })]);
    const embed = `<iframe src="${link.replaceAll("&", "&amp;")}&amp;embed" width="720" height="520" style="border:0" title="Roofline"></iframe>`;
    const file = (/** @type {string} */ label, /** @type {string} */ name, /** @type {string} */ text, type = "text/plain") => h("button", { type: "button", class: "quiet", onclick: () => save(name, new Blob([text], { type })) }, label);
    rest.replaceChildren(
      field("share-cli", t("share.cli"), same.cli), field("share-python", t("share.python"), same.python, 4), field("share-markdown", t("share.markdown"), markdown(page, link), 3), field("share-embed", t("share.embed"), embed),
      h("div", { class: "row" }, file("JSON", "roofline.json", files.json, "application/json"), file("CSV", "roofline.csv", files.csv, "text/csv"), h("button", { type: "button", class: "quiet", onclick: () => picture(page) }, "PNG"), h("button", { type: "button", class: "quiet", onclick: () => window.print() }, t("print"))));
  } catch (error) {
    rest.replaceChildren(h("p", { class: "error" }, /** @type {Error} */ (error).message));
  }
}

/** The answer as Markdown for an issue or a chat. @param {any} page @param {string} link */
function markdown(page, link) {
  const rows = page.latest().view.figures.map((/** @type {any} */ f) => `| ${t(`figure.${f.key}`)} | ${f.value}${["user", "total"].includes(f.key) ? " tokens/s" : ""} |`);
  return [page.sentence.text(), "", `| | ${t("at_most")} |`, "|---|---|", ...rows, "", link].join("\n");
}

/** The chart, drawn as it stands, as a PNG. @param {any} page */
async function picture(page) {
  const canvas = page.chart.view?.export ? page.chart.view.export("png", true) : null;
  if (!canvas) return toast(t("picture.refused"));
  const out = document.createElement("canvas"), source = canvas.canvas ?? canvas;
  out.width = source.width;
  out.height = source.height;
  const pen = /** @type {CanvasRenderingContext2D} */ (out.getContext("2d"));
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--paper");
  pen.fillRect(0, 0, out.width, out.height);
  pen.drawImage(source, 0, 0);
  out.toBlob((blob) => blob && save("roofline.png", blob));
}
