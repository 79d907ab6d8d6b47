"""What explore is used for: the page's request, the command line, sensitivity and fleets."""

import csv
import io
import json
import math

import pytest

np = pytest.importorskip("numpy")

from roofline import Scenario, evaluate, hardware, roof  # noqa: E402
from roofline.cli import main  # noqa: E402
from roofline.errors import InputError  # noqa: E402
from roofline.explore import Space, explore, explore_request  # noqa: E402
from roofline.explore.fleet import Demand, fleet, presets, read_mix  # noqa: E402
from roofline.explore.request import FIELDS, csv_lines, read, to_dict  # noqa: E402
from roofline.explore.sensitivity import PARAMETERS, sensitivity  # noqa: E402
from roofline.operators import Pass  # noqa: E402
from roofline.phase import operators_of  # noqa: E402
from roofline.scenario import chip_of, resolve  # noqa: E402
from roofline.serving import md1_wait  # noqa: E402

SMALL = {"chips": "h100-sxm,h200-sxm,l4", "devices": "1,8", "weights": "bf16,fp8", "tpot": "33 ms", "ttft_alone": "1 s"}


def test_a_request_answers_in_plain_json_and_its_rows_open_in_the_calculator():
    form = {
        "model": "llama-3.1-70b",
        "hardware": "h200-sxm",
        "devices": "2",
        "prompt": "4k",
        "output": "512",
        "bandwidth": "9 TB/s",
        "usd_per_hour": "3",
    }
    answer = json.loads(json.dumps(explore_request({"scenario": form, "explore": SMALL}), allow_nan=False))
    assert (
        answer["best"]
        and answer["front"]
        and answer["counts"]["met"] <= answer["counts"]["timed"] <= answer["counts"]["configurations"]
    )
    for row in answer["best"] + answer["front"]:
        scenario, notices = Scenario.from_fragment(row["fragment"])
        report = evaluate(scenario)
        assert (
            not notices
            and report.serving["expected_tpot_s"] == pytest.approx(row["tpot_s"], rel=1e-9)
            and row["text"]["title"].count(hardware.load(row["hardware"]).name) == 1
        )
        # What was typed over one chip's bandwidth is not told of others; its price is.
        assert scenario.bandwidth is None and (scenario.usd_per_hour == 3) == (row["hardware"] == "h200-sxm")
    assert {row["hardware"] for row in answer["why_not"]} | {row["hardware"] for row in answer["best"]} == {
        "h100-sxm",
        "h200-sxm",
        "l4",
    }
    lines = {f["hardware"]: f for f in answer["fronts"]}
    assert all(len(f["x"]) == len(f["y"]) == len(f["fragment"]) for f in lines.values())


def test_asking_again_with_other_limits_gives_what_a_fresh_exploration_gives():
    first = explore_request({"explore": SMALL | {"tpot": "50 ms", "objective": "latency"}})
    again = explore_request({"explore": SMALL | {"objective": "latency"}})
    space, question = read(Scenario(), SMALL | {"objective": "latency"})
    assert again == to_dict(explore(space, question), space) and again != first


def test_levers_are_tried_beside_none():
    one = explore_request({"explore": SMALL | {"objective": "latency"}})
    more = explore_request({"explore": SMALL | {"objective": "latency", "levers": "draft=3+acceptance=0.8, kv=fp8"}})
    assert (
        more["counts"]["evaluated"] == 3 * one["counts"]["evaluated"]
        and more["best"][0]["draft"] == 3
        and more["best"][0]["over_best"] == 1
    )
    assert "acceptance=0.8" in more["best"][0]["fragment"] and more["best"][0]["tpot_s"] < one["best"][0]["tpot_s"]


