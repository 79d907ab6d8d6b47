"""The Serving view of the page: queue, speculation, mixed steps, pools, the engine's memory, money, energy and turning points, written out."""

from __future__ import annotations

from .errors import InputError
from .flips import flip_points, roofs_for
from .report import evaluate
from .roof import ridge
from .scenario import Resolved, Scenario, resolve
from .units import format_number, format_quantity
from .view import bytes_, percent, seconds, times

RATES = ("tokens_per_s_per_user", "tokens_per_s", "tokens_per_s_per_device", "requests_per_s")
PRICES = (
    "usd_per_million_input_tokens",
    "usd_per_million_cached_input_tokens",
    "usd_per_million_output_tokens",
    "usd_per_million_output_tokens_all_in",
)
# Shares of the rate a deployment can take at which the queue's curve is drawn.
SHARES = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
POINTS = 4  # rates worked out in one call, so that an edit never waits long


def serving(scenario: Scenario, part: str = "load") -> dict:
    """What one part of the view (one of PARTS) shows of a scenario; what the scenario has not is None.

    >>> found = serving(Scenario(draft=3))
    >>> found["speculation"]["tokens"], found["arrivals"], found["mixed"]
    ('2.53', None, None)
    """
    if part not in PARTS:
        raise InputError("part", part, f"must be one of {', '.join(PARTS)}")
    r = resolve(scenario)
    return {"part": part, **PARTS[part](r)}


def _load(r: Resolved) -> dict:
    report = evaluate(r).to_dict()
    return {
        "timed": report["serving"]["tpot_s"] is not None,
        "figures": figures(report),
        "speculation": speculation(r, report),
        "mixed": mixed(report),
        "arrivals": arrivals(report),
        "pools": pools(report),
    }


def _money(r: Resolved) -> dict:
    report = evaluate(r).to_dict()
    return {"money": money(report), "energy": energy(report)}


PARTS = {
    "load": _load,
    "memory": lambda r: {"reserve": reserve(evaluate(r).to_dict())},
    "money": _money,
    "experts": lambda r: {"experts": experts(r, flip_points(r))},
    "turns": lambda r: {"flips": turning_points(flip_points(r))},
}


def number(value, digits: int = 3) -> str:
    """A plain number, or a dash where there is none."""
    return "–" if value is None else format_number(value, digits)


def whole(value) -> str:
    """A count with its thousands grouped, or a dash.

    >>> whole(12345), whole(None)
    ('12,345', '–')
    """
    return "–" if value is None else f"{value:,.0f}"


def dollars(value) -> str:
    """US dollars with three significant figures, or a dash."""
    return "–" if value is None else f"${format_number(value)}"


def joules(value) -> str:
    """An energy, down to microjoules.

    >>> joules(1.583), joules(0.0912), joules(1.2e-6), joules(None)
    ('1.58\u2009J', '91.2\u2009mJ', '1.20\u2009µJ', '–')
    """
    if not value or value >= 1:
        return format_quantity(value, "J")
    scale, unit = (1e3, "mJ") if value >= 1e-3 else (1e6, "µJ")
    return f"{format_number(value * scale)}\u2009{unit}"


def figures(report: dict) -> list:
    """The six figures of serving at the limit and, where measurements allow, as expected."""
    s, write = report["serving"], {"ttft_s": seconds, "tpot_s": seconds}
    return [
        {"key": key, "limit": write.get(key, number)(s[key]), "expected": write.get(key, number)(s["expected_" + key])}
        for key in ("ttft_s", "tpot_s", *RATES)
    ]


def speculation(r: Resolved, report: dict) -> dict | None:
    """What drafting brings here and at other batches; None without drafts."""
    found = report["serving"]["speculation"]
    if not found:
        return None
    return {
        "rows": _speedups(r),
        "tokens": number(found["tokens_per_step"]),
        "draft": seconds(found["draft_s"]),
        "verify": seconds(found["verify_s"]),
        "plain": seconds(found["plain_tpot_s"]),
        "tpot": seconds(report["serving"]["tpot_s"]),
        "speedup": times(found["speedup"]),
        "pays": found["speedup"] > 1,
        "acceptance": percent(r.scenario.acceptance),
        "fed": whole(r.scenario.draft + 1),
        "expected": None
        if found["expected_speedup"] is None
        else {
            "speedup": times(found["expected_speedup"]),
            "pays": found["expected_speedup"] > 1,
            "draft": seconds(found["expected_draft_s"]),
            "verify": seconds(found["expected_verify_s"]),
            "plain": seconds(found["expected_plain_tpot_s"]),
            "tpot": seconds(report["serving"]["expected_tpot_s"]),
        },
    }


