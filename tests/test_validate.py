"""The measurements: every row maps or says why not, nothing is faster than its limit, the errors are what the fit says, bad files are refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import InputError, predict, rows, validate
from roofline.cli import main

DATA = Path(__file__).parent / "data"
SHIPPED = {row["row_id"]: row for row in rows.shipped()}


@pytest.fixture(scope="module")
def answer():
    return validate.validate(list(rows.shipped()))


def row(**changes):
    """A plain row: Llama-3-8B in 16 bits on one H100, 20 tokens/s."""
    base = dict.fromkeys(rows.COLUMNS, "") | {
        "row_id": "x1", "model": "Llama-3-8B", "hardware": "H100 SXM5 80GB", "n_chips": "1", "tp": "1", "pp": "1", "dp": "1", "weight_dtype": "fp16", "kv_dtype": "fp16", "act_dtype": "fp16",
        "engine": "vLLM", "batching": "single", "batch": "1", "concurrency": "1", "input_len": "100", "output_len": "100", "metric": "decode_tok_s", "unit": "tok/s", "value": "20"}
    return base | changes


def text(*lines, columns=rows.COLUMNS):
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def test_every_shipped_row_maps(answer):
    assert len(answer["rows"]) == len(SHIPPED) == 972 and answer["unmapped"] == []


def test_nothing_without_a_flag_is_faster_than_its_limit(answer):
    assert not [r["row_id"] for r in answer["rows"] if not r["flag"] and r["limit_s"] > r["measured_s"]]
    assert answer["summary"]["faster_than_limit"] == []
    # And the limit is no idle promise: half of the single streams reach 60 % of it.
    reached = sorted(r["limit_s"] / r["measured_s"] for r in answer["rows"] if r["kind"] == "step" and not r["flag"])
    assert reached[len(reached) // 2] > 0.55 and reached[-1] > 0.8


def test_the_contract(answer):
    for r in answer["rows"]:
        assert {"row_id", "group", "measured_s", "limit_s", "expected_s", "low_s", "high_s"} <= r.keys()
        assert 0 < r["limit_s"] <= r["low_s"] <= r["expected_s"] <= r["high_s"], r
    json.dumps(answer, allow_nan=False)


@pytest.mark.parametrize(("id", "seconds"), [
    ("m0001", 1 / 72.79), ("m0010", 512 / 3728.86), ("m0809", 32 / 283.24), ("m0814", 32 * 4096 / 2138.82), ("m0894", None), ("m1888", 18.9920e-3), ("m2515", 376.392776),
    ("m1082", 1 / 2585.0953), ("m2495", 1 / 26.0), ("m2475", 0.133), ("m0961", 0.0411),
])
def test_seconds_of_each_metric(id, seconds):
    """Decode tok/s of a batch of B: B / value; prefill: all its tokens / value; a service's output tok/s: 1 / value; latencies as they are."""
    case = rows.case_of(SHIPPED[id])
    if seconds is None:
        seconds = float(SHIPPED[id]["output_len"]) * float(SHIPPED[id]["batch"]) / float(SHIPPED[id]["value"])
    assert case.measured_s == pytest.approx(seconds, rel=1e-4)


def test_limit_by_hand():
    """Llama-3-8B FP16 on H100, one stream: 16.06 GB less the 1.05 GB table that is only gathered, and 131,072 B of cache a token, at 3.35 TB/s."""
    case = rows.case_of(row(output_len="1"))
    assert predict.limit(case) == pytest.approx(((8030261248 - 128256 * 4096) * 2 + 101 * 131072) / 3.35e12, rel=2e-3)


def test_a_batch_reads_its_weights_once_and_its_caches_each():
    one, many = (predict.limit(rows.case_of(row(batch=b, batching="static", output_len="1"))) for b in ("1", "17"))
    assert many - one == pytest.approx(16 * 101 * 131072 / 3.35e12, rel=1e-2)


def test_least_routing_in_the_limit_and_coverage_in_the_expectation():
    case = rows.case_of(row(model="Mixtral-8x7B", hardware="H200 SXM 141GB", batch="64", batching="static"))
    assert case.floor.scenario.routing == 1 and case.resolved.scenario.routing == 0
    # Two of eight experts: less than half of the weights.
    dense = predict.limit(rows.case_of(row(model="Llama-2-70B", hardware="H200 SXM 141GB", weight_dtype="fp8", act_dtype="fp8", batch="64", batching="static")))
    assert predict.limit(case) < 0.6 * dense < predict.expected(case)[0]


def test_geforce_bounds_use_fp16_accumulation():
    """RTX 4090: 330.3 TFLOP/s with FP16 accumulation; 8.03e9 x 2 x 512 FLOP of a prompt cannot be faster than that."""
    case = rows.case_of(row(hardware="RTX 4090 24GB", engine="llama.cpp", metric="prefill_tok_s", input_len="512", output_len="0", value="9000"))
    assert predict.limit(case) == pytest.approx(2 * 512 * (8030261248 - 2 * 128256 * 4096) / 330.3e12, rel=0.03)


def test_a_comma_left_unquoted_is_repaired():
    line = "x,Llama-3-8B,RTX 4090 24GB,Q4_K_M,assumed (default, unverified),llama.cpp,single,1,1,,,128,decode_tok_s,tok/s,100\n"
    header = "row_id,model,hardware,weight_dtype,weight_dtype_basis,engine,batching,batch,concurrency,input_len,output_len,context_len,metric,unit,value\n"
    case = rows.case_of(rows.read(header + line)[0])
    assert case.measured_s == 0.01 and any("default, unverified" in a for a in case.assumed)