def test_fleets_and_sensitivity_are_asked_the_same_way():
    form = {"model": "llama-3.1-8b", "hardware": "h100-sxm", "batch": "8"}
    tornado = json.loads(
        json.dumps(explore_request({"ask": "sensitivity", "scenario": form, "objective": "latency"}), allow_nan=False)
    )
    assert tornado == sensitivity(Scenario.from_dict(form), "latency")
    sized = json.loads(
        json.dumps(
            explore_request(
                {"ask": "fleet", "scenario": form, "explore": {"chips": "h100-sxm,l4"}, "mix": MIX, "tpot_s": "50 ms"}
            ),
            allow_nan=False,
        )
    )
    assert {row["hardware"] for row in sized["best"]} | set(sized["why_not"]) == {"h100-sxm", "l4"}
    with pytest.raises(InputError):
        explore_request({"ask": "weather"})


@pytest.mark.parametrize(
    "fields,part",
    [
        ({"chip": "h100-sxm"}, "did you mean 'chips'"),
        ({"devices": "0"}, "devices"),
        ({"tpot": "fast"}, "tpot"),
        ({"objective": "best"}, "objective"),
        ({"weights": "fp7"}, "fp7"),
        ({"vendors": "Nvidai"}, "did you mean"),
        ({"prefill": "same"}, "chip:count"),
        ({"prices": "h100-sxm"}, "chip=USD/h"),
        ({"pipeline": "maybe"}, "yes or no"),
        ({"hits": "2"}, "hits"),
        ({"chips": "h1oo"}, "catalogue"),
        ({"prompts": "-1"}, "prompts"),
        ({"models": "gpt-9"}, "catalogue"),
        ({"devices": ",".join(str(n) for n in range(1, 100))}, "at most"),
        ({"kinds": "phone"}, "kind of chip"),
        ({"batches": "1,2.5"}, "whole"),
        ({"basis": "hope"}, "limit or expected"),
        ({"drafts": "-3"}, "drafts"),
        ({"levers": "offload"}, "field=value"),
        ({"levers": "hardware=l4"}, "can be explored"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(fields, part):
    with pytest.raises(InputError) as error:
        explore_request({"explore": {"chips": "h100-sxm"} | fields})
    assert part in str(error.value) and "\n" not in str(error.value)


def test_every_field_of_the_page_is_an_option_of_the_command_line(capsys):
    with pytest.raises(SystemExit):
        main(["explore", "--help"])
    text = capsys.readouterr().out
    flags = {
        "models": "model",
        "vendors": "vendor",
        "kinds": "kind",
        "batches": "batch",
        "prompts": "prompt",
        "outputs": "output",
        "drafts": "draft",
        "prices": "price",
    }
    assert all("--" + flags.get(name, name).replace("_", "-") in text for name in FIELDS)


def test_the_command_line_writes_the_table_json_csv_and_a_file_of_its_own(tmp_path, capsys):
    pytest.importorskip("bokeh")
    ask = [
        "explore",
        "--model",
        "llama-3.1-70b",
        "--chips",
        "h100-sxm,h200-sxm,l4",
        "--weights",
        "bf16,fp8",
        "--tpot",
        "20ms",
        "--ttft",
        "2s",
        "--set",
        "utilisation=0.9",
    ]
    assert main([*ask, "--csv", str(tmp_path / "all.csv"), "-o", str(tmp_path / "front.html")]) == 0
    text = capsys.readouterr().out
    assert "meet the question" in text and "H200 SXM" in text and "l4: " in text
    assert main([*ask, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "all.csv").read_text())))
    assert len(rows) == answer["counts"]["timed"] and sum(int(r["met"]) for r in rows) == answer["counts"]["met"]
    best = min((r for r in rows if r["met"] == "1"), key=lambda r: float(r["usd_per_million_output_tokens_all_in"]))
    assert best["hardware"] == answer["best"][0]["hardware"] and float(best["tpot_s"]) == answer["best"][0]["tpot_s"]
    page = (tmp_path / "front.html").read_text()
    assert "best cost of each chip" in page and "http://" not in page.split("<script")[0] and answer["best"][0]["name"] in page
    assert main([*ask, "-o", str(tmp_path / "front.txt")]) == 2 and "must end in .html" in capsys.readouterr().err
    assert main(["explore", "--model", "llama-3.1-70b", "--chips", "h1oo"]) == 2


def test_long_runs_tell_their_progress_and_short_ones_do_not(monkeypatch, capsys):
    ask = ["explore", "--model", "llama-3.1-8b", "--chips", "h100-sxm,h200-sxm"]
    assert main(ask) == 0 and capsys.readouterr().err == ""
    monkeypatch.setattr("roofline.explore_cli.QUIET", 200)
    monkeypatch.setattr("roofline.explore.request.KEEP", 10)
    monkeypatch.setattr("roofline.explore.grid.CHUNK", 20)
    for command in (ask, ["fleet", *ask[1:], "--mix", "chat", "--rate", "5"]):
        assert main(command) == 0
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) > 3 and lines[-1].startswith("100 % of ") and lines == sorted(lines)


