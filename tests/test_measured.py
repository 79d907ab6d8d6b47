"""Reading other tools' outputs: exact rows, no guessed facts, and refusals in one sentence.

`data/samples` follow the structure of real outputs with invented figures; `data/variants` are written for these tests in the
same way (other tools, locales, encodings, quoting, damage, and texts that are no benchmark).
"""

import csv
import gzip
import html
import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.errors import InputError
from roofline.measured import read
from roofline.measured.place import placed
from roofline.scenario import Scenario

SAMPLES = Path(__file__).parent / "data" / "samples"
VARIANTS = Path(__file__).parent / "data" / "variants"


def samples() -> list:
    """(file name, bytes, expected facts) of every sample."""
    with open(SAMPLES / "samples.csv", encoding="utf-8", newline="") as file:
        return [
            (row["file"], (SAMPLES / row["file"]).read_bytes(), {**json.loads(row["expected"]), "tool": row["tool"]})
            for row in csv.DictReader(file)
        ]


def variants() -> list:
    """(file name, bytes, expected facts) of every variant."""
    expected = json.loads((VARIANTS / "expected.json").read_text(encoding="utf-8"))
    return [(name, (VARIANTS / name).read_bytes(), facts) for name, facts in expected.items()]


# The listed facts of this file leave out the second kernel's write traffic, which the file states.
LEFT_OUT_OF_THE_LIST = {"rocprof_v1-counters.csv": [("dram_bytes_write", 83910860.8)]}
# Facts that the list takes from a command line outside the file, or spells in other words.
NOT_IN_THE_FILE = {
    ("ollama_verbose-basic.txt", "model"),
    ("torchchat_generate.txt", "model"),
    ("llama-bench_csv-2023-header-short.csv", "backend"),
}
FREE_TEXT = ("raw", "kernel", "derived", "note", "value", "model_from")


def close(a, b):
    return a == b or isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a - b) <= 1e-6 * abs(b)


def pairs(reading):
    return [(r["metric"], r["value"]) for r in reading.rows]


def same_multiset(mine, wanted):
    mine = list(mine)
    for metric, value in wanted:
        hit = next((m for m in mine if m[0] == metric and close(m[1], value)), None)
        if hit is None:
            return f"{metric} {value} is missing from {mine}"
        mine.remove(hit)
    return f"not asked for: {mine}" if mine else None


@pytest.mark.parametrize(("name", "data", "want"), samples(), ids=[s[0] for s in samples()])
def test_sample_yields_its_facts(name, data, want):
    if "error" in want["expect"] and want["expect"] != "ok_or_error" or want["expect"] == "limits":
        with pytest.raises(InputError):
            read(data, name)
        return
    reading = read(data, name)
    assert same_multiset(pairs(reading), [(r["metric"], r["value"]) for r in want["rows"]] + LEFT_OUT_OF_THE_LIST.get(name, [])) is None
    assert reading.tool == want["tool"]
    for key, value in want["common"].items():
        if value is None:
            assert reading.common.get(key) is None, f"{key} is guessed"
        elif (name, key) not in NOT_IN_THE_FILE and key not in FREE_TEXT:
            assert close(reading.common.get(key), value), key
    for wanted in want["rows"]:
        mine = [{**reading.common, **r} for r in reading.rows if r["metric"] == wanted["metric"] and close(r["value"], wanted["value"])]
        for key, value in wanted.items():
            if value is not None and key not in FREE_TEXT:
                assert any(close(r.get(key), value) for r in mine), f"{wanted['metric']}: {key} is not {value!r}"
            elif value is None:
                assert all(r.get(key) is None for r in mine), key
    if want["expect"] == "partial":
        assert reading.warnings


@pytest.mark.parametrize(("name", "data", "want"), variants(), ids=[v[0] for v in variants()])
def test_variant_yields_its_facts(name, data, want):
    if "error" in want:
        with pytest.raises(InputError, match=".") as refused:
            read(data, name)
        assert want["error"] in str(refused.value)
        return
    reading = read(data, name)
    assert reading.tool == want["tool"]
    assert same_multiset(pairs(reading), want["rows"]) is None
    assert {k: v for k, v in want["common"].items() if not close(reading.common.get(k), v)} == {}


def test_raw_text_stands_in_the_file():
    """The raw text of a row is the file's own spelling (escapes and mojibake apart)."""
    for name, data, want in samples():
        if want["expect"] != "ok" or name.startswith("broken"):
            continue
        text = data.decode("utf-8-sig")
        for row in read(data, name).rows:
            assert (
                row["raw"].split(" (")[0] in text
                or " ".join(row["raw"].split()) in " ".join(text.split())
                or row["raw"].replace("tokens/s", "").strip() in text
            ), (name, row["raw"])


