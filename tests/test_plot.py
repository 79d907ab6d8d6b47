"""Charts in files: points stand where the numbers say, SVG and PNG need no display, labels do not lie on each other."""

import io
import json
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.cli import main
from roofline.errors import InputError
from roofline.plot import (
    Chart,
    Note,
    Point,
    Roof,
    Trail,
    chip_roofs,
    compare,
    from_points,
    from_report,
    machine_roofs,
    read_points,
    read_roof,
    sweep,
)
from roofline.plot.chart import describe
from roofline.plot.commands import changes, values
from roofline.plot.draw import scene
from roofline.plot.layout import frame_of, layout
from roofline.plot.points import place
from roofline.plot.scene import Line, Mark, Text, text_width
from roofline.plot.themes import THEMES
from roofline.report import evaluate
from roofline.scenario import Scenario

ROOT = Path(__file__).resolve().parent.parent
A100 = (Roof(name="FP64", value=9.7e12, kind="compute"), Roof(name="HBM", value=2.04e12, kind="memory", level="HBM"))
LEVELS = (*A100, Roof(name="L2", value=5.1e12, kind="memory", level="L2"))
SCENARIO = Scenario(model="llama-3.1-70b", hardware="h200-sxm", devices=2, weights="fp8", batch=32, prompt=8192, output=512)


@pytest.fixture(scope="module")
def report():
    return evaluate(SCENARIO).to_dict()


# ---- points stand where the numbers say ----------------------------------------------------------------------------

def test_a_point_by_hand():
    # DAXPY of 1e9 elements: 2 FLOPs and 24 bytes each; 12.5 ms is 1.92 TB/s of an A100's 2.04.
    (row,) = read_points("name,flops,bytes,seconds\ndaxpy,2 GFLOP,24 GB,12.5 ms\n")
    ((_, x, y, roof, bound, timed),) = place(row, A100)
    assert (x, y, bound, timed) == (pytest.approx(1 / 12), pytest.approx(160e9), "memory", True)
    assert roof == pytest.approx(2.04e12 / 12) and y / roof == pytest.approx(1.92 / 2.04)


def test_levels_of_one_kernel_share_a_height():
    (row,) = read_points("name;flops;bytes:L2;bytes:HBM;seconds\nstencil;16 GFLOP;28 GB;17 GB;0.013\n")
    (l2, hbm) = place(row, LEVELS)
    assert l2[0] == "L2" and l2[1] == pytest.approx(16 / 28) and hbm[1] == pytest.approx(16 / 17) and l2[2] == hbm[2] == pytest.approx(16e9 / 0.013)
    assert l2[3] == pytest.approx(5.1e12 * 16 / 28) and hbm[3] == pytest.approx(2.04e12 * 16 / 17)
    chart = from_points([row], LEVELS)
    assert len(chart.points) == 2 and len({p.y for p in chart.points}) == 1 and len({p.color for p in chart.points}) == 2


def test_an_untimed_kernel_stands_on_its_lowest_roof():
    (row,) = read_points("name,flops,bytes:L2,bytes:HBM\nk,1e9,4e9,1e9\n")
    found = place(row, LEVELS)
    assert [f[2] for f in found] == [pytest.approx(5.1e12 / 4)] * 2 and not any(f[5] for f in found)
    (compute,) = place(read_points("name,flops,bytes\nk,1e12,1e9\n")[0], A100)
    assert compute[2] == 9.7e12 and compute[4] == "compute"


def test_a_point_above_the_roof_is_said_to_be():
    chart = from_points(read_points("name,flops,bytes,seconds\nimpossible,1e12,1e6,0.05\n"), A100)
    assert "Above a roof" in chart.subtitle and "impossible" in chart.subtitle


def test_rates_and_intensities_are_read_too():
    (row,) = read_points("kernel\tGFLOP/s\tAI\nspmv\t120\t0.15\n")
    assert (row.name, row.rate, row.intensity) == ("spmv", 120e9, 0.15)
    ((_, x, y, *_),) = place(row, A100)
    assert (x, y) == (0.15, 120e9)