def test_the_answer_comes_first_in_words(capsys):
    ask = ["explore", "--model", "llama-3.1-70b", "--chips", "h100-sxm,h200-sxm", "--devices", "8"]
    assert main([*ask, "--objective", "latency"]) == 0
    assert (
        capsys.readouterr()
        .out.splitlines()[1]
        .startswith("Best: 8 × H200 SXM 141GB, tp 8, BF16 weights, batch 1, time per output token ")
    )
    assert main([*ask, "--tpot", "1us"]) == 0 and "Nothing meets these limits." in capsys.readouterr().out


def test_csv_rows_are_scenarios_with_their_figures():
    space, question = read(Scenario(), SMALL | {"prefill": "same:1", "drafts": "0,3", "hits": "0,0.5"})
    rows = list(csv.DictReader(io.StringIO("".join(csv_lines(space, question)))))
    assert len(rows) > 500
    for row in rows[::97]:
        names = (
            "model",
            "hardware",
            "tp",
            "pp",
            "ep",
            "dp",
            "weights",
            "kv",
            "batch",
            "prompt",
            "output",
            "cached",
            "draft",
            "prefill_hardware",
            "prefill_devices",
        )
        serving = evaluate(Scenario.from_dict({n: row[n] for n in names if row[n]})).serving
        assert float(row["tpot_s"]) == pytest.approx(serving["tpot_s"], rel=1e-9) and float(row["ttft_s"]) == pytest.approx(
            serving["ttft_s"], rel=1e-9
        )


# ---- sensitivity -------------------------------------------------------------------------------------------------------


def changed(s: Scenario, name: str, value) -> Scenario:
    """The scenario that a row of a tornado is about, asked on its own."""
    chip = chip_of(s)
    if name == "bandwidth":
        return s.replace(bandwidth=chip.bandwidth_bytes_per_s * value)
    if name == "link":
        return s.replace(link=chip.link_bytes_per_s * value)
    if name == "price":
        return s.replace(usd_per_hour=(s.usd_per_hour or chip.usd_per_hour) * value)
    return s.replace(**{{"hits": "cached"}.get(name, name): value})


@pytest.mark.parametrize(
    "s",
    [
        Scenario(model="mixtral-8x7b", hardware="h200-sxm", devices=2, batch=64, draft=3, prompt=4096, output=256),
        Scenario(hardware="tpu-v5p", devices=8, usd_per_hour=3, batch=4, cached=400, weights="fp8"),
        Scenario(hardware="h100-sxm"),
    ],
)
def test_every_bar_of_the_tornado_is_an_evaluation(s):
    for objective, figure in (
        ("cost", lambda r: r.cost["usd_per_million_output_tokens_all_in"]),
        ("latency", lambda r: r.serving["tpot_s"]),
        ("ttft", lambda r: r.serving["ttft_s"]),
    ):
        found = sensitivity(s, objective)
        assert found["base"] == pytest.approx(figure(evaluate(s)), rel=1e-9)
        assert [row["swing"] for row in found["rows"]] == sorted((row["swing"] for row in found["rows"]), reverse=True)
        for row in found["rows"]:
            if row["parameter"] in ("peak", "power"):
                continue
            for side in ("low", "high"):
                assert row[side] == pytest.approx(
                    figure(evaluate(changed(s, row["parameter"], row[side + "_value"]))), rel=1e-9
                ), row


