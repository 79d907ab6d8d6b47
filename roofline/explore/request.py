"""An exploration asked in text: the same flat fields on the command line, in the page's form and in a link; and the answer as plain data."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from .. import hardware, view
from ..errors import InputError, nearest
from ..scenario import Scenario
from ..units import format_number, format_quantity, parse_quantity
from .answer import FRONT, LIMITS, OBJECTIVES, Answer, Cell, Question, judge, judged
from .figures import BOUNDS, NAMES
from .fleet import Demand, Sizing, fleet, read_mix
from .grid import blocks
from .sensitivity import sensitivity
from .space import BATCHES, Space, plan
from .table import Table, table_of

LISTS = ("models", "chips", "vendors", "kinds", "weights", "activations", "kv")
NUMBERS = {"devices": "count", "batches": "count", "prompts": "tokens", "outputs": "tokens", "drafts": "tokens"}
FIELDS = {
    "models": "models to try, separated by commas",
    "chips": "chips to try, or all",
    "vendors": "only chips of these vendors",
    "kinds": "only these kinds of chip",
    "devices": "chips in one deployment, such as 1,2,4,8",
    "weights": "weight formats",
    "activations": "arithmetic of quantised matrices",
    "kv": "KV cache formats",
    "batches": "requests in flight, such as 1,8,64",
    "prompts": "prompt tokens",
    "outputs": "output tokens",
    "hits": "shares of the prompt already cached, such as 0,0.5",
    "drafts": "drafted tokens of speculative decoding, such as 0,3",
    "prefill": "separate prefill pools, such as same:8 or h100-sxm:4",
    "prices": "prices, such as h100-sxm=2.5 [USD/h]",
    "levers": "further changes, each tried beside none, such as offload=0.5, draft=3+acceptance=0.8",
    "pipeline": "try pipeline stages too (yes or no)",
    "replicas": "try copies that share nothing too (yes or no)",
    "basis": "limit or expected",
    "objective": f"one of {', '.join(OBJECTIVES)}",
    **{name: f"limit of {words[4]}" for name, words in LIMITS.items()},
}
KEEP = 600_000  # configurations (about a second in a browser) whose figures are kept, so that a new question of the same space needs no new evaluation
SHOWN = 12  # chips whose whole front is told


def _words(value) -> list:
    """A list, or text with commas, as a list of trimmed words."""
    return [str(w).strip() for w in (value if isinstance(value, (list, tuple)) else str(value).split(",")) if str(w).strip()]


def _yes(name: str, value) -> bool:
    flag = {"yes": True, "true": True, "1": True, "on": True, "no": False, "false": False, "0": False, "off": False}.get(
        str(value).strip().lower()
    )
    if flag is None:
        raise InputError(name, value, "must be yes or no")
    return flag


def read(base: Scenario, fields: dict) -> tuple:
    """(Space, Question) from flat fields (see FIELDS); what a field does not say, the base scenario does.

    >>> space, question = read(Scenario(), {"chips": "h100-sxm, h200-sxm", "tpot": "33 ms", "devices": "1,8"})
    >>> space.devices, question.limits
    ((1, 8), (('tpot', 0.033),))
    """
    if not isinstance(fields, dict):
        raise InputError("explore", type(fields).__name__, "must be an object of named fields")
    for name in fields:
        if name not in FIELDS:
            raise InputError("explore field", name, f"is not known{nearest(name, FIELDS)}")
    given = {k: v for k, v in fields.items() if v not in (None, "", [], ())}
    changes = {name: tuple(_words(given[name])) for name in LISTS if name in given}
    for name in ("devices", "batches", "drafts"):
        if name in given:
            changes[name] = tuple(parse_quantity(w, NUMBERS[name], field=name, high=1e9, whole=True) for w in _words(given[name]))
    tokens = lambda name, own: (
        [parse_quantity(w, "tokens", field=name, low=1, high=1e8, whole=True) for w in _words(given[name])]
        if name in given
        else [own]
    )
    if "hits" in given:
        hits = [parse_quantity(w, "count", field="hits", low=0, high=1) for w in _words(given["hits"])]
        cached = lambda prompt: {min(prompt - 1, int(prompt * h)) for h in hits}
    else:
        cached = lambda prompt: {min(base.cached, prompt - 1)}
    changes["loads"] = tuple(
        (p, o, c) for p, o in product(tokens("prompts", base.prompt), tokens("outputs", base.output)) for c in sorted(cached(p))
    )
    if "prefill" in given:
        changes["prefill"] = tuple(_pair(w, ":", "prefill", "chip:count, such as same:8") for w in _words(given["prefill"]))
    if "prices" in given:
        changes["prices"] = tuple(given["prices"].items()) if isinstance(given["prices"], dict) else _prices(given["prices"])
    if "levers" in given:
        changes["levers"] = (
            (),
            *(
                tuple(_pair(p, "=", "levers", "field=value, such as offload=0.5") for p in _words(w.replace("+", ",")))
                for w in _words(given["levers"])
            ),
        )
    for name in ("pipeline", "replicas"):
        if name in given:
            changes[name] = _yes(name, given[name])
    # A choice among chips is made by what engines reach; what no measurement speaks for falls back to what physics allows.
    measured = base.engine != "none" and not changes.get("prefill")
    changes["basis"] = str(given.get("basis") or ("expected" if measured else "limit")).strip().lower()
    if "batches" not in given and base.batch not in BATCHES:
        changes["batches"] = (*BATCHES, base.batch)
    question = Question(
        objective=str(given.get("objective", "cost")).strip().lower(),
        limits={name: given[name] for name in LIMITS if name in given},
    )
    return Space(base=base, **changes), question


def _pair(text: str, sign: str, field: str, rule: str) -> tuple:
    left, found, right = text.partition(sign)
    if not found or not left.strip() or not right.strip():
        raise InputError(field, text, f"must read {rule}")
    return left.strip(), right.strip()


def _prices(text) -> tuple:
    return tuple(_pair(w, "=", "prices", "chip=USD/h, such as h100-sxm=2.5") for w in _words(text or ""))


@lru_cache(maxsize=2)
def _kept(space: Space) -> tuple:
    """(plan, blocks) of a space small enough to keep: the same space asked again only needs a new judgement."""
    made = plan(space)
    return made, tuple(blocks(space, made))


def answered(space: Space, question: Question, progress=None) -> Answer:
    """`explore`, with the figures of the last spaces kept if they are small enough; progress is told of larger ones."""
    made = plan(space)
    if made.rows > KEEP:
        return judge(space, made, blocks(space, made), question, progress)
    made, found = _kept(space)
    return judge(space, made, found, question)


def space_of(base: Scenario, asked: dict) -> tuple:
    """(Space, Question) of a form: `read`, but what the base scenario types over one chip's figures holds for that chip only."""
    fields = dict(asked)
    if _words(fields.get("chips", "all")) != [base.hardware]:
        if base.usd_per_hour is not None and base.hardware != "custom":
            fields["prices"] = {base.hardware: base.usd_per_hour} | (
                fields["prices"] if isinstance(fields.get("prices"), dict) else dict(_prices(fields.get("prices")))
            )
        base = base.replace(
            hardware="h100-sxm" if base.hardware == "custom" else base.hardware,
            **dict.fromkeys(("peak", "bandwidth", "memory", "link", "usd_per_hour", "purchase_usd")),
        )
    return read(base, fields)


