"""The only Python the page calls: `handle(request_json) -> response_json`, strings both ways.

request: {"v": 1, "id": n, "method": name, "params": {...}}; response: {"id": n, "ok": true, "result": ...} or
{"id": n, "ok": false, "error": {"kind": "input" | "bug", "field", "message"}}. Ordinary Python: the tests call it on CPython.
The page's form is a flat object of a Scenario's field names with the text typed in ("8k"), only what differs from the default.
"""

from __future__ import annotations

import binascii
import json
import traceback
from functools import lru_cache
from importlib.util import find_spec

import roofline
from roofline import catalogue, chart_data, checkpoint_index, formats, gguf, gguf_config, hardware, levers, view, view_learn, view_levers, view_own, view_serving
from roofline import explain as working
from roofline.errors import InputError
from roofline.model import kv_bytes_per_token, parameters
from roofline.nesting import too_deep
from roofline.report import evaluate
from roofline.scenario import Scenario, fragment_values, resolve
from roofline.units import format_number, format_quantity, parse_quantity

PROTOCOL = 1
DEFAULT = {"model": "llama-3.1-70b", "hardware": "h200-sxm", "devices": "2", "weights": "fp8", "batch": "32", "prompt": "8k", "output": "512"}
# Found when this is imported: after a snapshot is restored there are no files to look for.
FEATURES = tuple(name for name in ("explore", "measured") if find_spec(f"roofline.{name}"))
MAX_REQUEST = 50_000_000  # characters: the index of the largest models; what a method reads has its own, smaller limit


MAX_GGUF = 32 * 2**20  # bytes of a file's beginning; a header is 1 to 24 MB, most of it the tokenizer's words


def handle(request_json: str) -> str:
    """Answer one request; never raises."""
    number = None
    try:
        if len(request_json) > MAX_REQUEST:
            raise InputError("request", f"{len(request_json):,} characters", f"must be at most {MAX_REQUEST:,}")
        request = json.loads(request_json)
        number = request.get("id")
        if request.get("v") != PROTOCOL:
            raise InputError("protocol", request.get("v"), f"must be {PROTOCOL}: the page is of another build, reload it")
        method = METHODS.get(request.get("method"))
        if not method:
            raise InputError("method", request.get("method"), f"must be one of {', '.join(METHODS)}")
        return _dump({"id": number, "ok": True, "result": method(request.get("params") or {})})
    except InputError as error:
        return _dump({"id": number, "ok": False, "error": {"kind": "input", "field": error.field, "message": str(error)}})
    except Exception as error:  # a bug: said as one, with its traceback for a report
        text = traceback.format_exc()[-4000:]
        return _dump({"id": number, "ok": False, "error": {"kind": "bug", "field": None, "message": f"{type(error).__name__}: {error}"[:500], "traceback": text}})


def _dump(value) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def scenario_of(form: dict) -> Scenario:
    """The form's Scenario; a catalogue model is named, a pasted config takes its place."""
    if not isinstance(form, dict):
        raise InputError("form", type(form).__name__, "must be an object")
    return Scenario.from_dict({k: v for k, v in form.items() if v not in ("", None)})


def form_of(scenario: Scenario) -> dict:
    """The form that shows a Scenario: its fields as text."""
    form = {}
    for key, value in scenario.to_dict().items():
        form[key] = str(value).lower() if isinstance(value, bool) else f"{value:.12g}" if isinstance(value, float) else str(value)
    return form


def _evaluate(params: dict) -> dict:
    """{form} -> {chart, view, fragment}, and with full: true the report too (the page needs only what it shows)."""
    scenario = scenario_of(params.get("form", {}))
    report = evaluate(scenario).to_dict()
    chart = chart_data.roofline_sources(report)
    shown = {"chart": chart, "view": view.view(report) | {"finding": chart.pop("finding")}, "fragment": scenario.to_fragment()}
    return shown | ({"report": report} if params.get("full") else {})