@pytest.mark.parametrize(("text", "message"), [
    ("", "must have a header line"), ("name,flops\n", "must have a header line"), ("flops,bytes\n1,2\n", "must have a column called name"),
    ("name,flop_count\na,1\n", "column 'flop_count': is not one that a points file has"), ("name,flops,bytes\na,x,2\n", "line 2, flops 'x'"),
    ("name,flops,bytes\na,1,\n", "needs FLOPs and bytes"), ("name,flops,bytes,seconds\na,1 GFLOP,2 GB,3 GB\n", "line 2, seconds '3 GB'"),
])
def test_a_points_file_that_cannot_be_read_says_where(text, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_points(text)


def test_bytes_of_a_level_without_a_roof_are_refused():
    with pytest.raises(InputError, match="bytes:L7.*the memory roofs are HBM"):
        from_points(read_points("name,flops,bytes:L7\nk,1,1\n"), A100)
    with pytest.raises(InputError, match="lacks a memory roof"):
        from_points([], [read_roof("FP64=1 TFLOP/s")])


@pytest.mark.parametrize("text", ["FP64", "FP64=", "=9 TFLOP/s", "FP64=9.7", "HBM=2 seconds"])
def test_a_roof_without_name_or_unit_is_refused(text):
    with pytest.raises(InputError, match="roof"):
        read_roof(text)


def test_a_chip_and_a_machine_give_roofs():
    roofs = {r.name: r for r in chip_roofs("h100-sxm")}
    assert roofs["HBM3"].value == 3.35e12 and roofs["FP8, INT8"].value == 1978.9e12 and roofs["FP8, INT8"].main and not roofs["BF16, FP16"].main
    assert [r.name for r in chip_roofs("h100-sxm", ("bf16",)) if r.kind == "compute"] == ["BF16"]
    with pytest.raises(InputError, match="formats 'int4'.*it has fp32"):
        chip_roofs("h100-sxm", ("int4",))
    machine = machine_roofs({"peak_flops_per_s": {"fp32": 1e11, "bf16": 3e11}, "levels": [{"name": "L2", "bytes_per_s": 2e11}, {"name": "memory", "bytes_per_s": 2e10}]})
    assert [(r.name, r.main) for r in machine] == [("FP32 product", False), ("BF16 product", True), ("L2", False), ("memory", True)]


def test_a_report_stands_where_its_phases_are(report):
    chart = from_report(report)
    decode = next(p for p in chart.points if p.name == "decode")
    moved = report["decode"]["bytes"]
    # Per chip of two: half the FLOPs over half the bytes of weights and cache, at the time of the step.
    assert decode.x == pytest.approx(report["decode"]["flops"] / (moved["weights"] + moved["kv_read"] + moved["kv_write"]), rel=0.02)
    assert decode.y == pytest.approx(report["decode"]["flops"] / 2 / report["decode"]["limit_s"], rel=1e-6)
    assert decode.y == pytest.approx(decode.x * 4.8e12, rel=0.02)  # on the bandwidth line
    prefill = next(p for p in chart.points if p.name == "prefill")
    assert prefill.color == "compute" and prefill.y <= 1979e12 * 1.001
    assert {r.name for r in chart.roofs if r.kind == "memory"} == {"HBM3e"}


def test_links_are_a_roof_of_their_own(report):
    chart = from_report(report, links=True)
    sent = next(p for p in chart.points if p.name == "decode, links")
    assert sent.x == pytest.approx(report["decode"]["flops"] / 2 / report["decode"]["link_bytes"])
    assert any(r.level == "network" and r.value == report["hardware"]["link_bytes_per_s"] for r in chart.roofs)
    with pytest.raises(InputError, match="send nothing here"):
        from_report(evaluate(Scenario()), links=True)


def test_compare_names_what_differs_and_colours_by_scenario():
    a, b = evaluate(SCENARIO), evaluate(SCENARIO.replace(hardware="b200-sxm"))
    chart = compare([a, b])
    assert [entry[0] for entry in chart.legend] == [a.hardware["name"], b.hardware["name"]]
    assert len(chart.roofs) == 4 and len({r.color for r in chart.roofs}) == 2 and len(chart.points) == 4
    same_chip = compare([a, evaluate(SCENARIO.replace(kv="fp8"))])
    assert len(same_chip.roofs) == 2 and [entry[0] for entry in same_chip.legend] == ["as given", "kv fp8"]


def test_a_sweep_moves_right_with_the_batch():
    chart = sweep(SCENARIO, "batch", [1, 4, 16, 64])
    (trail,) = chart.trails
    assert [x for x, _ in trail.points] == sorted(x for x, _ in trail.points) and len(trail.points) == 4
    assert [p.timed for p in sweep(SCENARIO, "batch", [1, 4096]).points] == [True, False]  # hollow where it does not fit
    for field, message in (("colour", "must be a field of the scenario"), ("batch", "must be at least one number")):
        with pytest.raises(InputError, match=message):
            sweep(SCENARIO, field, [] if field == "batch" else [1])


# ---- drawing -------------------------------------------------------------------------------------------------------

def boxes(drawn):
    """Boxes of the level texts of a scene."""
    for s in drawn.shapes:
        if isinstance(s, Text) and not s.angle:
            wide = text_width(s.text, s.size, s.bold)
            left = s.x - {"start": 0, "middle": wide / 2, "end": wide}[s.anchor]
            top = s.y - (s.size / 2 if s.baseline == "middle" else s.size)
            yield s.text, (left, top, left + wide, top + s.size)


def overlap(a, b):
    return max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))


