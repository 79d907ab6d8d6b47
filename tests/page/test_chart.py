"""The chart: its words have room at every width, its points move, it comes late and may fail to come."""

from __future__ import annotations

import pytest
from steps import booted, column, edit, settled, until

# Every label as a box in pixels, measured in the chart's own font, from what Bokeh holds.
BOXES = """() => {
  const chart = roofline.chart, k = chart.k, plot = chart.plot, x = chart.model("x_range"), y = chart.model("y_range"), pen = document.createElement("canvas").getContext("2d");
  const X = (v) => Math.log(v / x.start) / Math.log(x.end / x.start) * plot.inner_width, Y = (v) => (1 - Math.log(v / y.start) / Math.log(y.end / y.start)) * plot.inner_height;
  const box = (text, size, px, middle, align) => { pen.font = `${size > 12 ? "bold " : ""}${size * k}px system-ui, sans-serif`; const w = pen.measureText(text).width, left = align === "right" ? px - w : align === "center" ? px - w / 2 : px; return { text, left, right: left + w, top: middle - 5 * k, bottom: middle + 5 * k }; };
  const out = [];
  const p = chart.model("phase_labels").data, r = chart.model("roof_labels").data, g = chart.model("ridges").data;
  p.text.forEach((text, i) => out.push(box(text, 13, X(p.x[i]) + p.dx[i], Y(p.y[i]) + p.dy[i], p.align[i])));
  r.text.forEach((text, i) => { if (text && !r.angle[i]) out.push(box(text, 12, X(r.x[i]), Y(r.y[i]) - 10 * k, r.align[i])); });
  g.label.forEach((text, i) => { if (text) out.push(box(text, 12, X(g.x[i]) + 6 * k, Y(g.y0[i]) - 30 * k, "left")); });
  const f = chart.model("field_labels").data;
  f.text.forEach((text, i) => { if (text) out.push(box(text, 12, X(f.x[i]) + f.dx[i], Y(f.y[i]) - 12 * k, f.align[i])); });
  return { boxes: out, width: plot.inner_width, height: plot.inner_height };
}"""


@pytest.mark.parametrize("width", [320, 360, 768, 1280, 2560])
def test_labels_are_inside_and_do_not_overlap(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    faults = []
    for preset in page.evaluate("[...document.querySelectorAll('[data-preset]')].map((e) => e.dataset.preset)"):
        page.evaluate("(p) => document.querySelector(`[data-preset=${p}]`).click()", preset)
        settled(page)
        page.wait_for_timeout(220)
        found = page.evaluate(BOXES)
        boxes = found["boxes"]
        for i, a in enumerate(boxes):
            if a["left"] < -2 or a["right"] > found["width"] + 10 or a["top"] < -4:
                faults.append((preset, "outside", a["text"]))
            faults += [(preset, a["text"], b["text"]) for b in boxes[:i] if min(a["right"], b["right"]) - max(a["left"], b["left"]) > 3 and min(a["bottom"], b["bottom"]) - max(a["top"], b["top"]) > 2]
    page.set_viewport_size({"width": 1280, "height": 900})
    assert not faults, faults


def test_the_chart_grows_with_the_page(page):
    """On a wide screen the page's text grows, and the chart's texts, marks and borders with it: Bokeh's and those of the still picture."""
    sizes = """() => [parseFloat(getComputedStyle(document.documentElement).fontSize), parseFloat(roofline.chart.model("below").major_label_text_font_size),
      parseFloat(getComputedStyle(document.querySelector(".still"), null).fontSize), roofline.chart.plot.min_border_left, Math.max(...roofline.chart.model("operators").data.size)]"""
    small = page.evaluate(sizes)
    assert small[:4] == [16, 12, 12, 64]
    page.set_viewport_size({"width": 2560, "height": 1440})
    try:
        until(page, "roofline.chart.k > 1")
        assert page.evaluate(sizes) == pytest.approx([1.25 * size for size in small])
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})
        until(page, "roofline.chart.k === 1")
    assert page.evaluate(sizes) == pytest.approx(small)


def test_the_point_moves_there_and_does_not_jump(page):
    move = """async (batch) => {
      const at = () => roofline.chart.model("phases").data.x[1], seen = [at()];
      roofline.state.set({ batch });
      const end = performance.now() + 1500;
      while (performance.now() < end) { await new Promise(requestAnimationFrame); if (at() !== seen.at(-1)) seen.push(at()); }
      return seen;
    }"""
    for batch in ("64", "100", "150", "200"):  # on a busy machine a move may fall between two frames
        page.wait_for_timeout(400)  # quick successive edits go at once, so that a dragged slider stays fluid
        seen = page.evaluate(move, batch)
        assert seen == sorted(seen)
        if len(seen) >= 4:
            break
    assert len(seen) >= 4
    assert abs(seen[-1] - page.evaluate("roofline.latest().chart.phases.x[1]")) < 1e-9