def test_unknown_stays_null():
    facts = read((SAMPLES / "ollama_verbose-basic.txt").read_bytes()).to_dict()["common"]
    assert facts["model"] is None and facts["quant"] is None and facts["hardware"] is None


def test_json_is_strict_and_complete():
    for name, data, _ in samples() + variants():
        try:
            answer = read(data, name).to_dict()
        except InputError as error:
            assert "\n" not in str(error) and name in str(error)
            continue
        json.loads(json.dumps(answer, allow_nan=False))
        assert set(answer) == {"tool", "common", "rows", "more", "warnings"}
        for row in answer["rows"] + answer["more"]:
            assert row["unit"] and row["value"] >= 0 and row["raw"]


class TestLimits:
    """A hostile file gets an answer or a refusal that names the limit, soon and in little memory."""

    def test_ten_megabytes_of_repeated_rows(self):
        lines = (SAMPLES / "llama-bench_md-new-fa-depth-2models.txt").read_text(encoding="utf-8").split("\n")
        head, rows = "\n".join(lines[:7]) + "\n", "\n".join(x for x in lines[7:] if x.startswith("|")) + "\n"
        count = 10 * 2**20 // len(rows) + 1
        start = time.perf_counter()
        reading = read((head + rows * count).encode(), "big.txt")
        assert time.perf_counter() - start < 10  # about 1.2 s on an idle core
        assert len(reading.rows) == 10 and {r["count"] for r in reading.rows} == {count}

    @pytest.mark.parametrize(
        "data",
        [
            b'{"avg_ts": ' + b"9" * (10 * 2**20) + b"}",
            b"[" * 200_000,
            b'{"a":' * 200_000,
            b"x" * (17 * 2**20),
            gzip.compress(b"0" * (40 * 2**20)),
        ],
        ids=["long number", "deep list", "deep object", "too long", "gzip bomb"],
    )
    def test_refused_naming_the_limit(self, data):
        with pytest.raises(InputError, match="limit|deep"):
            read(data, "hostile.json")

    @pytest.mark.parametrize(
        "line",
        [
            b" " * 3_000_000 + b"|",
            b"|" * 3_000_000,
            b"\n" * 3_000_000 + b"x",
            b"> " * 1_000_000,
            b"\x1b[" * 1_000_000,
            b"<td " * 500_000,
            b"1.1." * 700_000,
            b'"' * 3_000_000,
            b"[ x\n" * 300_000,
            b'{"a\n' * 300_000,
        ],
        ids=["spaces", "pipes", "newlines", "quotes", "escapes", "html", "dots", "double quotes", "brackets", "braces"],
    )
    def test_repeated_characters_are_cheap(self, line):
        start = time.perf_counter()
        with pytest.raises(InputError):
            read(line, "hostile.txt")
        assert time.perf_counter() - start < 10

    def test_many_different_rows_are_cut_and_said(self):
        head = "| model | size | params | backend | ngl | test | t/s |\n|-|-|-|-|-|-|-|\n"
        rows = "".join(f"| llama 8B Q4_0 | 4.33 GiB | 8.03 B | CUDA | 99 | tg128 | {i}.5 |\n" for i in range(1, 6000))
        reading = read((head + rows).encode())
        assert len(reading.rows) == 2000 and any(w.startswith("too_many_rows") for w in reading.warnings)


def test_a_value_that_nests_deep_among_log_lines_is_never_parsed():
    """The parser recurses; in the browser that takes the engine down. Open brackets of log lines alone are no nesting."""
    bomb = 'INFO start [\n' + '[{"a":' * 3000 + "1" + "}]" * 3000
    with pytest.raises(InputError, match="deep"):
        read(bomb.encode(), "log.txt")
    loose = "".join(f"[ step {i}\n" for i in range(400)) + '{"request_throughput": 2.5, "output_throughput": 320.0, "mean_ttft_ms": 80.0, "mean_tpot_ms": 9.0, "completed": 100}\n'
    assert read(loose.encode(), "log.txt").rows