@pytest.mark.parametrize("make", [
    lambda: from_report(evaluate(SCENARIO)), lambda: compare([evaluate(SCENARIO.replace(hardware=h)) for h in ("h200-sxm", "b200-sxm", "mi300x")]),
    lambda: sweep(SCENARIO, "batch", [1, 2, 4, 8, 16, 32, 64, 128]),
    lambda: from_points(read_points("name,flops,bytes,seconds\n" + "".join(f"kernel number {i},{1e9 * 2**i},{1e9 * 1.2**i},{0.01 * 1.7**i}\n" for i in range(12))), A100),
    lambda: from_report(evaluate(Scenario(model="deepseek-v3", hardware="h200-sxm", devices=8, weights="fp8", batch=64))),
], ids=["report", "compare", "sweep", "points", "experts"])
def test_labels_do_not_lie_on_each_other_and_stay_inside(make):
    drawn = scene(make())
    found = list(boxes(drawn))
    for i, (name, a) in enumerate(found):
        assert a[0] >= 0 and a[2] <= drawn.width + 1 and a[1] >= 0 and a[3] <= drawn.height, name
        for other, b in found[i + 1:]:
            assert overlap(a, b) <= 0.2 * min((a[2] - a[0]) * (a[3] - a[1]), (b[2] - b[0]) * (b[3] - b[1])), (name, other)


@pytest.mark.parametrize("theme", THEMES)
def test_svg_is_well_formed_stands_alone_and_says_what_it_shows(report, theme):
    text = from_report(report, theme=theme).svg()
    root = ET.fromstring(text)
    assert root.tag.endswith("svg") and root.attrib["role"] == "img"
    assert not re.search(r"(href|src)=|url\((?!#)|<script|<image|@import", text)
    title, description = (next(e for e in root if e.tag.endswith(tag)).text for tag in ("title", "desc"))
    assert report["model"]["name"] in title and "decode at" in description and "HBM3e" in description
    assert THEMES[theme]["paper"] in text
    assert any(e.text and e.text.startswith("decode:") for e in root.iter() if e.tag.endswith("title"))  # names on hover


