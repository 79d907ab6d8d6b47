// @ts-check
// Sharing and saving: the link, the same question for Python and the command line, the answer as files, the chart as a picture.

import { $, h, sheet, toast } from "./dom.mjs";
import { say, t } from "./i18n.mjs";
import { presetOf } from "./presets.mjs";
import { joinFragment } from "./state.mjs";

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast(() => t("copied"), undefined, undefined, 2000);
  } catch {
    toast(() => t("copy.refused"));
  }
}

/** @param {string} name @param {Blob} blob */
function save(name, blob) {
  const url = URL.createObjectURL(blob), link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Where this question is found. @param {string} fragment @param {Record<string, string>} own keys of the page */
const address = (fragment, own) => `${location.href.split("#")[0]}#${joinFragment(fragment, own)}`;

/** @param {any} page */
export async function openShare(page) {
  const { form, page: own } = page.state;
  const field = (/** @type {string} */ id, /** @type {string} */ label, /** @type {string} */ value, rows = 2) => h("div", { class: "field" },
    h("div", { class: "copyable" }, h("label", { for: id }, label), h("button", { type: "button", class: "quiet", "aria-label": `${t("copy")}: ${label}`, onclick: () => copy($(id).value) }, t("copy"))),
    h("textarea", { id, readonly: true, rows, spellcheck: "false", onfocus: (/** @type {any} */ e) => e.target.select() }, value));
  const place = field("share-link", t("share.link"), location.href), rest = h("div", {}, h("p", { class: "hint" }, t("waiting")));
  sheet(() => openShare(page), t("share.title"), h("p", {}, t("share.text")), place, rest);
  $("share-link").select();
  try {
    const [same, files] = await Promise.all([page.engine.ask("link", { form }), page.engine.ask("export", { form })]);
    const preset = presetOf(form), fragment = preset ? `p=${preset.id}` : same.fragment, link = address(fragment, own);
    $("share-link").value = link;
    const { lang } = own, frame = address(fragment, { ...(lang && { lang }), embed: "" });
    const embed = `<iframe src="${frame.replaceAll("&", "&amp;")}" width="720" height="520" style="border:0" loading="lazy" title="Roofline"></iframe>`;
    const button = (/** @type {string} */ label, /** @type {() => void} */ work) => h("button", { type: "button", class: "quiet", onclick: work }, label);
    const file = (/** @type {string} */ label, /** @type {string} */ name, /** @type {string} */ text, type = "text/plain") => button(label, () => save(name, new Blob([text], { type })));
    rest.replaceChildren(
      field("share-cli", t("share.cli"), same.cli), field("share-python", t("share.python"), same.python, 5), field("share-markdown", t("share.markdown"), markdown(page, link), 3), field("share-embed", t("share.embed"), embed),
      h("div", { class: "row labelled", role: "group", "aria-labelledby": "share-save" }, h("span", { id: "share-save" }, t("share.save")), file("JSON", "roofline.json", files.json, "application/json"), file("CSV", "roofline.csv", files.csv, "text/csv"),
        button("PNG", () => picture(page)), button("SVG", () => drawing(page)), button(t("print"), () => print(page))),
      h("div", { class: "row labelled", role: "group", "aria-labelledby": "share-copy" }, h("span", { id: "share-copy" }, t("copy")), button(`${t("copy")} JSON`, () => copy(files.json)), button(`${t("copy")} CSV`, () => copy(files.csv))),
      h("p", { class: "hint" }, t("share.again")));
  } catch (error) {
    sheet(() => openShare(page), t("share.title"), h("p", { class: "error" }, say(/** @type {Error} */ (error).message))); // no link of another question in its place
  }
}

/** Print in the light theme, whatever the screen's is: the charts are painted in it first. @param {any} page */
async function print(page) {
  const { dataset } = document.documentElement, theme = dataset.theme;
  $("sheet").close();
  dataset.theme = "light";
  page.repaint();
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  window.print();
  if (theme) dataset.theme = theme;
  else delete dataset.theme;
  page.repaint();
}

/** The answer as Markdown for an issue or a chat. @param {any} page @param {string} link */
function markdown(page, link) {
  const rows = page.latest().view.figures.map((/** @type {any} */ f) => `| ${t(`figure.${f.key}`)} | ${f.value}${["user", "total"].includes(f.key) ? " tokens/s" : ""} |`);
  return [page.sentence.text(), "", `| | ${t("at_most")} |`, "|---|---|", ...rows, "", link].join("\n");
}

/** The chart as it stands, as Bokeh draws it once more. @param {any} page @param {"png" | "svg"} kind */
async function drawn(page, kind) {
  await page.wantChart();
  return page.chart.view?.export(kind, kind === "png") ?? null;
}
const paper = () => getComputedStyle(document.documentElement).getPropertyValue("--paper").trim();

/** As a PNG. @param {any} page */
async function picture(page) {
  const canvas = await drawn(page, "png");
  if (!canvas) return toast(() => t("picture.refused"));
  const out = document.createElement("canvas"), source = canvas.canvas ?? canvas;
  out.width = source.width;
  out.height = source.height;
  const pen = /** @type {CanvasRenderingContext2D} */ (out.getContext("2d"));
  pen.fillStyle = paper();
  pen.fillRect(0, 0, out.width, out.height);
  pen.drawImage(source, 0, 0);
  out.toBlob((blob) => blob && save("roofline.png", blob));
}

/** As an SVG, with the sentence as its title and the finding as its description. @param {any} page */
async function drawing(page) {
  const text = (await drawn(page, "svg"))?.ctx?.get_serialized_svg?.(true);
  if (!text) return toast(() => t("picture.refused"));
  const words = (/** @type {string} */ tag, /** @type {string} */ said) => { const element = document.createElementNS("http://www.w3.org/2000/svg", tag); element.textContent = said; return element; };
  const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement, ground = words("rect", "");
  for (const [name, value] of Object.entries({ width: "100%", height: "100%", fill: paper() })) ground.setAttribute(name, value);
  svg.prepend(words("title", page.sentence.text()), words("desc", $("finding").textContent), ground);
  save("roofline.svg", new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" }));
}