def _parse_config(params: dict) -> dict:
    """{text, read_as, form} -> what was read from a pasted config.json; or {form} of a saved answer (a Report's JSON); or {index}: how
    the form's model compares with a model.safetensors.index.json."""
    text = params.get("text", "")
    if not isinstance(text, str) or not text.strip():
        raise InputError("config", "", "is empty; paste the text of a model's config.json")
    if checkpoint_index.looks_like_index(text):
        index = checkpoint_index.read_index(text)
        return {"index": checkpoint_index.finding(resolve(scenario_of(params.get("form", {}))).arch, index)}
    saved = _saved_scenario(text)
    if saved is not None:
        resolve(saved)  # so that a scenario that cannot be is refused here, where it was opened
        return {"form": form_of(saved)}
    scenario = Scenario(model=params.get("name") or "pasted", config=text, read_as=params.get("read_as", ""))
    return {"config": text, "model": model_row(resolve(scenario).arch)}


def _read_gguf(params: dict) -> dict:
    """{data, last, name}: the first bytes of a .gguf file in base64 -> {more: true} while its header goes on, else {config, model, title, notes}."""
    data = params.get("data", "")
    if not isinstance(data, str) or len(data) > MAX_GGUF * 4 // 3 + 4:
        raise InputError("gguf", "a file", f"must be given as at most {MAX_GGUF:,} bytes in base64")
    try:
        header = gguf.read_header(binascii.a2b_base64(data, strict_mode=True))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError("gguf", "a file", "must be given in base64") from None
    if not header.complete:
        if params.get("last"):
            raise InputError("gguf", f"a file whose first {len(data) * 3 // 4:,} bytes", "end inside its header; the file is cut short")
        return {"more": True}
    config, arch = gguf_config.of_header(header, id="pasted config")
    name = header.metadata.get("general.name")
    title = name if isinstance(name, str) and name.strip() else str(params.get("name", "")).removesuffix(".gguf")
    return {"config": _dump(config), "model": model_row(arch), "title": title[:80], "notes": list(arch.notes)}


def _saved_scenario(text: str) -> Scenario | None:
    """The Scenario inside a Report's JSON, or None if the text is something else."""
    if '"scenario"' not in text or too_deep(text):
        return None
    try:
        report = json.loads(text)
    except ValueError:
        return None
    if not isinstance(report, dict) or "schema" not in report or not isinstance(report.get("scenario"), dict):
        return None
    if report["schema"] != 1:
        raise InputError("schema", report["schema"], "must be 1; the file is of another version")
    return Scenario.from_dict({k: v for k, v in report["scenario"].items() if k != "resolved"})  # what was left open then is left open again


def model_row(arch) -> dict:
    """A model as the page lists it."""
    counts = parameters(arch)
    detail = view.count(counts["total"])
    if counts["active"] < 0.95 * counts["total"] and arch.is_moe:
        detail += f" · {view.count(counts['active'])} active"
    return {"id": arch.id, "name": arch.name or arch.id, "family": arch.family, "detail": detail, "total": counts["total"],
            "kv": format_quantity(kv_bytes_per_token(arch), "B"), "layers": arch.layer_count}


def chip_row(id: str) -> dict:
    """A chip as the page lists it."""
    chip = hardware.load(id)
    memory = "" if chip.memory_bytes is None else format_quantity(chip.memory_bytes, "B") + " · "
    return {"id": id, "name": chip.name, "vendor": chip.vendor, "kind": chip.kind, "detail": memory + format_quantity(chip.bandwidth_bytes_per_s, "B/s"),
            "domain": chip.domain, "peaks": [k for k, _ in chip.peaks]}