def test_png_has_the_size_asked_and_ink_where_the_points_are(report):
    Image = pytest.importorskip("PIL.Image")
    chart = from_report(report, width=640, height=400)
    image = Image.open(io.BytesIO(chart.png(scale=2)))
    assert image.size == (1280, 800) and image.format == "PNG"
    frame, decode = frame_of(chart), next(p for p in chart.points if p.name == "decode")
    seen = image.convert("RGB").getpixel((round(2 * frame.x(decode.x)), round(2 * frame.y(decode.y))))
    wanted = tuple(int(THEMES["light"][decode.color][i:i + 2], 16) for i in (1, 3, 5))
    assert max(abs(a - b) for a, b in zip(seen, wanted, strict=True)) < 12
    corner = image.convert("RGB").getpixel((2, 2))
    assert corner == (255, 255, 255)


def test_files_need_neither_display_nor_browser(report, tmp_path):
    """In a bare process with DISPLAY gone, SVG needs the standard library only."""
    code = (f"import sys, json; sys.path.insert(0, {str(ROOT)!r})\n"
            "for name in ('bokeh', 'PIL', 'numpy', 'playwright', 'matplotlib', 'cairosvg'): sys.modules[name] = None\n"
            "from roofline.plot import from_report\nreport = json.load(sys.stdin)\nsys.stdout.write(from_report(report).svg())")
    done = subprocess.run([sys.executable, "-c", code], input=json.dumps(report), capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0 and done.stdout == from_report(report).svg()


def test_html_is_one_file_with_the_same_figure(report, tmp_path):
    pytest.importorskip("bokeh")
    path = from_report(report, theme="dark").save(tmp_path / "roof.html")
    text = Path(path).read_text("utf-8")
    outside = re.findall(r"""(?:src|href)=["'](?!#)([^"']+)["']""", re.sub(r"<script[^>]*>.*?</script>", "", text, flags=re.DOTALL))
    assert outside == [] and "cdn.bokeh.org" not in re.sub(r"<script type=\"text/javascript\">.*?</script>", "", text, flags=re.DOTALL)
    assert "roofline.plot" in text and "<table>" in text and THEMES["dark"]["paper"] in text


def test_bokeh_gets_every_column_it_asks_for(report):
    charts = pytest.importorskip("roofline.charts")
    for chart in (from_report(report), sweep(SCENARIO, "batch", [1, 8]), compare([report, report]), from_points(read_points("name,flops,bytes\nk,1,1\n"), A100)):
        columns = layout(chart)
        for name, wanted in charts.SOURCES.items():
            assert set(wanted) <= set(columns[name]), name
            assert len({len(columns[name][c]) for c in wanted}) == 1, name


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(1e-3, 1e5), st.floats(1e6, 9e12)), min_size=1, max_size=30), st.floats(1e9, 1e15), st.floats(1e8, 1e14))
def test_every_chart_can_be_drawn(points, peak, bandwidth):
    chart = Chart(roofs=(Roof(name="peak", value=peak, kind="compute"), Roof(name="memory", value=bandwidth, kind="memory")),
                  points=tuple(Point(name=f"p{i}", x=x, y=y) for i, (x, y) in enumerate(points)), trails=(Trail(name="t", points=tuple(points)),), notes=(Note(x=1.0, y=peak / 2, text="here"),))
    frame, drawn = frame_of(chart), scene(chart)
    assert frame.x0 < frame.x1 and frame.y0 < frame.y1
    for s in (*drawn.inner, *drawn.shapes):
        numbers = [c for p in s.points for c in p] if isinstance(s, Line) else [s.x, s.y] if isinstance(s, (Mark, Text)) else []
        assert all(math.isfinite(v) for v in numbers)
    for x, y in points:
        assert frame.y0 <= y <= max(frame.y1, y)
    ET.fromstring(chart.svg())
    assert describe(chart)