def _speedups(r: Resolved) -> list:
    """Speed with drafts over without, at batches of powers of two that fit: it may rise and fall more than once where experts are read."""
    rows, here = [], r.scenario.batch
    for batch in sorted({*(2**i for i in range(13)), here}):
        found = evaluate(r.scenario.replace(batch=batch, rate=None, chunk=0)).serving["speculation"]
        if found is None:
            break
        rows.append(
            {
                "batch": whole(batch),
                "speedup": times(found["speedup"]),
                "pays": found["speedup"] > 1,
                "expected": times(found["expected_speedup"]),
                "expected_pays": (found["expected_speedup"] or 0) > 1,
                "here": batch == here,
            }
        )
    return rows


def _range(flips: dict) -> dict:
    """The batches between which speculation pays: state is always, from, until, between or never."""
    first, last = flips["speculation_pays_from_batch"], flips["speculation_stops_paying_batch"]
    state = (
        "never"
        if first is None
        else ("always" if last is None else "until")
        if first <= 1
        else "from"
        if last is None
        else "between"
    )
    return {"state": state, "first": whole(first), "last": whole(last)}


def mixed(report: dict) -> dict | None:
    """A step that carries a chunk of a prompt beside the decodes; None without chunked prefill."""
    m = report["serving"]["mixed_step"]
    if not m:
        return None
    return {
        "chunk": whole(m["chunk"]),
        "bound": m["bound"],
        "steps": whole(m["steps_per_prompt"]),
        "rows": [
            {"key": key, "value": seconds(m[field])}
            for key, field in (
                ("chunk", "chunk_only_step_s"),
                ("decode", "decode_only_step_s"),
                ("step", "step_s"),
                ("saved", "saved_s"),
                ("ttft", "ttft_s"),
            )
        ],
    }


def arrivals(report: dict) -> dict | None:
    """What random arrivals make of the service (an estimate), at the limits and as expected; None without a rate."""
    a = report["serving"]["arrivals"]
    if not a:
        return None
    likely = _likely(a)
    parts = {
        "stable": likely["stable"],
        "rate": number(a["rate_per_s"]),
        "capacity": number(likely["capacity_per_s"]),
        "share": percent(a["rate_per_s"] / likely["capacity_per_s"]),
    }
    if not likely["stable"]:
        return parts
    rows = [
        ("mean", "ttft_mean_s"),
        ("p50", "ttft_p50_s"),
        ("p90", "ttft_p90_s"),
        ("p99", "ttft_p99_s"),
        ("tpot", "tpot_s"),
        ("e2e", "e2e_mean_s"),
    ]
    return parts | {
        "utilisation": percent(likely["utilisation"]),
        "prefill_share": percent(likely["prefill_share"]),
        "batch": number(likely["batch"]),
        "rows": [
            {"key": key, "limit": seconds(a[field]), "expected": seconds((a["expected"] or {}).get(field))}
            for key, field in rows
        ],
    }


def _likely(a: dict) -> dict:
    """The estimate to show where there is room for one: the expected one, else the one at the limits."""
    return a["expected"] or a


def queue(scenario: Scenario, start: int = 0) -> dict:
    """Some points of the curve of TTFT and TPOT against arrivals, from SHARES[start] on: {"rows", "next": where to go on, or None}.

    Expected where there is an expectation, else at the limits. Each row is {x [requests/s], here, p50, p90, p99, tpot [s], text}; the scenario's own rate, if it can be kept, is among them.
    """
    base = scenario.replace(rate=None, prefill_hardware="")
    plain = evaluate(base.replace(rate=1e-6)).serving["arrivals"]
    if not plain:
        return {"rows": [], "next": None, "capacity": "–"}
    capacity, rows = _likely(plain)["capacity_per_s"], []
    own = scenario.rate if scenario.rate and scenario.rate < capacity else None
    for share in SHARES[start : start + POINTS]:
        rows.append(_point(base, share * capacity, False))
    if own and start == 0:
        rows.append(_point(base, own, True))
    more = start + POINTS
    return {"rows": [row for row in rows if row], "next": more if more < len(SHARES) else None, "capacity": number(capacity)}