@pytest.mark.parametrize("bad", ["", "\n\n", "a,b,c\n1,2,3\n", "row_id,row_id\n1,2\n", 'row_id,"model\n', "{}", "PK\x03\x04\0\0", text(row()).replace("weight_dtype,", "wieght,", 1)])
def test_malformed_files_are_refused_in_one_sentence(bad, tmp_path, capsys):
    with pytest.raises(InputError):
        rows.read(bad)
    path = tmp_path / "bad.csv"
    path.write_text(bad, "utf-8")
    assert main(["validate", "--data", str(path), "--json"]) == 2
    out = capsys.readouterr()
    assert out.out == "" and out.err.startswith("roofline: ") and out.err.count("\n") == 1


@pytest.mark.parametrize(("changes", "reason"), [
    ({"model": "Frobnicator-9B"}, "not in the catalogue"), ({"hardware": "Frobnicator 9000"}, "not in the catalogue"), ({"weight_dtype": "ternary-ish"}, "not known"), ({"metric": "happiness"}, "metric"),
    ({"value": "n/a"}, "not a number"), ({"value": "0"}, "not a number"), ({"tp": "3", "n_chips": "3"}, "tp"), ({"n_chips": "7", "tp": "2", "pp": "2"}, "is not 7 chips"),
    ({"input_len": "", "output_len": "", "context_len": ""}, "context length"), ({"metric": "total_output_tok_s", "output_len": ""}, "output length"),
    ({"metric": "prefill_tok_s", "input_len": ""}, "prompt length"), ({"metric": "tpot_ms", "batching": "in-flight, fixed concurrency", "batch": "", "concurrency": ""}, "in flight"),
])
def test_what_cannot_be_mapped_says_why(changes, reason):
    answer = validate.validate([row(**changes)])
    assert answer["rows"] == [] and reason in answer["unmapped"][0]["reason"]


def test_unseen_engines_models_and_chips_are_predicted(capsys):
    """tests/data/rows_other.csv: invented values for models, chips and engines that no shipped row has."""
    assert main(["validate", "--json", "--data", str(DATA / "rows_other.csv")]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [r["row_id"] for r in answer["rows"]] == ["o1", "o2", "o3", "o4", "o5", "o6"]
    assert {u["row_id"]: u["reason"] for u in answer["unmapped"]}.keys() == {"o7", "o8"}
    for r in answer["rows"]:
        assert 0.2 < r["expected_s"] / r["limit_s"] < 40


_CELL = st.one_of(st.sampled_from(["", "0", "-1", "1e400", "nan", "inf", "1", "2", "8", "16", "1000", "fp8", "attention-DP", "not stated", "9" * 40, "x,y", "é", "single", "static", "in-flight", "MLPerf Offline"]), st.text(max_size=12))


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from([c for c in rows.COLUMNS if c != "row_id"]), _CELL, max_size=5))
def test_any_row_is_predicted_or_explained(changes):
    answer = validate.validate([row(**changes)])
    assert len(answer["rows"]) + len(answer["unmapped"]) == 1
    json.dumps(answer, allow_nan=False)


def test_names_as_files_write_them():
    assert rows.chip_of("M1 7-Core GPU 8GB") == "apple-m1-7c" and rows.chip_of("AMD Radeon RX 7900 XTX 24GB") == "rx-7900-xtx" and rows.chip_of("MI250X (1 GCD) 64GB") == "mi250x-gcd"
    assert rows.model_of("Llama-3-70B", "Llama-3.3-70B-Instruct Q4_K_M") == "llama-3-70b" and rows.model_of("DeepSeek-R1/V3", "DeepSeek-R1 671b Q4_K_M") == "deepseek-v3"


def test_points_carry_their_source_and_a_link():
    points = validate.points()
    assert len(points) == 972 and all(p["source"] and p["fragment"].startswith("s=1&model=") for p in points)
    json.dumps(points, allow_nan=False)


def test_errors_on_groups_never_seen_meet_the_aims():
    """As written by the last `roofline calibrate`: single-stream and static decode 10 % / 35 %, static prefill 20 % / 60 %, TPOT in service 20 % / 60 %."""
    found = {(s["kind"], s["engine"]): s for s in validate.statistics()}
    assert {"decode, single stream and static batch together", "decode, single stream", "decode, static batch", "prefill, static", "TPOT in service"} == set(validate.AIMS)
    for kind, (middle, tail) in validate.AIMS.items():
        s = found[kind, "all engines"]
        assert s["median"] <= middle and s["p90"] <= tail, s
        assert s["groups"] >= 15 and s["rows"] >= 30, "from many groups, or it says nothing"


def test_bands_hold_what_they_say():
    """A band of the 10th to 90th percentile should hold 80 % of groups never seen, over all and not much less for any kind with many groups."""
    whole = [s for s in validate.statistics() if s["engine"] == "all engines" and s["kind"] != "decode, single stream and static batch together"]
    assert 0.77 < sum(s["coverage"] * s["rows"] for s in whole) / sum(s["rows"] for s in whole) < 0.88
    assert all(s["coverage"] >= 0.6 for s in whole), whole
    assert all(0.7 < s["coverage"] < 0.9 for s in whole if s["groups"] >= 20)


def test_the_document_is_the_generated_one():
    written = (Path(__file__).parents[1] / "docs" / "validation.md").read_text("utf-8")
    assert written == validate.document()


def test_text_answers_print(capsys):
    assert main(["validate"]) == 0
    assert "never seen" in capsys.readouterr().out