def test_the_points_leave_a_trail_while_only_the_load_changes(page):
    page.evaluate("document.querySelector('[data-preset]').click()")
    settled(page)
    ends = []
    for batch in ("2", "4", "8"):
        edit(page, "#f-batch", batch)
        ends.append(page.evaluate("roofline.latest().chart.phases.x[1]"))
    trail = column(page, "trail", "xs")
    assert trail[-1][-3:] == ends  # where decode stood at each answer
    page.evaluate("roofline.state.set({ hardware: 'h100-sxm' })")
    settled(page)
    assert column(page, "trail", "xs") == []


def test_the_still_chart_is_the_chart(page, fresh, site):
    """Before Bokeh comes, the picture in the HTML has the frame, the points and the words of the chart that takes its place."""
    other = fresh()
    other.goto(site)
    other.wait_for_selector("html[data-ready]", state="attached", timeout=90_000)
    other.wait_for_timeout(300)
    assert other.get_attribute("html", "data-chart") is None
    frame = other.evaluate("""() => {
      const frame = document.querySelector(".still").getBoundingClientRect(), marks = [...document.querySelectorAll(".still > svg > circle, .still > svg > rect")].slice(-2).map((e) => e.getBoundingClientRect());
      return { width: frame.width, height: frame.height, points: marks.map((m) => [m.left + m.width / 2 - frame.left, m.top + m.height / 2 - frame.top]) };
    }""")
    live = page.evaluate("""() => {
      const c = roofline.chart, x = c.model("x_range"), y = c.model("y_range"), d = c.model("phases").data, w = c.plot.inner_width, h = c.plot.inner_height;
      return { width: w, height: h, points: d.x.map((v, i) => [Math.log(v / x.start) / Math.log(x.end / x.start) * w, (1 - Math.log(d.y[i] / y.start) / Math.log(y.end / y.start)) * h]) };
    }""")
    assert abs(frame["width"] - live["width"]) <= 4 and abs(frame["height"] - live["height"]) <= 4
    for a, b in zip(frame["points"], live["points"], strict=True):
        assert abs(a[0] - b[0]) < 3 and abs(a[1] - b[1]) < 3
    words = other.inner_text(".still")
    assert all(text.split()[0] in words for text in page.evaluate("[...roofline.chart.model('roof_labels').data.text, ...roofline.chart.model('phase_labels').data.text].filter(Boolean)"))


@pytest.mark.console_errors_expected
def test_without_its_library_the_chart_says_so_and_the_rest_works(fresh, site):
    page = fresh()
    page.route("**/bokeh.min.js", lambda route: route.fulfill(status=404))
    page.goto(site)
    page.wait_for_selector("html[data-ready]", state="attached", timeout=90_000)
    assert page.is_visible(".still")  # the first answer's picture needs no library
    page.fill("#f-batch", "5")
    until(page, "document.getElementById('roofline').classList.contains('gone')", timeout=10_000)
    settled(page)
    assert not page.is_visible(".still") and "did not arrive" in page.get_attribute("#roofline", "data-note")
    assert page.is_visible("#chart-table table") and "5 requests" in page.inner_text("#sentence") + page.evaluate("roofline.sentence.text()")
    page.unroute("**/bokeh.min.js")
    page.fill("#f-batch", "6")
    page.wait_for_selector("html[data-chart]", state="attached", timeout=10_000)
    assert not page.evaluate("document.getElementById('roofline').classList.contains('gone')")


def test_both_charts_are_in_the_reader_language(fresh, site):
    page = fresh()
    page.goto(f"{site}#lang=zh")
    until(page, "document.querySelector('.still').innerText.includes('解码')", timeout=15_000)
    page.wait_for_selector("html[data-ready]", state="attached", timeout=90_000)
    booted(page, f"{site}#lang=zh")
    assert "解码" in page.evaluate("roofline.chart.model('phase_labels').data.text.join()")


def test_a_link_between_chips_is_named_at_its_dashed_roof(page):
    page.evaluate("roofline.state.replace({ model: 'llama-3.1-70b', hardware: 'l40s', devices: '8', tp: '8', batch: '16', prompt: '4000' })")
    settled(page)
    assert "PCIe" in column(page, "roof_labels", "text")