def test_expected_bars_and_fleets_are_evaluations_too():
    s = Scenario(hardware="h200-sxm", batch=16, prompt=2000, efficiency_compute=0.5, efficiency_bandwidth=0.7)
    found = sensitivity(s, "latency", basis="expected")
    assert (
        found["base"] == pytest.approx(evaluate(s).serving["expected_tpot_s"], rel=1e-9)
        and found["base"] > sensitivity(s, "latency")["base"]
    )
    row = next(row for row in found["rows"] if row["parameter"] == "bandwidth")
    assert row["low"] == pytest.approx(evaluate(changed(s, "bandwidth", 0.8)).serving["expected_tpot_s"], rel=1e-9)
    mix = read_mix("prompt,output,requests_per_s\n2000,256,3\n")
    space = Space(base=s, chips=("h200-sxm",), devices=(1,), batches=(16,), basis="expected")
    got, report = fleet(space, mix)["best"][0], evaluate(s)
    alone = evaluate(s.replace(batch=1)).serving["expected_ttft_s"]
    assert got["tpot_s"] == pytest.approx(report.serving["expected_tpot_s"] / (1 - 3 * alone / got["replicas"]), rel=1e-9)


def test_what_matters_is_what_physics_says():
    """A batch of one streams weights: bandwidth alone counts, and 20 % more of it makes a step 1/1.2 as long. Prefill is FLOPs over the peak."""
    found = sensitivity(Scenario(hardware="h100-sxm", batch=1), "latency")
    assert found["rows"][0]["parameter"] == "bandwidth" and found["rows"][0]["high"] == pytest.approx(
        found["base"] / 1.2, rel=1e-9
    )
    found = {row["parameter"]: row for row in sensitivity(Scenario(hardware="h100-sxm", batch=8, prompt=4096), "ttft")["rows"]}
    assert (
        found["peak"]["low"]
        == pytest.approx(sensitivity(Scenario(hardware="h100-sxm", batch=8, prompt=4096), "ttft")["base"] / 0.8, rel=1e-9)
        and found["bandwidth"]["swing"] == 0
    )
    assert set(found) <= set(PARAMETERS) and "acceptance" not in found and "routing" not in found
    for bad in ({"objective": "joy"}, {"step": 2}):
        with pytest.raises(InputError):
            sensitivity(Scenario(), **bad)
    with pytest.raises(InputError, match="does not fit"):
        sensitivity(Scenario(model="llama-3.1-405b"))
    with pytest.raises(InputError, match="usd_per_hour"):
        sensitivity(Scenario(hardware="gb200"))


# ---- fleets ------------------------------------------------------------------------------------------------------------

MIX = """name,requests_per_s,prompt,output,cached,ttft,tpot
chat,8,1000,300,,2 s,
documents,1,20000,500,5000,,60 ms
first token only,2,500,1,,,
"""