def test_a_chart_that_cannot_be_is_refused(tmp_path):
    for wrong, message in (({"theme": "sepia"}, "must be one of light, dark, print"), ({"width": 10}, "from 240 to 4,000"), ({"roofs": ()}, "at least one compute roof")):
        with pytest.raises(InputError, match=message):
            Chart(**{"roofs": A100, **wrong})
    with pytest.raises(InputError, match="must end in .html, .svg, .png"):
        Chart(roofs=A100).save(tmp_path / "roof.jpg")
    with pytest.raises(InputError, match="cannot be written"):
        Chart(roofs=A100).save(tmp_path / "no" / "roof.svg")


def test_a_report_draws_itself_in_a_notebook():
    report = evaluate(Scenario())
    assert report.plot(theme="dark").svg().startswith("<svg")
    shown = report._repr_html_()
    assert "<svg" in shown and "Decoding is memory-bound" in shown and shown.count("<table>") == 1
    assert report.plot()._repr_html_().startswith("<svg")


# ---- command line --------------------------------------------------------------------------------------------------

def run(capsys, *words):
    code = main(list(words))
    return code, *capsys.readouterr()


def test_roofline_plot(capsys, tmp_path):
    base = ("plot", "--model", "llama-3.1-8b", "--hardware", "h100-sxm")
    code, out, _ = run(capsys, *base, "-o", str(tmp_path / "a.svg"))
    assert code == 0 and (tmp_path / "a.svg").exists()
    code, out, _ = run(capsys, *base, "--compare", "hardware=b200-sxm", "--compare", "weights=fp8,batch=8", "--json")
    answer = json.loads(out)
    assert code == 0 and len(answer["points"]) == 6 and len(answer["roofs"]) == 5
    code, out, _ = run(capsys, *base, "--sweep", "batch=1..16", "--json")
    assert [p["name"] for p in json.loads(out)["points"]] == ["1", "2", "4", "8", "16"]
    code, out, _ = run(capsys, *base, "--note", "10,2 TFLOP/s,look here", "--size", "800x500", "-o", str(tmp_path / "n.svg"))
    assert "look here" in (tmp_path / "n.svg").read_text() and 'width="800"' in (tmp_path / "n.svg").read_text()
    for words, message in ((("--size", "big"), "size 'big': must read WIDTHxHEIGHT"), (("--compare", "b200"), "compare 'b200': must read FIELD=VALUE"), (("--sweep", "batch"), "must read FIELD=VALUES"),
                           (("--theme", "x", "-o", "a.svg"), "theme 'x'"), (("--note", "here"), "note 'here'"), (("-o", "roof.gif"), "must end in")):
        code, out, err = run(capsys, *base, *words)
        assert code == 2 and message in err and err.count("\n") == 1, words


def test_roofline_points(capsys, tmp_path):
    file = tmp_path / "k.csv"
    file.write_text("name,flops,bytes,seconds\ndaxpy,2e9,24e9,12.5 ms\n")
    code, out, _ = run(capsys, "points", str(file), "--roof", "FP64=9.7 TFLOP/s", "--roof", "HBM=2.04 TB/s")
    assert code == 0 and "94.1 %" in out and "daxpy" in out
    code, out, _ = run(capsys, "points", str(file), "--hardware", "a100-80gb-sxm", "-o", str(tmp_path / "k.png"), "--json")
    assert code == 0 and json.loads(out)["points"][0]["name"] == "daxpy" and (tmp_path / "k.png").read_bytes().startswith(b"\x89PNG")
    code, _, err = run(capsys, "points", str(file))
    assert code == 2 and "--roof" in err
    code, _, err = run(capsys, "points", str(file), "--ceilings", str(file))
    assert code == 2 and "holds no roofs" in err


NCU = ('"ID","Kernel Name","CC","dram__bytes.sum","dram__bytes.sum.per_second","gpu__time_duration.sum","sm__cycles_elapsed.avg.per_second",'
       '"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed","smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed",'
       '"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed"\n"","","","Mbyte","Gbyte/s","us","Ghz","inst/cycle","inst/cycle","inst/cycle"\n'
       '"0","axpy(int, float const *, float *)","8.0","120.00","1,200.00","100.00","1.00","0","100.00","0"\n')


