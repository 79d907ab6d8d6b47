"""site/py/bridge.py on CPython: every method, every kind of error, and its agreement with the page's side of the protocol."""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "site"
sys.path.insert(0, str(SITE / "py"))

import bridge  # noqa: E402

from roofline import gguf  # noqa: E402

LLAMA = json.dumps({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
                    "intermediate_size": 14336, "vocab_size": 128256, "architectures": ["LlamaForCausalLM"]})


def ask(method: str, **params):
    text = bridge.handle(json.dumps({"v": 1, "id": 7, "method": method, "params": params}))
    answer = json.loads(text, parse_constant=lambda c: pytest.fail(f"{c} in JSON"))
    assert answer["id"] == 7
    return answer


def result(method: str, **params):
    answer = ask(method, **params)
    assert answer["ok"], answer["error"]
    return answer["result"]


def test_no_sentence_of_the_page_is_advice_for_the_command_line():
    """What the bridge can reach names fields as a form, Python and the command line all do: "network", never "--network"."""
    import ast

    apart = {"cli", "options", "ceilings", "document", "document_text", "explore_cli", "fit", "validate", "scenario", "view_own"}  # commands, and what writes or rewrites them
    found = []
    for path in sorted((ROOT / "roofline").rglob("*.py")):
        folder = path.relative_to(ROOT / "roofline").parts[0]
        if path.stem in apart or folder in ("measured", "plot", "trace"):
            continue
        tree = ast.parse(path.read_text("utf-8"))
        docs = {id(n.body[0].value) for n in ast.walk(tree) if isinstance(n, (ast.Module, ast.FunctionDef, ast.ClassDef)) and n.body and isinstance(n.body[0], ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs and re.search(r"(^|\s)--[a-z]{2}|`roofline [a-z]+`", node.value):
                found.append(f"{path.name}:{node.lineno}: {node.value[:80]}")
    assert not found


@pytest.mark.parametrize("name", ["hidden_size", "num_attention_heads", "vocab_size", "num_hidden_layers"])
@pytest.mark.parametrize("how", ["left out", "null"])
def test_a_missing_field_is_called_missing(name, how):
    config = json.loads(LLAMA) | {name: None}
    if how == "left out":
        del config[name]
    error = ask("parse_config", text=json.dumps(config))["error"]
    assert error["kind"] == "input" and error["message"].startswith(f"{name} is missing") and "None" not in error["message"]


def test_the_command_and_the_python_ask_the_same_numbers():
    form = {"model": "llama-3.1-8b", "hardware": "custom", "peak": "1.23456789e15", "bandwidth": "3.3333333333 TB/s", "memory": "80.12345678 GB", "batch": "1234567"}
    import shlex

    from roofline.cli import main

    found = result("link", form=form)
    words = shlex.split(found["cli"])
    assert {w for w in words if w.startswith("--")} == {"--model", "--hardware", "--peak", "--bandwidth", "--memory", "--batch"}
    assert "1234567890000000.0" in words and main  # not 1.23457e+15


def test_the_default_question_has_an_answer_with_every_part_of_the_page():
    found = result("evaluate", form=bridge.DEFAULT, full=True)
    assert found["report"]["schema"] == 1
    assert found["fragment"].startswith("s=1&model=llama-3.1-70b")
    # 70.6 GB of FP8 weights and 32 x 8k tokens of a BF16 cache are some 157 GB a step for two chips of 4.8 TB/s: about 16 ms.
    assert 0.0155 < found["report"]["serving"]["tpot_s"] < 0.0175
    assert found["view"]["headline"]["bound"] == "memory"
    assert set(found["chart"]) >= {"range", "roofs", "roof_labels", "phases", "operators"}
    lengths = {name: {len(c) for c in columns.values()} for name, columns in found["chart"].items() if name != "range"}
    assert all(len(sizes) == 1 for sizes in lengths.values()), lengths


@pytest.mark.parametrize("form", [
    {"model": "mixtral-8x7b", "hardware": "h100-sxm", "devices": "2"}, {"model": "llama-3.1-8b", "hardware": "rtx-4090", "weights": "Q4_K_M"},
    {"model": "pasted", "config": LLAMA, "hardware": "custom", "peak": "1 PFLOP/s", "bandwidth": "4 TB/s", "memory": "128 GB"},
    {"model": "llama-3.1-405b", "hardware": "h200-sxm", "devices": "2", "weights": "bf16"}, {"draft": "3", "rate": "1", "chunk": "512"},
])
def test_links_keep_the_question(form):
    first = result("evaluate", form=form, full=True)
    back = result("from_link", fragment=first["fragment"])
    again = result("evaluate", form=back["form"], full=True)
    assert back["notices"] == []
    for report in (first["report"], again["report"]):  # a link carries a config without its spaces
        if "config" in report["scenario"]:
            report["scenario"]["config"] = json.loads(report["scenario"]["config"])
    assert again["report"] == first["report"]
    assert again["fragment"] == first["fragment"]


def test_a_model_that_does_not_fit_keeps_its_work_and_loses_its_times():
    found = result("evaluate", form={"model": "llama-3.1-405b", "hardware": "h200-sxm", "devices": "2", "weights": "bf16"})
    assert found["view"]["headline"]["state"] == "misfit"
    assert found["view"]["memory"]["fits"] is False
    assert any(w["code"] == "memory" for w in found["view"]["warnings"])


@pytest.mark.parametrize(("form", "field"), [
    ({"batch": "0"}, "batch"), ({"batch": "many"}, "batch"), ({"hardware": "h1oo"}, "hardware"), ({"model": "lama"}, "model"), ({"prompt": "8 kB"}, "prompt"),
    ({"weights": "fp7"}, "weights"), ({"hardware": "custom"}, "hardware"), ({"colour": "red"}, "scenario field"),
])
def test_what_the_user_can_fix_names_its_field(form, field):
    error = ask("evaluate", form=form)["error"]
    assert (error["kind"], error["field"]) == ("input", field)
    assert "\n" not in error["message"]


def test_a_pasted_config_is_read_or_explained():
    assert result("parse_config", text=LLAMA)["model"]["detail"].startswith("8.03")
    for text in ("", "{", "[]", '{"model_type": "llama"}', '{"model_type": "nobody-knows"}', "x" * 100):
        error = ask("parse_config", text=text)["error"]
        assert error["kind"] == "input", text


def test_a_saved_answer_is_its_question_again():
    config = json.dumps({"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 2048, "vocab_size": 1000})
    for form in (bridge.DEFAULT, {"model": "pasted", "config": config, "hardware": "rtx-4090", "batch": "3"}, bridge.DEFAULT | {"hardware": "custom", "peak": "1e15", "bandwidth": "4e12", "memory": "1e11", "link": "4e11"}):
        saved = result("export", form=form)["json"]
        again = result("parse_config", text=saved)["form"]
        assert result("evaluate", form=again)["fragment"] == result("evaluate", form=form)["fragment"]
    assert ask("parse_config", text='{"schema": 2, "scenario": {}}')["error"]["kind"] == "input"


def test_refusals_are_answers_too():
    assert ask("nonsense")["error"]["field"] == "method"
    assert json.loads(bridge.handle('{"v": 2, "id": 1, "method": "ping"}'))["error"]["field"] == "protocol"
    assert json.loads(bridge.handle("not json"))["ok"] is False
    assert json.loads(bridge.handle('{"v":1,"id":1,"method":"ping","params":{"x":"' + "y" * bridge.MAX_REQUEST + '"}}'))["error"]["kind"] == "input"


@pytest.mark.parametrize("axis", bridge.SWEEPS)
def test_sweeps_pass_through_the_scenario(axis):
    rows = result("sweep", form=bridge.DEFAULT, axis=axis)["rows"]
    assert [r["x"] for r in rows] == sorted(r["x"] for r in rows)
    assert sum(r["here"] for r in rows) == 1
    if axis == "batch":  # more requests at once never make the total smaller, nor a user faster
        fitting = [r for r in rows if r["fits"]]
        assert all(b["total"] >= a["total"] and b["user"] <= a["user"] for a, b in zip(fitting, fitting[1:]))


def test_levers_layouts_compare_and_workings_are_text():
    for method, params in (("levers", {"form": bridge.DEFAULT}), ("layouts", {"form": bridge.DEFAULT}), ("compare", {"a": bridge.DEFAULT, "b": bridge.DEFAULT | {"kv": "fp8"}})):
        assert result(method, **params)
    for key in bridge.working.KEYS:
        steps = result("explain", form=bridge.DEFAULT, key=key)["steps"]
        assert steps and all(isinstance(v, str) for s in steps for v in s["values"].values())


def test_every_word_the_page_needs_is_there_in_both_languages():
    english, chinese = (json.loads((SITE / "i18n" / f"{name}.json").read_text("utf-8")) for name in ("en", "zh"))
    assert set(english) == set(chinese)
    holes = lambda text: set(re.findall(r"\{(\w+)\}", text))
    for key in english:
        assert holes(english[key]) == holes(chinese[key]), key
    used = set()
    for path in (*(SITE / "js").glob("*.mjs"), SITE / "index.html"):
        text = path.read_text("utf-8")
        used |= set(re.findall(r"""\b(?:t|rich)\(\s*"([^"]+)"[,)]""", text)) | set(re.findall(r'data-t(?:-label|-title)?="([^"]+)"', text))
    later = set(json.loads((SITE / "i18n" / "views-en.json").read_text("utf-8")))  # of what is loaded on demand, such as the workings
    assert not used - set(english) - {key for key in later if key.startswith("explain.")}
    keys = set(english) | later
    script = (SITE / "js" / "views" / "working.mjs").read_text("utf-8")
    titles = dict((a or b, c) for a, b, c in re.findall(r"""(?:"([\w.]+)"|\b(\w+)): "([\w.]+)\"""", script[script.index("const TITLES"): script.index("});")]))
    for key in bridge.working.KEYS:  # a name of its own, that of a row of a view, or that of what it is a part of
        assert titles.get(key, f"figure.{key}") in keys or f"figure.{key.split('.')[0]}" in keys, key
    assert set(titles) <= set(bridge.working.KEYS)
    fields = re.findall(r'name: "(\w+)"', (SITE / "js" / "fields.mjs").read_text("utf-8"))
    assert {f"field.{f}" for f in fields} <= keys
    for form in (bridge.DEFAULT, {"model": "deepseek-v3", "hardware": "h200-sxm", "devices": "8", "draft": "2"}, {"model": "llama-3.1-405b", "hardware": "rtx-4090"}):
        for key in bridge.working.KEYS:
            assert {f"explain.{s['key']}" for s in result("explain", form=form, key=key)["steps"]} <= keys


def test_chinese_is_chinese():
    english, chinese = (json.loads((SITE / "i18n" / f"{name}.json").read_text("utf-8")) for name in ("en", "zh"))
    same = [k for k in english if english[k] == chinese[k] and re.search(r"[a-z]{4,}", english[k])]
    assert len(same) < 8, same


def test_both_sides_of_the_protocol_agree():
    text = (SITE / "js" / "protocol.mjs").read_text("utf-8")
    methods = re.search(r"METHODS = .*?\(\[(.*?)\]\)", text, re.S)[1]
    assert set(re.findall(r'"(\w+)"', methods)) == set(bridge.METHODS)
    assert int(re.search(r"PROTOCOL = (\d+)", text)[1]) == bridge.PROTOCOL


def test_ids_that_the_scripts_look_up_exist():
    html = (SITE / "index.html").read_text("utf-8")
    scripts = "\n".join(p.read_text("utf-8") for p in (SITE / "js").glob("*.mjs"))
    looked_up = set(re.findall(r'\$\("([\w-]+)"\)', scripts))
    made = set(re.findall(r'\bid="([\w-]+)"', html)) | set(re.findall(r'\bid: "([\w-]+)"', scripts)) | set(re.findall(r'field\("([\w-]+)"', scripts))
    made |= {f"fold-{name}" for name in re.findall(r'id: "(\w+)", fold: true', scripts)}
    assert not looked_up - made


def test_every_example_has_an_answer():
    text = (SITE / "js" / "presets.mjs").read_text("utf-8")
    forms = re.findall(r"form: (\{.*?\})", text)
    assert len(forms) >= 6
    for form in forms:
        form = json.loads(re.sub(r"(\w+):", r'"\1":', form))
        found = result("evaluate", form=form)
        assert found["view"]["headline"]["state"] == "ok", form


def test_script_files_stay_small_and_safe():
    for path in (SITE / "js").glob("*.*js"):
        text = path.read_text("utf-8")
        assert len(text.splitlines()) < 250, path.name
        assert "innerHTML" not in text and "eval(" not in text, path.name
        if path.suffix == ".mjs":
            assert text.startswith("// @ts-check"), path.name


def test_warming_touches_no_bug():
    bridge.warm()


def test_a_gguf_file_is_read_step_by_step():
    from test_gguf import LLAMA, header

    data = header(*LLAMA)
    first, whole = (base64.b64encode(d).decode() for d in (data[:2000], data))
    assert result("read_gguf", data=first) == {"more": True}
    assert "cut short" in ask("read_gguf", data=first, last=True)["error"]["message"]
    read = result("read_gguf", data=whole, last=True, name="x.gguf")
    assert read["title"] == "test" and read["model"]["detail"].startswith("8.03") and read["notes"] == []
    form = {"model": "pasted", "config": read["config"], "hardware": "rtx-4090"}
    assert json.loads(result("export", form=form)["json"])["memory"]["weights_bytes"] == gguf.read_header(data).tensor_bytes


@pytest.mark.parametrize("params", [{}, {"data": 7}, {"data": "@@@@"}, {"data": "R0dVRg=="}, {"data": "A" * 45_000_000}, {"data": "R0dVRgMAAAD//////////wAAAAAAAAAA"}, {"data": "R0dVRgMAAAAAAAAAAAAAABAAAAAAAAAA", "last": True}])
def test_a_hostile_gguf_file_is_refused_in_one_sentence(params):
    error = ask("read_gguf", **params)["error"]
    assert error["kind"] == "input" and "\n" not in error["message"] and len(error["message"]) < 400


def test_an_index_is_compared_with_the_forms_model():
    index = {"metadata": {"total_size": 16_060_522_496}, "weight_map": {"model.layers.31.x": "a"}}
    found = result("parse_config", text=json.dumps(index), form={"model": "llama-3.1-8b", "hardware": "h100-sxm"})["index"]
    assert found["agrees"] and found["text"].endswith("to the byte.")
    for bad in ('{"weight_map": [', '{"weight_map": {"a": 1}}', '{"weight_map": {}}', '{"metadata": {"total_size": 1e400}, "weight_map": {"a": "b"}}', '{"weight_map": ' + "[" * 50_000):
        assert ask("parse_config", text=bad, form={})["error"]["kind"] == "input"