def test_a_mix_is_read_from_a_file_or_a_preset():
    mix = read_mix(MIX)
    assert [(c.requests_per_s, c.prompt, c.output, c.cached, c.ttft_s, c.tpot_s) for c in mix] == [
        (8, 1000, 300, 0, 2.0, None),
        (1, 20000, 500, 5000, None, 0.06),
        (2, 500, 1, 0, None, None),
    ]
    assert sum(c.requests_per_s for c in read_mix(MIX, 22)) == pytest.approx(22) and read_mix("chat", 10)[
        0
    ].requests_per_s == pytest.approx(6)
    for name, entry in presets().items():
        assert entry["source"] and (entry["example"] is False) == ("arXiv" in entry["source"]), name
        assert sum(c["share"] for c in entry["classes"]) == pytest.approx(1)
    for text, part in (
        ("chaat", "did you mean 'chat'"),
        ("chat", "rate"),
        ("name,prompt\nx,5\n", "output"),
        ("prompt,output,share\n1,1,0\n", "above 0"),
        ("prompt,output,requests_per_s,cached\n5,1,1,5\n", "cached"),
        ("prompt,output,requests_per_s\n" + "5,5,1\n" * 65, "64"),
        ("prompt,output,requests_per_s\nx,5,1\n", "prompt"),
    ):
        with pytest.raises(InputError, match=part):
            read_mix(text)


@pytest.mark.parametrize(
    "model,chips,n",
    [
        ("llama-3.1-70b", ("h100-sxm", "b200-sxm", "tpu-v5e"), (4, 8)),
        ("qwen3-30b-a3b", ("h200-sxm",), (1, 2, 4)),
        ("gemma-2-2b", ("l4",), (1,)),
    ],
)
def test_a_fleet_is_the_smallest_that_keeps_its_limits(model, chips, n):
    """Each row again by hand: the step of the mix as one pass of all its classes, the queue by Pollaczek-Khinchine, and one replica fewer is too few."""
    mix, demand = read_mix(MIX), Demand(headroom=0.25, ttft_s="8 s", tpot_s="80 ms")
    found = fleet(
        Space(base=Scenario(model=model), chips=chips, devices=n, weights=("fp8",), batches=(4, 16, 64)), mix, demand, "chips"
    )
    assert found["best"] and not set(found["why_not"]) & {row["hardware"] for row in found["best"]}
    for row in found["best"]:
        r = resolve(Scenario.from_fragment(row["fragment"])[0])
        s, layout = r.scenario, r.layout
        roofs = roof.roofs_of(r.chip, layout, (r.compute, r.activations.compute, "bf16"), None, None)
        split = min(layout.pp, row["batch"])
        steps = [c.requests_per_s * max(c.output - 1, 1e-9) for c in mix]
        passes = tuple(
            Pass(
                sequences=row["batch"] / split * w / sum(steps),
                new_tokens=1.0,
                start=float(c.prompt),
                steps=float(max(c.output - 1, 1)),
                pool=layout.pool,
            )
            for c, w in zip(mix, steps, strict=True)
        )
        step = max(roof.limit_parts(operators_of(r, passes), roofs, layout))
        prefill = [evaluate(s.replace(batch=1, prompt=c.prompt, output=c.output, cached=c.cached)).serving["ttft_s"] for c in mix]
        P = sum(c.requests_per_s * t for c, t in zip(mix, prefill, strict=True))
        D = sum(steps) * step / row["batch"]

        def kept(k):
            if k <= P or (P + D) / k > 0.75 + 1e-9 or step / (1 - P / k) > 0.060 + 1e-12:
                return False
            wait = sum(c.requests_per_s / k * t * t for c, t in zip(mix, prefill, strict=True)) / (2 * (1 - P / k))
            return all(t + wait <= (c.ttft_s or 8.0) + 1e-9 for c, t in zip(mix, prefill, strict=True))

        assert kept(row["replicas"]) and (row["replicas"] == layout.dp or not kept(row["replicas"] - layout.dp))
        assert row["devices"] == row["replicas"] * layout.tp * layout.pp and row["utilisation"] == pytest.approx(
            (P + D) / row["replicas"], rel=1e-6
        )
        assert row["tpot_s"] == pytest.approx(step / (1 - P / row["replicas"]), rel=1e-9)
        assert row["usd_per_hour"] is None or row["usd_per_hour"] == pytest.approx(row["devices"] * r.chip.usd_per_hour)