def _point(base: Scenario, rate: float, here: bool) -> dict | None:
    a = _likely(evaluate(base.replace(rate=rate)).serving["arrivals"])
    if not a["stable"]:
        return None
    names = {"p50": "ttft_p50_s", "p90": "ttft_p90_s", "p99": "ttft_p99_s", "tpot": "tpot_s"}
    return {
        "x": rate,
        "here": here,
        "label": number(rate),
        **{k: a[v] for k, v in names.items()},
        "text": {k: seconds(a[v]) for k, v in names.items()}
        | {"utilisation": percent(a["utilisation"]), "batch": number(a["batch"])},
    }


def pools(report: dict) -> dict | None:
    """Prefill and decode on chips of their own; None where they share."""
    p = report["serving"]["disaggregated"]
    if not p:
        return None
    ratio = p["prefill_instances_per_decode"]
    prefill, decode = (ratio, 1.0) if ratio >= 1 else (1.0, 1 / ratio)
    rows = [
        ("prefill", seconds(p["prefill_s"])),
        ("transfer", f"{bytes_(p['kv_transfer_bytes'])}, {seconds(p['transfer_s'])}"),
        ("hidden", seconds(p["transfer_hidden_s"])),
        ("ttft", seconds(p["ttft_s"])),
        ("per_device", number(p["tokens_per_s_per_device"])),
        ("rate", number(p["prefill_tokens_per_s"])),
    ]
    return {
        "fits": p["prefill_fits"] is not False,
        "hardware": p["prefill_hardware"],
        "devices": whole(p["prefill_devices"]),
        "prefill_instances": _ratio(prefill),
        "decode_instances": _ratio(decode),
        "chips": number(p["devices_per_decode_instance"]),
        "rows": [{"key": key, "value": value} for key, value in rows],
    }


def _ratio(value: float) -> str:
    return "1" if value == 1 else number(value, 2)


def reserve(report: dict) -> dict | None:
    """One chip's memory as a paged engine would divide it, beside the least there must be; None where the capacity is not known."""
    mem, have = report["memory"]["engine"], report["hardware"]["memory_bytes"]
    if not mem:
        return None
    outside = max(0.0, have - mem["reserved_bytes"])
    parts = [
        ("weights", mem["weights_bytes"]),
        ("activations", mem["activation_bytes"]),
        ("libraries", mem["libraries_bytes"]),
        ("pool", mem["pool_bytes"]),
        ("outside", outside),
    ]
    total = max(have, sum(size for _, size in parts))
    facts = [
        ("block_tokens", whole(mem["block_tokens"])),
        ("block_bytes", bytes_(mem["block_bytes"])),
        ("blocks", whole(mem["blocks"])),
        ("blocks_per_sequence", whole(mem["blocks_per_sequence"])),
        ("kv_per_sequence", bytes_(mem["kv_bytes_per_sequence"])),
        ("max_context", whole(mem["max_context"])),
    ]
    return {
        "fits": mem["fits"],
        "utilisation": percent(mem["utilisation"]),
        "reserved": bytes_(mem["reserved_bytes"]),
        "memory": bytes_(have),
        "batch": whole(report["scenario"].get("batch", 1)),
        "engine_batch": whole(mem["max_batch"]),
        "least_batch": whole(report["memory"]["max_batch"]),
        "capacity": round(have / total, 5),
        "parts": [
            {"key": key, "text": bytes_(size), "share": percent(size / have), "width": round(size / total, 5)}
            for key, size in parts
            if size
        ],
        "facts": [{"key": key, "value": value} for key, value in facts],
        "assumptions": list(mem["assumptions"]),
    }


def money(report: dict) -> dict:
    """Prices per million tokens, what an hour costs, and the break-even against an API's price."""
    c = report["cost"]
    return {
        "rows": [
            {"key": key, "limit": dollars(c[key]), "expected": dollars(c.get("expected_" + key))}
            for key in PRICES
            if c[key] is not None
        ],
        "per_hour": dollars(c["usd_per_hour"]),
        "chips": whole(report["layout"]["devices"]),
        "known": c["usd_per_hour"] is not None,
        "price": "" if report["hardware"]["usd_per_hour"] is None else f"{report['hardware']['usd_per_hour']:.4g}",
        "source": c["source"],
        "even": None
        if c["break_even_tokens_per_s"] is None
        else {
            "rate": number(c["break_even_tokens_per_s"]),
            "share": percent(c["break_even_share"]),
            "reachable": c["break_even_share"] is not None and c["break_even_share"] <= 1,
            "api": dollars(c["usd_per_million_output_api"]),
        },
        "flops": "–" if c["flops_per_usd_peak"] is None else format_quantity(c["flops_per_usd_peak"], "FLOP"),
        "bytes": bytes_(c["bytes_per_usd_peak"]),
    }