# What the page's lists offer; any other name that formats.parse knows may stand in a link or on the command line.
WEIGHTS = {"Plain": ("bf16", "fp16", "fp32"), "8 bits": ("fp8", "fp8-block", "int8", "mxfp8"), "4 bits": ("int4-g128", "awq", "gptq", "nf4", "mxfp4", "nvfp4"),
           "GGUF": ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0", "IQ4_XS", "Q3_K_M", "IQ3_XXS", "Q2_K", "IQ2_XXS", "IQ1_S"), "MLX": ("mlx-8bit", "mlx-6bit", "mlx-4bit")}
KV = {"": ("bf16", "fp16", "fp8", "int8", "q8_0", "int4", "q4_0")}
ACTIVATIONS = {"": ("bf16", "fp16", "fp8", "int8", "nvfp4", "fp32")}
ENGINES = ("any", "vllm", "sglang", "tensorrt-llm", "llama.cpp", "none")


def _choices(groups: dict, field: str) -> list:
    rows = [{"id": "", "label": "auto", "group": ""}]
    for group, names in groups.items():
        for name in names:
            bits = formats.parse(name, field).bits_per_weight
            label = name if name[0].isupper() else name.upper()
            rows.append({"id": name, "label": f"{label} · {format_number(bits)} bits" if group else label, "group": group})
    return rows


@lru_cache(maxsize=1)
def _catalogue_once() -> dict:
    models = [model_row(catalogue.load(e.id)) | {"id": e.id, "name": e.name, "group": (e.hub or e.id).split("/")[0]} for e in catalogue.entries()]
    models.sort(key=lambda m: (m["group"].lower(), m["total"], m["name"]))
    return {
        "models": models, "chips": sorted((chip_row(id) for id in hardware.ids()), key=lambda c: (VENDORS.get(c["vendor"], 9), c["vendor"])),
        "choices": {"weights": _choices(WEIGHTS, "weights"), "kv": _choices(KV, "kv"), "activations": _choices(ACTIVATIONS, "activations"),
                    "engines": [{"id": e, "label": e, "group": ""} for e in ENGINES]},
        "default": DEFAULT, "features": list(FEATURES), "version": roofline.__version__,
    }


VENDORS = {"NVIDIA": 0, "AMD": 1, "Google": 2, "Apple": 3, "Intel": 4}


def _catalogue(_params: dict) -> dict:
    return _catalogue_once()


def _explain(params: dict) -> dict:
    """{form, key, basis, than, how} -> the working of one figure, and what the form changes of `than`; how: beside that one's figure too."""
    key, basis, how = params.get("key"), params.get("basis") or "", params.get("how") or ""
    if not working.known(key):
        raise InputError("figure", key, f"must be one of {', '.join(working.KEYS)}")
    if basis not in working.BASES or how not in ("", "gain", "ratio"):
        raise InputError("basis", basis or how, "must be limit or expected, beside a gain or a ratio")
    r = resolve(scenario_of(params.get("form", {})))
    try:
        than = resolve(scenario_of(params["than"])) if params.get("than") else None
    except InputError:
        if how:
            raise
        than = None  # the form has gone on to a question that cannot be: what differs from it is not said
    found = working.explain(evaluate(r).to_dict(), key, r, basis, (evaluate(than).to_dict(), than) if how and than else None, how if than else "")
    return found | {"differs": working.differs(r, than) if than else []}


def _levers(params: dict) -> dict:
    """{form, goal} -> every lever tried, best first, and where the answer flips; with chart, arrows under the roof and what is in use."""
    if params.get("chart"):
        return view_levers.shown(scenario_of(params.get("form", {})), params.get("goal", "tpot"))
    return view.levers(levers.levers(scenario_of(params.get("form", {})), params.get("goal", "tpot")))


def _layouts(params: dict) -> dict:
    """{form, goal} -> the legal layouts of the scenario's chips, best first."""
    return view.layouts(levers.layouts(scenario_of(params.get("form", {})), params.get("goal", "throughput")))


def _compare(params: dict) -> dict:
    """{a, b}: two forms -> their figures side by side."""
    return view.compare(levers.compare(scenario_of(params.get("a", {})), scenario_of(params.get("b", {}))))


def _link(params: dict) -> dict:
    """{form} -> the same question as a link's fragment, a command and Python."""
    scenario = scenario_of(params.get("form", {}))
    fields = ", ".join(f"{k}={v!r}" for k, v in scenario.to_dict().items())
    python = f"from roofline.scenario import Scenario\nfrom roofline.report import evaluate\n\nprint(evaluate(Scenario({fields})).to_json(indent=1))"
    return {"fragment": scenario.to_fragment(), "cli": scenario.to_cli(), "python": python}


def _from_link(params: dict) -> dict:
    """{fragment} -> {form, notices}; with as_written, a value that cannot be stands in the form, to be refused at its field."""
    values, notices = fragment_values(str(params.get("fragment", "")))
    try:
        form = form_of(Scenario.from_dict(values))
    except InputError:
        if not params.get("as_written"):
            raise
        form = {name: value for name, value in values.items() if value != ""}
    return {"form": form, "notices": list(notices)}


def _sweep(params: dict) -> dict:
    """{form, axis} -> one row a point: what happens as batch, prompt or the number of chips grows."""
    axis = params.get("axis", "batch")
    if axis not in SWEEPS:
        raise InputError("axis", axis, f"must be one of {', '.join(SWEEPS)}")
    base = scenario_of(params.get("form", {}))
    here = {"batch": base.batch, "prompt": base.prompt, "devices": resolve(base).layout.devices}[axis]
    rows = []
    for x in sorted({*SWEEPS[axis], here}):
        changes = {axis: x} if axis != "devices" else {"devices": x, "tp": None, "dp": None}
        if axis == "prompt" and x <= base.cached:
            continue
        try:
            report = evaluate(base.replace(**changes)).to_dict()
        except InputError as error:
            rows.append({"x": x, "here": x == here, "fits": False, "label": view.whole(x), "why": str(error)})
            continue
        serving, decode, prefill = report["serving"], report["decode"], report["prefill"]
        fits = serving["tpot_s"] is not None
        point = chart_data.roofline_columns(report)["phases"] if params.get("trail") else None
        rows.append({
            "x": x, "here": x == here, "fits": fits, "label": view.whole(x), "user": serving["tokens_per_s_per_user"], "total": serving["tokens_per_s"],
            "ttft": serving["ttft_s"], "bound": view.told(decode) if fits else "misfit", "prefill_bound": view.told(prefill) if fits else "misfit",
            "text": {"user": format_number(serving["tokens_per_s_per_user"]), "total": format_number(serving["tokens_per_s"]),
                     "ttft": format_quantity(serving["ttft_s"], "s"), "tpot": format_quantity(serving["tpot_s"], "s"),
                     "utilisation": view.percent(decode["compute_utilisation"]), "memory": format_quantity(report["memory"]["total_bytes"], "B")},
            **({"point": dict(zip(point["name"], zip(point["x"], point["y"])))} if point else {}),
        })
    return {"axis": axis, "rows": rows}


SWEEPS = {
    "batch": [2**n for n in range(0, 13)],
    "prompt": [128 * 2**n for n in range(0, 14)],
    "devices": [1, 2, 4, 8, 16, 32, 64],
}


def _export(params: dict) -> dict:
    """{form} -> the Report as indented JSON, and its operators as CSV."""
    report = evaluate(scenario_of(params.get("form", {})))
    names = ("phase", "name", "group", "count", "flops", "bytes", "intensity_flops_per_byte", "bound", "limit_s", "share")
    lines = [",".join(names)]
    for phase in ("prefill", "decode"):
        part = report.to_dict()[phase]
        lines += [",".join("" if v is None else str(v) for v in (phase, *(op[n] for n in names[1:]))) for op in (part or {"operators": []})["operators"]]
    return {"json": report.to_json(indent=1), "csv": "\n".join(lines) + "\n"}


def _ping(_params: dict) -> dict:
    return {"version": roofline.__version__, "protocol": PROTOCOL}


def _explore(params: dict) -> dict:
    if "explore" not in FEATURES:
        raise InputError("explore", "", "is not in this build")
    from roofline import explore, view_explore  # they need NumPy, which the worker loads first

    form, fields = params.get("form") or {}, params.get("fields") or {}
    match params.get("do"):
        case "step":
            return view_explore.step(scenario_of(form), fields, int(params.get("cell") or 0))
        case "open":
            return {"form": form_of(view_explore.opened(scenario_of(form), fields, params.get("at")))}
        case "csv":
            return {"csv": view_explore.csv(scenario_of(form), fields, int(params.get("cell") or 0))}
        case "tornado":
            return view_explore.tornado(form, params.get("objective") or "cost", params.get("step") or 0.2)
        case "fleet":
            return view_explore.fleet(form, fields, params.get("given") or {})
        case "capability":
            return view_explore.capability(scenario_of(form))
        case "mixes":
            return {"mixes": view_explore.mixes()}
    return explore.explore_request(params)


def _learn(params: dict) -> dict:
    """{form or link, knob} -> {numbers: what a lesson's texts name, of that question; labels: of the knob's values; on: with both, whether the form is the lesson's}."""
    knob, form = params.get("knob") or {}, params.get("form")
    own = Scenario.from_fragment(str(params["link"]))[0] if "link" in params else None
    on = own is not None and form is not None and view_learn.same(own, scenario_of(form), knob)
    return {"numbers": view_learn.numbers(own if own is not None and not on else scenario_of(form or {})), "labels": view_learn.labels(knob), "on": on}


def _serving(params: dict) -> dict:
    """{form, part} -> what a part of the Serving view shows."""
    return view_serving.serving(scenario_of(params.get("form", {})), params.get("part", "load"))


def _queue(params: dict) -> dict:
    """{form, start} -> some points of the curve of waits against arrivals."""
    start = params.get("start", 0)
    if not isinstance(start, int) or not 0 <= start < len(view_serving.SHARES):
        raise InputError("start", start, f"must be a whole number below {len(view_serving.SHARES)}")
    return view_serving.queue(scenario_of(params.get("form", {})), start)


def _place(params: dict) -> dict:
    """{form, text, name, in_flight} or {form, metric, value} -> a benchmark's output, or one number, under the roof. Its readers are not in the snapshot."""
    if "measured" not in FEATURES:
        raise InputError("measured", "", "is not in this build")
    scenario = scenario_of(params.get("form", {}))
    if "metric" in params:
        return view_own.place_number(str(params["metric"]), params.get("value", ""), scenario)
    flight = params.get("in_flight") or None
    return view_own.place_text(str(params.get("text", "")), str(params.get("name", "")), scenario, None if flight is None else parse_quantity(flight, "count", field="requests in flight", low=1, high=1e6, whole=True))


METHODS = {
    "evaluate": _evaluate, "catalogue": _catalogue, "parse_config": _parse_config, "read_gguf": _read_gguf, "link": _link, "from_link": _from_link,
    "sweep": _sweep, "levers": _levers, "layouts": _layouts, "compare": _compare, "explain": _explain, "explore": _explore, "export": _export, "learn": _learn, "serving": _serving, "queue": _queue, "place": _place, "ping": _ping,
}


def warm() -> None:
    """Touch all that a call may import or read, before the memory snapshot is taken: after a restore there are no files."""
    form = dict(DEFAULT)
    # The list of models is in the page already, so it is not made here: an Architecture of each would be a third of a megabyte.
    for model in ("mixtral-8x7b", "deepseek-v3", "gpt-oss-20b"):
        catalogue.load(model)
    for chip in hardware.ids():
        hardware.load(chip)
    config = '{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256}'
    calls = [("evaluate", {"form": form}), ("evaluate", {"form": form | {"weights": "q4_k_m"}}), ("evaluate", {"form": form | {"hardware": "h1oo"}}),
             ("evaluate", {"form": {"model": "pasted", "config": config, "hardware": "rtx-4090"}}), ("parse_config", {"text": config}), ("parse_config", {"text": "{"}),
             ("parse_config", {"text": '{"metadata": {"total_size": 1}, "weight_map": {"a": "b"}}', "form": form}), ("read_gguf", {"data": "R0dVRg=="}),
             ("evaluate", {"form": {"model": "pasted", "config": config[:-1] + ',"quantization_config":{"quant_method":"gguf","preset":"Q4_0","bytes":{"mlp":1},"types":{"mlp":"q4_0"}}}', "hardware": "rtx-4090"}}),
             ("link", {"form": form}), ("from_link", {"fragment": Scenario(model="pasted", config=config).to_fragment()}), ("sweep", {"form": form}),
             ("sweep", {"form": form, "axis": "devices", "trail": True}), ("levers", {"form": form}), ("levers", {"form": form, "chart": True}), ("layouts", {"form": form}), ("compare", {"a": form, "b": form | {"batch": "64"}}),
             ("evaluate", {"form": form | {"draft": "3", "rate": "1", "chunk": "512", "prefill_hardware": "h100-sxm"}}),
             ("learn", {"form": form, "knob": {"field": "hardware", "values": ["h100-sxm"]}}), *(("serving", {"form": form | {"model": "deepseek-v3", "draft": "2", "rate": "1", "chunk": "512", "prefill_hardware": "h100-sxm"}, "part": part}) for part in view_serving.PARTS), ("queue", {"form": form}), ("export", {"form": form}), ("ping", {}), *(("explain", {"form": form | {"rate": "1", "chunk": "512", "draft": "2", "prefill_hardware": "h100-sxm"}, "key": key, "than": form}) for key in (*working.KEYS, "op.decode.0", "group.decode.mlp")), ("explain", {"form": form | {"batch": "8"}, "key": "bill", "than": form, "how": "gain"}), ("nonsense", {})]
    for method, params in calls:
        answer = json.loads(handle(_dump({"v": PROTOCOL, "id": 0, "method": method, "params": params})))
        if not answer["ok"] and answer["error"]["kind"] == "bug":
            raise RuntimeError(f"{method} {params}: {answer['error']['traceback']}")