class TestMeaning:
    """The traps: what tokens/s means, sums over a batch, units, locale, decoys, missing facts."""

    def row(self, text, metric, **facts):
        rows = [r for r in read(text.encode()).rows if r["metric"] == metric and all(r.get(k) == v for k, v in facts.items())]
        assert len(rows) == 1, rows
        return rows[0]

    def test_plain_tokens_per_second_of_vllm_counts_prompt_tokens(self):
        reading = read(b"Throughput: 9.94 requests/s, 2541.93 tokens/s")
        assert dict(pairs(reading)) == {"request_tps": 9.94, "total_tps": 2541.93}

    def test_the_sampling_rate_is_no_decode_rate(self):
        text = "llama_print_timings: sample time = 1.0 ms / 100 runs (0.01 ms per token, 100000.00 tokens per second)\nllama_print_timings: eval time = 5000.00 ms / 100 runs (50.00 ms per token, 20.00 tokens per second)"
        assert pairs(read(text.encode())) == [("decode_tps", 20.0)]

    def test_a_rate_that_its_own_time_contradicts_is_left_out(self):
        text = "llama_print_timings: eval time = 5000.00 ms / 100 runs (50.00 ms per token, 2000.00 tokens per second)\nllama_print_timings: prompt eval time = 1000.00 ms / 100 tokens (10.00 ms per token, 100.00 tokens per second)"
        reading = read(text.encode())
        assert pairs(reading) == [("prefill_tps", 100.0)] and "rate_disagrees_with_time" in reading.warnings[0]

    def test_invalid_mlperf_run_is_kept_but_unusable(self):
        text = "SUT name : x\nScenario : Offline\nMode     : PerformanceOnly\nSamples per second: 10\nTokens per second: 2000\nResult is : INVALID\n"
        row = self.row(text, "output_tps")
        assert row["usable"] is False

    def test_batched_rows_are_sums(self):
        row = self.row(
            '{"pp": 128, "tg": 64, "pl": 8, "n_kv": 1536, "t_pp": 1.0, "speed_pp": 1024.0, "t_tg": 2.0, "speed_tg": 256.0}', "decode_tps"
        )
        assert row["batch"] == 8 and row["aggregate"] is True and row["n_depth"] == 128

    def test_impossible_rates_are_kept_and_marked(self):
        row = self.row(
            "SUT name : x\nScenario : Server\nMode : PerformanceOnly\nCompleted tokens per second: 108608593901538.98\nResult is : VALID\n",
            "output_tps",
        )
        assert row["trust"] == "above_roof_expected"

    @pytest.mark.parametrize("label", ["Prompt cache hit rate: 90 %", "Draft acceptance rate: 0.7", "Generation success rate: 98", "Expected TTFT (ms): 100"])
    def test_rates_that_are_no_rates_of_tokens(self, label):
        reading = read(f"Prefill throughput: 500 tok/s\nDecode throughput: 50 tok/s\n{label}\n".encode())
        assert pairs(reading) == [("prefill_tps", 500.0), ("decode_tps", 50.0)]

    def test_wishes_beside_results_are_left_out(self):
        text = '{"slo": {"ttft_ms": 200, "tpot_ms": 20}, "result": {"mean_ttft_ms": 310.5, "mean_tpot_ms": 25.5, "output_throughput_tok_s": 900.0}}'
        assert sorted(pairs(read(text.encode()))) == [("output_tps", 900.0), ("tpot_ms", 25.5), ("ttft_ms", 310.5)]

    def test_units_are_taken_from_the_label(self):
        text = "Successful requests: 10\nRequest throughput (req/s): 2.0\nOutput token throughput (tok/s): 100.0\nMean TTFT (s): 0.5\nMean TPOT (ms): 20.0\n"
        assert self.row(text, "ttft_ms")["value"] == 500.0 and self.row(text, "tpot_ms")["value"] == 20.0

    def test_a_shifted_row_is_never_read(self):
        text = "| model | size | params | backend | ngl | test | t/s |\n|-|-|-|-|-|-|-|\n| llama 8B Q4_0 | 4.33 GiB | 8.03 B | CUDA | tg128 | 99.0 |\n| llama 8B Q4_0 | 4.33 GiB | 8.03 B | CUDA | 99 | tg128 | 50.0 |"
        reading = read(text.encode())
        assert pairs(reading) == [("decode_tps", 50.0)] and reading.warnings[0].startswith("row_cell_count_mismatch:line 3")

    def test_a_gpu_that_is_only_a_decoy_is_not_taken(self):
        text = "Automatically detected platform cuda.\nUsing an NVIDIA H100 would be faster\nThroughput: 1.0 requests/s, 200.0 total tokens/s, 100.0 output tokens/s"
        assert read(text.encode()).common["hardware"] is None