def explore_request(request: dict, progress=None) -> dict:
    """The page's question: {"scenario": {...}, "explore": {fields, see FIELDS}} -> plain data, ready for JSON.

    "ask": "explore" (or left out), "sensitivity" (with "objective", "step" and "basis"; see `sensitivity`) or "fleet" (with "mix", the id of a
    preset or the text of a CSV file, "rate", "objective" and the fields of `Demand`; see `fleet`).
    {"question", "basis", "counts", "model", "prompt", "output", "cached", "best": one row per chip that meets the question, best first, each with "over_best", its objective
    over the best one's; "front": rows, fastest for a user
    first; "fronts": [{hardware, name, x, y, fragment}] of the best chips; "why_not": [{hardware, name, why, fragment}],
    "others": the same from "model" on for every further model and load}.
    Rows are `Table.row` and "text", the same written out. progress(done, total) as in `explore`.
    """
    if not isinstance(request, dict):
        raise InputError("request", type(request).__name__, "must be an object")
    ask = request.get("ask") or "explore"
    if ask not in ("explore", "sensitivity", "fleet"):
        raise InputError("ask", ask, "must be explore, sensitivity or fleet")
    base = Scenario.from_dict({k: v for k, v in (request.get("scenario") or {}).items() if v not in (None, "")})
    if ask == "sensitivity":
        return sensitivity(base, request.get("objective") or "cost", request.get("step") or 0.2, request.get("basis") or "limit")
    space, question = space_of(base, request.get("explore") or {})
    if ask == "fleet":
        return fleet(space, *_fleet_of(request), progress)
    return to_dict(answered(space, question, progress), space)