def test_one_class_queues_as_the_published_formula_says():
    mix = read_mix("prompt,output,requests_per_s\n2000,200,3\n")
    row = fleet(Space(base=Scenario(), chips=("h100-sxm",), devices=(1,), batches=(32,)), mix, Demand(headroom=0.1))["best"][0]
    prefill = evaluate(Scenario(prompt=2000, output=200)).serving["ttft_s"]
    assert row["replicas"] == 1 and row["queue_s"] == pytest.approx(md1_wait(3, prefill), rel=1e-9)


def test_a_chip_without_a_fleet_says_why():
    space = Space(
        base=Scenario(model="llama-3.1-70b"), chips=("l4", "h100-sxm", "gb200", "groq-lpu-v1", "a100-80gb-sxm"), devices=(8,)
    )
    why = lambda **limits: fleet(space, read_mix(MIX, 50), Demand(**limits))["why_not"]
    assert why()["groq-lpu-v1"].startswith("does not fit")
    assert "TTFT of documents" in why(ttft_s=0.3)["a100-80gb-sxm"] and why(tpot_s="1 ms")["h100-sxm"].startswith("misses TPOT")
    assert (
        "budget is 10.0" in why(budget=10)["h100-sxm"]
        and "no price is known" in why(budget=10)["gb200"]
        and "chips" in why(most_chips=8)["a100-80gb-sxm"]
    )
    for bad in (Space(prefill=(("same", 1),)), Space(drafts=(3,))):
        with pytest.raises(InputError):
            fleet(bad, read_mix("chat", 1))


def test_fleet_and_sensitivity_on_the_command_line(tmp_path, capsys):
    (tmp_path / "mix.csv").write_text(MIX)
    assert (
        main(
            [
                "fleet",
                "--model",
                "llama-3.1-8b",
                "--mix",
                str(tmp_path / "mix.csv"),
                "--chips",
                "h100-sxm,l4",
                "--headroom",
                "0.3",
                "--json",
            ]
        )
        == 0
    )
    answer = json.loads(capsys.readouterr().out)
    assert answer["headroom"] == 0.3 and all(
        math.isfinite(row["utilisation"]) and row["utilisation"] <= 0.7 + 1e-9 for row in answer["best"]
    )
    assert (
        main(["fleet", "--model", "llama-3.1-8b", "--mix", "chat", "--rate", "5"]) == 0
        and "replicas of tp" in capsys.readouterr().out
    )
    assert main(["sensitivity", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--objective", "latency"]) == 0
    assert "memory bandwidth" in capsys.readouterr().out.splitlines()[1]
    assert main(["sensitivity", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--step", "3"]) == 2


def test_the_figures_hold_what_the_answers_say():
    chart = pytest.importorskip("roofline.explore_chart")
    answer = explore_request({"explore": SMALL})
    plot = chart.front_figure(answer)
    points = plot.select_one({"name": "front.points"})
    assert (
        len(points.data["x"]) == sum(len(f["x"]) for f in answer["fronts"])
        and chart.front_figure().select_one({"name": "front.points"}).data["x"] == []
    )
    found = sensitivity(Scenario(hardware="h100-sxm"), "cost")
    bars = chart.tornado_figure(found).select_one({"name": "tornado.bars"})
    assert bars.data["words"][-1] == found["rows"][0]["words"]


def test_times_are_expected_where_every_part_of_the_question_has_them():
    """What is bought is chosen by what engines reach; without an engine, or with a prefill pool of its own, by what physics allows, unless one is named."""
    from roofline.explore.request import space_of

    basis = lambda engine="any", **fields: space_of(Scenario(engine=engine), fields)[0].basis
    assert basis() == "expected" and basis(basis="limit") == "limit"
    assert basis(engine="none") == "limit" and basis(prefill="same:8") == "limit"
