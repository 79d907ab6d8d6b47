"""What `read` hands back, and the sheet a reader fills while it goes through a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from .values import clean_scale, quant_in_name, rounded, spelled

MAX_ROWS = 2_000
_UNITS = {
    "request_tps": "req/s",
    "latency_s": "s",
    "flop": "FLOP",
    "arithmetic_intensity": "FLOP/B",
    "gflops": "GFLOP/s",
    "energy_j": "J",
    "power_w": "W",
}
_UNIT_ENDS = (
    ("_tps", "token/s"),
    ("_tps_per_user", "token/s"),
    ("_tps_per_gpu", "token/s"),
    ("_tps_e2e", "token/s"),
    ("_ms", "ms"),
    ("_ns", "ns"),
    ("_gbs", "GB/s"),
    ("_gflops", "GFLOP/s"),
    ("_pct_of_peak", "%"),
    ("_bytes", "B"),
    ("_bytes_read", "B"),
    ("_bytes_write", "B"),
)
# Facts of the file rather than of one point: moved to `common` when every row agrees on them.
_COMMON = (
    "model",
    "model_file",
    "quant",
    "size_gib",
    "size_mib",
    "size_bytes",
    "params_b",
    "params_m",
    "params",
    "hardware",
    "gpus",
    "cpu",
    "backend",
    "backends_raw",
    "build",
    "ngl",
    "threads",
    "n_batch",
    "n_ubatch",
    "type_k",
    "type_v",
    "type_kv",
    "fa",
    "dtype",
    "kv_dtype",
    "precision",
    "tp",
    "pp",
    "ep",
    "concurrency",
    "max_concurrency",
    "request_rate",
    "num_prompts",
    "mean_input_len",
    "mean_output_len",
    "failed",
    "completed",
    "speculative",
    "acceptance_length",
    "acceptance_rate",
    "compute_cap",
    "cc",
    "split_mode",
    "n_cpu_moe",
    "max_batch_size",
    "duration_s",
    "scenario",
    "valid",
    "errors",
    "peak_memory_gb",
    "cached_tokens",
    "engine",
    "mem_gb",
)


def unit_of(metric: str) -> str:
    """Return the unit a metric is given in.

    >>> unit_of("decode_tps"), unit_of("dram_bytes_read"), unit_of("roof_l2_gbs")
    ('token/s', 'B', 'GB/s')
    """
    if metric in _UNITS:
        return _UNITS[metric]
    return next((unit for end, unit in _UNIT_ENDS if metric.endswith(end)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The facts one benchmark output states: the tool, facts of the whole file, one row per measured figure.

    `rows` holds the figures that a roofline can place; `more` the other statistics of the same runs (percentiles,
    peaks), in the same form. A fact the file does not state is None or absent, never a default.
    """

    tool: str
    common: Mapping[str, object]
    rows: tuple[Mapping[str, object], ...]
    more: tuple[Mapping[str, object], ...] = ()
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict:
        """Return the reading as strict JSON data: {"tool", "common", "rows", "more", "warnings"}.

        >>> Reading(tool="x", common={"model": None}, rows=({"metric": "decode_tps", "value": 2.0, "unit": "token/s"},)).to_dict()["rows"]
        [{'metric': 'decode_tps', 'value': 2.0, 'unit': 'token/s'}]
        """
        return {
            "tool": self.tool,
            "common": _strict(dict(self.common)),
            "rows": [_strict(dict(r)) for r in self.rows],
            "more": [_strict(dict(r)) for r in self.more],
            "warnings": list(self.warnings),
        }


def _strict(value):
    """Make a value that the JSON standard allows: no NaN, no infinity, no number subclass."""
    if isinstance(value, bool) or value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): _strict(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(v) for v in value]
    return str(value)