def sizing_of(base: Scenario, fields: dict, given: dict) -> Sizing:
    """The fleet that a request asks for, not yet begun, so that it can be sized piece by piece. given: the request's fields beside the space."""
    return Sizing(space_of(base, fields)[0], *_fleet_of(given))


def _fleet_of(given: dict) -> tuple:
    """(mix, demand, objective) of a request for a fleet."""
    limits = {n: given[n] for n in ("headroom", "ttft_s", "tpot_s", "budget", "most_chips") if given.get(n) not in (None, "")}
    return read_mix(str(given.get("mix", "")), given.get("rate") or None), Demand(**limits), given.get("objective") or "cost"


def to_dict(found: Answer, space: Space) -> dict:
    """An Answer as plain data, see `explore_request`."""
    figure, less, words = OBJECTIVES[found.question.objective]
    cells = [_cell(cell, figure) for cell in found.cells]
    return {
        "question": {
            "objective": found.question.objective,
            "figure": figure,
            "less_is_better": less,
            "words": words,
            "limits": dict(found.question.limits),
        },
        "basis": space.basis,
        "counts": found.counts,
        **cells[0],
        "others": cells[1:],
    }


def _cell(cell: Cell, figure: str) -> dict:
    best = [shown(row) for row in cell.best.rows()]
    for row in best:
        row["over_best"] = row[figure] / best[0][figure] if best[0][figure] else None
    fronts = []
    for row in best[:SHOWN]:
        table = cell.fronts[row["hardware"]]
        fragments = [table.scenario(i).to_fragment() for i in range(len(table))]
        fronts.append({"hardware": row["hardware"], "name": row["name"], **line(table), "fragment": fragments})
    why = [
        {
            "hardware": id,
            "name": name_of(id),
            "why": text,
            "fragment": cell.nearest[id].scenario(0).to_fragment() if id in cell.nearest else None,
        }
        for id, text in cell.why_not.items()
    ]
    prompt, output, cached = cell.load
    return {
        "model": cell.model,
        "prompt": prompt,
        "output": output,
        "cached": cached,
        "best": best,
        "front": [shown(row) for row in cell.front.rows()],
        "fronts": fronts,
        "why_not": why,
    }


def name_of(chip: str) -> str:
    """A chip's name, also of one that is typed in."""
    return hardware.load(chip).name if chip != "custom" else "custom chip"


def line(table: Table) -> dict:
    """One chip's front as columns: x and y as in FRONT, and the title of each point."""
    x, y = (table.columns[name].tolist() for name in FRONT)
    devices = table.columns["devices"].tolist()
    return {"x": x, "y": y, "title": [title(table.names(i) | {"devices": n}) for i, n in enumerate(devices)]}