def test_profilers_give_points_and_roof_tools_give_roofs(capsys, tmp_path):
    """10e6 elements: 100 instructions a cycle at 1 GHz are 200 GFLOP/s, over 1.2 TB/s: 1/6 FLOP a byte; ERT's measured roofs stand in for a data sheet."""
    (tmp_path / "ncu.csv").write_text(NCU)
    code, out, _ = run(capsys, "points", str(tmp_path / "ncu.csv"), "--hardware", "a100-80gb-sxm", "--formats", "fp32", "--json")
    (point,) = json.loads(out)["points"]
    assert code == 0 and point["name"] == "axpy" and point["measured"] and point["flops_per_s"] == pytest.approx(200e9) and point["intensity_flops_per_byte"] == pytest.approx(1 / 6)
    (tmp_path / "ert.txt").write_text("   900.00 GFLOPs EMP\nMETA_DATA\n\n  5000.00 L1 EMP\n  100.00 DRAM EMP\n")
    (tmp_path / "k.csv").write_text("name,flops,bytes:L1,bytes:memory,seconds\nk,1e9,1e10,1e10,0.2\n")
    code, out, _ = run(capsys, "points", str(tmp_path / "k.csv"), "--ceilings", str(tmp_path / "ert.txt"), "--json")
    assert code == 0 and [(r["name"], r["value"]) for r in json.loads(out)["roofs"]] == [("highest measured", 9e11), ("L1", 5e12), ("memory", 1e11)]
    assert [row["of its roof"] for row in json.loads(out)["rows"]] == ["1.00 %", "50.0 %"]
    (tmp_path / "times.csv").write_text('"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"gemv",10,1000000,100000,100.0\n')
    code, _, err = run(capsys, "points", str(tmp_path / "times.csv"), "--hardware", "h100-sxm")
    assert code == 2 and "without a kernel that has both FLOPs and bytes" in err


def test_measured_rows_stand_beneath_the_limit(capsys, tmp_path):
    bench = [{"build_commit": "a", "build_number": 1, "backends": "CUDA", "model_filename": "llama-2-7b.Q4_0.gguf", "model_type": "llama 7B Q4_0", "model_size": 3825065984,
              "model_n_params": 6738415616, "n_batch": 2048, "n_ubatch": 512, "type_k": "f16", "type_v": "f16", "n_gpu_layers": 99, "n_prompt": p, "n_gen": n, "n_depth": 0,
              "avg_ns": round(1e9 * (p + n) / ts), "stddev_ns": 0, "avg_ts": ts, "stddev_ts": 0.1} for p, n, ts in ((512, 0, 9000.0), (0, 128, 150.0))]
    (tmp_path / "bench.json").write_text(json.dumps(bench))
    words = ("plot", "--model", "llama-2-7b", "--hardware", "h100-sxm", "--weights", "q4_0", "--measured", str(tmp_path / "bench.json"))
    code, out, err = run(capsys, *words, "--json")
    answer = json.loads(out)
    assert code == 0, err
    limits, rows = {p["name"]: p for p in answer["points"] if p["name"] in ("prefill", "decode")}, [p for p in answer["points"] if p["name"] not in ("prefill", "decode")]
    assert len(rows) == 2 and all(p["flops_per_s"] < limits[r["phase"]]["flops_per_s"] for p, r in zip(rows, answer["rows"], strict=True))


def test_sweeps_and_changes_are_read():
    assert values("prompt=1k..8k") == ("prompt", [1000, 2000, 4000, 8000]) and values("usd-per-hour=1,2.5") == ("usd_per_hour", [1, 2.5])
    assert changes("kv=fp8,batch=8") == {"kv": "fp8", "batch": "8"}
    with pytest.raises(InputError, match="at most 64 values"):
        values("batch=" + ",".join(map(str, range(70))))