@dataclass
class Sheet:
    """A reader's working sheet: it refuses figures that cannot be measurements and says so in `warnings`."""

    tool: str
    common: dict = field(default_factory=dict)
    rows: list = field(default_factory=list)
    more: list = field(default_factory=list)
    warnings: list = field(default_factory=list)

    def warn(self, code: str, text: str = "") -> None:
        line = f"{code}: {text}" if text else code
        if line not in self.warnings and len(self.warnings) < 200:
            self.warnings.append(line)

    @property
    def full(self) -> bool:
        """True when more rows than are kept have been added."""
        return len(self.rows) > MAX_ROWS

    def fact(self, **facts) -> None:
        """Note facts of the whole file; one that is already known stays."""
        for key, value in facts.items():
            if value is not None and self.common.get(key) is None:
                self.common[key] = value

    def row(self, metric: str, value, raw=None, *, scale: float = 1.0, derived=False, zero_ok=False, into: str = "rows", **facts) -> bool:
        """Add one figure; False if it is not a measurement (missing, not finite, negative, zero).

        `zero_ok` keeps a rate that the tool rounded to zero, marked unusable.
        """
        if value is None or isinstance(value, bool) or len(getattr(self, into)) > 2 * MAX_ROWS:
            return False
        try:
            figure = float(value) * scale
        except (OverflowError, ValueError, TypeError):
            figure = math.inf
        where = facts.get("test") or facts.get("stat") or ""
        label = f"{metric} {where}".strip()
        if not math.isfinite(figure):
            self.warn("non_finite", f"{label} is not a finite number and is left out")
            return False
        if figure < 0:
            self.warn(
                "negative_rate" if "_tps" in metric or "flops" in metric or "gbs" in metric else "negative_value",
                f"{label} is negative and is left out",
            )
            return False
        if figure == 0 and not zero_ok:
            self.warn("zero_value", f"{label} is 0, which is no measurement, and is left out")
            return False
        exact = isinstance(value, int) and scale == 1
        figure = int(value) if exact else rounded(figure) if derived else clean_scale(figure) if scale != 1 else float(value)
        entry = {"metric": metric, "value": figure, "unit": unit_of(metric), "raw": spelled(value if raw is None else raw).strip()[:200]}
        entry.update({k: v for k, v in facts.items() if v is not None})
        if derived:
            entry["derived"] = derived
        if figure == 0:
            entry["usable"] = False
            self.warn("rate_rounds_to_zero", f"{label} prints as 0: below the last digit shown, not zero")
        elif metric.endswith("_tps") and figure > 1e9:
            entry["trust"] = "above_roof_expected"
            self.warn("implausible_rate", f"{label} is above 1e9 per second")
        getattr(self, into).append(entry)
        return True

    def reading(self) -> Reading:
        """Close the sheet: merge repeats, move facts shared by all rows to `common`."""
        rows, more = _merged(self.rows), _merged(self.more)
        if len(rows) > MAX_ROWS:
            self.warn("too_many_rows", f"the file holds more than {MAX_ROWS} different figures; the first {MAX_ROWS} are kept")
            rows = rows[:MAX_ROWS]
        common = dict(self.common)
        for key in _COMMON:
            values = {repr(r.get(key)) for r in rows}
            if len(values) == 1 and rows and rows[0].get(key) is not None and common.get(key) in (None, rows[0][key]):
                common[key] = rows[0][key]
                for r in rows:
                    del r[key]
        for key in ("model", "quant", "hardware"):
            if key not in common and not any(key in r for r in rows):
                common[key] = None
        if (
            common.get("quant") is None
            and not any("quant" in r for r in rows)
            and isinstance(name := common.get("model") or common.get("model_file"), str)
            and (found := quant_in_name(name))
        ):
            common["quant"] = found
        freeze = lambda entries: tuple(MappingProxyType(e) for e in entries)  # noqa: E731
        return Reading(
            tool=self.tool, common=MappingProxyType(common), rows=freeze(rows), more=freeze(more[:MAX_ROWS]), warnings=tuple(self.warnings)
        )


def _merged(rows: list) -> list:
    """Report identical rows once, with a count."""
    seen: dict = {}
    for r in rows:
        key = repr(sorted(r.items(), key=lambda kv: kv[0]))
        if key in seen:
            seen[key]["count"] = seen[key].get("count", 1) + 1
        else:
            seen[key] = dict(r)
    return list(seen.values())