def title(row: dict) -> str:
    """A configuration in a few words.

    >>> title({"devices": 8, "name": "H200", "tp": 8, "pp": 1, "ep": 1, "dp": 1, "weights": "fp8", "kv": "bf16", "batch": 64, "draft": 0, "prefill_hardware": None})
    '8 × H200, tp 8, FP8 weights, batch 64'
    """
    layout = " ".join(f"{n} {row[n]}" for n in ("tp", "pp", "ep", "dp") if row[n] > 1)
    parts = [
        f"{count(row['devices'])} × {row['name']}",
        layout,
        f"{row['weights'].upper() if row['weights'].islower() else row['weights']} weights",
        f"{row['kv'].upper()} KV cache" if row["kv"] != "bf16" else "",
        f"batch {row['batch']:,}",
        f"{row['draft']} drafted" if row["draft"] else "",
        f"prefill on {row['prefill_devices']} × {row['prefill_hardware']}" if row["prefill_hardware"] else "",
    ]
    return ", ".join(p for p in parts if p)


def count(value: float) -> str:
    """Chips: a whole number as such, a share of a prefill pool with one decimal."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def shown(row: dict) -> dict:
    """A row with "text": its title and figures written out."""
    money = lambda v: "–" if v is None else f"${format_number(v)}"
    return row | {
        "text": {
            "title": title(row),
            "tpot": format_quantity(row["tpot_s"], "s"),
            "ttft": format_quantity(row["ttft_s"], "s"),
            "ttft_alone": format_quantity(row["ttft_alone_s"], "s"),
            "user": format_number(row["tokens_per_s_per_user"]),
            "throughput": format_number(row["served_tokens_per_s_per_device"]),
            "total": format_number(row["tokens_per_s"]),
            "cost": money(row["usd_per_million_output_tokens_all_in"]),
            "output_cost": money(row["usd_per_million_output_tokens"]),
            "per_hour": money(row["usd_per_hour"]),
            "energy": format_quantity(row["joules_per_output_token_all_in"], "J"),
            "memory": view.percent(row["memory_share"]),
            "devices": count(row["devices"]),
        }
    }


_CSV = (
    "model",
    "hardware",
    "tp",
    "pp",
    "ep",
    "dp",
    "weights",
    "activations",
    "kv",
    "batch",
    "prompt",
    "output",
    "cached",
    "draft",
    "prefill_hardware",
    "prefill_devices",
    "bound",
    "met",
)


def csv_lines(space: Space, question: Question, most: int = 5_000_000):
    """Every configuration that has times, as lines of a CSV file; `met` is 1 where it meets the question. Raises InputError beyond `most` rows."""
    made = plan(space)
    if made.rows > most:
        raise InputError("space", f"{made.rows:,} configurations", f"must be at most {most:,} to be written to a file")
    names = [n for n in NAMES if n != "bound"]
    yield ",".join((*_CSV, *names)) + "\n"
    for block in blocks(space, made):
        timed = (block.fault.reshape(-1) == 0).nonzero()[0]
        if not len(timed):
            continue
        table, part = table_of(block, timed, made, space), block.slice
        c = {name: values.tolist() for name, values in table.columns.items()}
        met = judged(table, question)[0].tolist()
        f, pool = part.formats, part.pools[block.pool]
        chips, layouts = [x.id for x in part.chips], [f"{x.tp},{x.pp},{x.ep},{x.dp}" for x in part.layouts]
        same = f"{getattr(f['weights'], 'name', f['weights'])},{f['activations'].name},{f['kv'].name}"
        loads = [f"{x[0]},{x[1]},{x[2]},{part.scenario.draft}" for x in space.loads]
        for i, (chip, layout, batch, load, bound) in enumerate(
            zip(c["chip"], c["layout"], c["batch"], c["load"], c["bound"], strict=True)
        ):
            away = "," if pool is None else f"{chips[chip] if pool[0] == 'same' else pool[0]},{pool[1]}"
            figures = ",".join("" if c[n][i] != c[n][i] else repr(c[n][i]) for n in names)
            yield f"{part.arch.id},{chips[chip]},{layouts[layout]},{same},{space.batches[batch]},{loads[load]},{away},{BOUNDS[int(bound)]},{int(met[i])},{figures}\n"