def energy(report: dict) -> dict:
    """Joules per token as TDP x time, and what of it memory traffic and arithmetic take."""
    e = report["energy"]
    total = e["joules_per_output_token"]
    parts = [
        ("dram", e["dram_joules_per_output_token"]),
        ("compute", e["compute_joules_per_output_token"]),
        ("rest", e["rest_joules_per_output_token"]),
    ]
    shown = [(key, value) for key, value in parts if value and total]
    whole_bar = sum(value for _, value in shown) or 1
    groups = [
        {
            "group": g["group"],
            "dram": joules(g["dram_joules"]),
            "compute": joules(g["compute_joules"]),
            "sum": (g["dram_joules"] or 0) + (g["compute_joules"] or 0),
        }
        for g in e["groups"]
    ]
    return {
        "output": joules(total),
        "input": joules(e["joules_per_input_token"]),
        "watts": format_quantity(e["watts"], "W"),
        "known": total is not None,
        "pj_per_byte": number(e["dram_pj_per_byte"]),
        "parts": [
            {"key": key, "text": joules(value), "width": round(value / whole_bar, 5), "share": percent(value / whole_bar)}
            for key, value in shown
        ],
        "groups": [{k: v for k, v in g.items() if k != "sum"} for g in sorted(groups, key=lambda g: -g["sum"])],
        "dram_source": e["dram_source"],
        "compute_source": e["compute_source"],
        "flops": "–" if e["flops_per_joule_peak"] is None else format_quantity(e["flops_per_joule_peak"], "FLOP"),
        "bytes": bytes_(e["bytes_per_joule_peak"]),
    }


def turning_points(flips: dict) -> dict:
    """Where the answer changes: the batch at which each kind of operator turns, the cache's context, speculation's batches."""
    turns = {}
    for op in flips["operators"]:
        turns.setdefault(op["group"], op["batch"])
    return {
        "groups": [{"group": group, "batch": number(batch)} for group, batch in turns.items()],
        "kv_context": None if flips["kv_passes_weights_context"] is None else number(flips["kv_passes_weights_context"]),
        "speculation": _range(flips),
    }


def experts(r: Resolved, flips: dict) -> dict | None:
    """A mixture of experts against the batch: curves for two charts and the table behind them; None for a dense model."""
    p = flips["distinct_experts"]
    if p is None:
        return None
    roofs = roofs_for(r)
    peak = roofs.peaks[r.compute]
    points = {
        name: {"x": [q["intensity_flops_per_byte"] for q in p[name]], "y": [q["attainable_flops_per_s"] for q in p[name]]}
        for name in ("actual", "ideal")
    }
    batch = r.scenario.batch
    at = min(range(len(p["batch"])), key=lambda i: abs(p["batch"][i] - batch))
    xs = [x for name in points for x in points[name]["x"]]
    rows = [
        {
            "batch": whole(b),
            "here": i == at,
            "uniform": number(p["uniform"][i]),
            "routing": number(p["routing"][i]),
            "least": number(p["least"][i]),
            "bytes": bytes_(p["actual"][i]["weight_bytes"]),
            "actual": number(p["actual"][i]["intensity_flops_per_byte"]),
            "ideal": number(p["ideal"][i]["intensity_flops_per_byte"]),
        }
        for i, b in enumerate(p["batch"])
    ]
    return {
        "experts": whole(p["experts"]),
        "active": whole(p["active"]),
        "skewed": r.scenario.routing > 0,
        "batch": p["batch"],
        "uniform": p["uniform"],
        "routing": p["routing"],
        "least": p["least"],
        "rows": rows,
        "points": points,
        "at": at,
        "memory": roofs.bandwidth,
        "peak": peak,
        "ridge": ridge(peak, roofs.bandwidth),
        "range": [min(xs), max(xs)],
        "share": percent(p["routing"][at] / p["experts"]),
        "times": number(p["routing"][at] / p["active"]),
        "here": whole(p["batch"][at]),
        "read": number(p["routing"][at]),
    }