# What terminals, loggers, launchers, viewers and mails put around the output of another program: none of it changes a figure.
DRESSINGS = {
    "crlf": lambda t: t.replace("\n", "\r\n"),
    "fence": lambda t: f"Is 40 t/s normal?\n\n```\n{t}\n```\n\nThanks!\n",
    "tab": lambda t: _each(t, "\t"),
    "kubernetes": lambda t: _each(t, "2025-03-01T10:10:10.123456789Z stdout F "),
    "container": lambda t: _each(t, "bench-1  | "),
    "ray": lambda t: _each(t, "\x1b[36m(Actor pid=1234)\x1b[0m "),
    "time": lambda t: _each(t, "10:10:10 "),
    "vllm logger": lambda t: _each(t, "INFO 03-01 10:10:10 [bench.py:10] "),
    "python logger": lambda t: _each(t, "2025-03-01 10:10:10,123 - INFO - "),
    "srun": lambda t: _each(t, "0: "),
    "mpirun": lambda t: _each(t, "[1,0]<stdout>:"),
    "ci job": lambda t: _each(t, "bench\tRun\t2025-03-01T10:10:10.1234567Z "),
    "diff": lambda t: _each(t, "+"),
    "numbered": lambda t: "\n".join(f"{i:4d}  {line}" for i, line in enumerate(t.split("\n"), 1)),
    "double spaced": lambda t: t.replace("\n", "\n\n"),
    "web page": lambda t: f"<html><body><pre>{html.escape(t)}</pre></body></html>",
    "utf-16": lambda t: "\ufeff" + t,
}
# Samples whose own damage is of the same kind (a wrapped mail, a web page, carriage returns, a line broken by the terminal).
DRESSED_ALREADY = ("broken_", "trtllm_benchmark-py-line")


def _each(text: str, prefix: str) -> str:
    return "\n".join(prefix + line for line in text.split("\n"))


@pytest.mark.parametrize("dressing", DRESSINGS)
def test_what_stands_around_a_text_changes_no_figure(dressing):
    for name, data, _ in samples():
        if name.startswith(DRESSED_ALREADY):
            continue
        dressed = DRESSINGS[dressing](data.decode("utf-8-sig"))
        raw = dressed.encode("utf-16-le" if dressing == "utf-16" else "utf-8")
        try:
            plain = sorted(pairs(read(data, name)))
        except InputError:
            with pytest.raises(InputError):
                read(raw, name)
        else:
            assert sorted(pairs(read(raw, name))) == plain, name


mutations = st.sampled_from(["cut", "bytes", "double", "join", "shuffle", "numbers", "drop", "recode"])


@settings(max_examples=250, deadline=None)
@given(data=st.data())
def test_damage_never_raises_anything_but_input_error(data):
    files = [d for _, d, _ in samples() + variants()]
    b = bytearray(data.draw(st.sampled_from(files)))
    kind = data.draw(mutations)
    at = data.draw(st.integers(0, max(0, len(b) - 1)))
    if kind == "cut":
        b = b[:at]
    elif kind == "bytes":
        b[at : at + 8] = data.draw(st.binary(max_size=24))
    elif kind == "double":
        b = b + b
    elif kind == "join":
        b = b + b"\n" + data.draw(st.sampled_from(files))
    elif kind == "shuffle":
        b = b"\n".join(data.draw(st.permutations(bytes(b).split(b"\n")[:40])))
    elif kind == "numbers":
        b = bytes(b).replace(
            data.draw(st.sampled_from([b"1", b"2", b"5", b"."])),
            data.draw(st.sampled_from([b"", b"-1", b"1e999", b"nan", b"inf", "²".encode(), "٣".encode(), b"9" * 40])),
        )
    elif kind == "drop":
        b = b[:at] + b[at + data.draw(st.integers(1, 80)) :]
    else:
        b = (
            bytes(b)
            .decode("utf-8", "replace")
            .encode(data.draw(st.sampled_from(["utf-16", "utf-16-be", "utf-32", "utf-8-sig", "cp1252", "gb18030"])), "replace")
        )
    try:
        answer = read(bytes(b), "damaged.txt").to_dict()
    except InputError as error:
        assert "\n" not in str(error) and len(str(error)) < 600
    else:
        json.dumps(answer, allow_nan=False)
        assert answer["rows"] and all(r["value"] >= 0 for r in answer["rows"])


EXTREMES = (b"0", b"-0", b"1e308", b"1e-320", b"1e400", b"-5", b"NaN", b"Infinity", b"1" + b"0" * 350, b"999999999999999999")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_extreme_numbers_are_read_or_refused(data):
    """Any figure may be 0, negative, not finite or larger than a float: the answer stays strict JSON, its place under the roof too."""
    text = data.draw(st.sampled_from([d for _, d, _ in samples() + variants()]))
    spots = [m.span() for m in re.finditer(rb"\d+(?:\.\d+)?", text)]
    for start, end in sorted(data.draw(st.lists(st.sampled_from(spots or [(0, 0)]), max_size=6, unique=True)), reverse=True):
        text = text[:start] + data.draw(st.sampled_from(EXTREMES)) + text[end:]
    try:
        reading = read(text, "extreme.txt")
    except InputError:
        return
    json.dumps(reading.to_dict(), allow_nan=False)
    if len(reading.rows) < 8:
        json.dumps(placed(reading, Scenario(model="llama-3.1-8b", hardware="h100-sxm")), allow_nan=False)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=400), st.text(max_size=400).map(str.encode)))
def test_any_bytes_are_read_or_refused(data):
    try:
        read(data)
    except InputError:
        pass
