"""What a label means: "Mean TTFT (ms)", "output_throughput", "p99_itl_ms", "Output Token Throughput Per User (tokens/sec/user)".

One vocabulary for the consoles, JSON keys and table headers of all load generators. A label whose meaning is open
(plain "throughput", "tokens/s", "latency") is not classified: the caller must know its tool, or leave it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from .values import SECONDS


@dataclass(frozen=True, slots=True)
class Label:
    """A metric, the statistic (None when the label names none) and the factor to the metric's unit."""

    metric: str
    stat: str | None
    scale: float | None  # None: a time without a unit


_STATS = (
    (r"\b(?:mean|avg|average|ave)\b", "mean"),
    (r"\b(?:median|p50|50th|50 percentile|50p)\b", "median"),
    (r"\b(?:min|minimum|lowest)\b", "min"),
    (r"\b(?:max|maximum|highest|peak)\b", "max"),
    (r"\b(?:std|stddev|stdev|deviation|sd)\b", "std"),
)
_PERCENTILE = re.compile(
    r"\bp(\d{1,2})(?:[ .](\d+))?\b|\b(\d{1,2})(?:[ .]\d+)?(?:th)? ?(?:percentile|%|pct)|\bpercentile (\d{1,2})\b|\bpercentile(\d{1,2})\b"
)
# Words that make a figure something other than a measurement of the model.
_NOT_MEASURED = re.compile(
    r"\b(?:targets?|functional|complete|check|theoretical|expected|estimated?|est|limit|budget|quota|price|cost|usd|slos?|slas?|thresholds?|goodput|hit rate|cache hits?|acceptance|speed up|ratio|request rate|issue rate|speedup|increase|"
    r"improvement|gain|"
    r"tokenization|tokenizer|detokenization|sampling|sample|load|loading|compile|warm ?up|train|training|step|scheduled|loss|energy|second "
    r"token|words?|char\w*)\b"
)
_TIME_UNIT = re.compile(
    r"\b(ns|nanoseconds?|us|usec|microseconds?|ms|msec|milliseconds?|s|sec|secs|seconds?)\b(?!.*\b(?:ns|us|ms|s|sec|seconds?)\b)"
)
_RATE_WORDS = re.compile(
    r"\b(?:throughput|tput|tps|tok s|toks s|token s|tokens s|t s|tokens sec|tok sec|token sec|tokens per s(?:ec(?:ond)?)?|tokens second|token "
    r"per sec(?:ond)?|per sec(?:ond)?|speed|(?:eval|decode|decoding|prefill|generation|generated|prompt|tokens?|output|input|processing) rate|rps|qps|req s|reqs s|requests s|requests sec|requests? per sec(?:ond)?|per min(?:ute)?|"
    r"tokens min|requests min)\b"
)


def words(label: str) -> str:
    """Normalise a label: camel case and punctuation become single spaces, lower case.

    >>> words("results_TTFT-s_mean"), words("tokensPerSec"), words("Mean TTFT (ms):")
    ('results ttft s mean', 'tokens per sec', 'mean ttft ms')
    """
    label = re.sub(r"/\s*min(?:ute)?\b", " per minute", label[:160])
    text = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", label).replace("µ", "u").replace("μ", "u")
    return " ".join(re.sub(r"[^a-z0-9.%]+", " ", text.lower()).split()).strip(". ")


@lru_cache(maxsize=4096)
def classify(label: str) -> Label | None:
    """Return what the label means, or None if that is not certain.

    >>> classify("Mean TTFT (ms)"), classify("p99_itl_ms")
    (Label(metric='ttft_ms', stat='mean', scale=1.0), Label(metric='itl_ms', stat='p99', scale=1.0))
    >>> classify("Output Token Throughput Per User (tokens/sec/user)").metric, classify("throughput")
    ('decode_tps_per_user', None)
    """
    text = words(label)
    if not text or len(label) > 160:
        return None
    thousands = re.search(r"\bk ?(?=tok(?:ens?)? s\b|tps\b)", text)
    if thousands:
        text = text[: thousands.start()] + text[thousands.end() :]
    if _NOT_MEASURED.search(text.replace("sample s per", "")):
        return None
    stat = None
    for pattern, name in _STATS:
        if re.search(pattern, text):
            stat = name
            break
    if match := _PERCENTILE.search(text):
        digits = match[1] or match[3] or match[4] or match[5]
        stat = "median" if digits == "50" and not match[2] else f"p{digits}" + (f".{match[2]}" if match[2] else "")
    rate = _rate(text)
    if rate:
        return Label(rate, stat, 1 / 60 if re.search(r"\bper min(?:ute)?\b", text) else 1000.0 if thousands else 1.0)
    time = _time(text)
    if time:
        return Label(time, stat, _time_scale(text, 1.0 if time == "latency_s" else 1e-3))
    return None


def _time_scale(text: str, unit: float) -> float | None:
    match = _TIME_UNIT.search(text)
    if not match or match[1] not in SECONDS:
        return None
    return float(f"{SECONDS[match[1]] / unit:.12g}")


def _time(text: str) -> str | None:
    if re.search(
        r"\b(?:ttft|time to first (?:output )?token|(?:first|1st) token (?:(?:avg|average|mean) )?(?:latency|time|cost)|latency (?:of )?first "
        r"token|prefill latency|ttft latency)\b",
        text,
    ):
        return "ttft_ms"
    if re.search(
        r"\b(?:tpot|time per output token|(?:2nd|2\+?|other|next|rest) (?:tokens? )?(?:(?:avg|average|mean) )?(?:latency|time|cost)|decode "
        r"token latency|latency per output token)\b",
        text,
    ):
        return "tpot_ms"
    if re.search(r"\b(?:itl|inter token latency|inter token latencies|intertoken latency|inter token)\b", text):
        return "itl_ms"
    if re.search(r"\b(?:e2e|e2el|end to end|request latency|e2e latency|sequence latency|req latency)\b", text):
        return "e2e_ms"
    return None


def _rate(text: str) -> str | None:
    if not _RATE_WORDS.search(text):
        return None
    if re.search(r"\b(?:latency|time|duration|ttft|tpot|itl)\b", text) and not re.search(r"\b(?:throughput|tput|tps)\b", text):
        return None
    if "%" in text:
        return None
    tokens = bool(re.search(r"\b(?:tok|toks|tokens?|tps|t s)\b", text))
    if re.search(r"\b(?:peak|max|maximum)\b", text):
        return "peak_output_tps" if re.search(r"\b(?:output|generation|generated)\b", text) and tokens else None
    if re.search(r"\b(?:per user|user)\b", text):
        return "decode_tps_per_user" if not re.search(r"\b(?:ctx|e2e|prefill|input)\b", text) else "output_tps_per_user"
    if re.search(r"\b(?:per gpu|gpu|per device|per chip)\b", text):
        return "output_tps_per_gpu" if re.search(r"\boutput\b", text) else None
    if re.search(
        r"\b(?:requests?|req|reqs|rps|qps|seqs?|sequences?|prompts?|queries)\b(?: throughput| tput| s\b| sec\b| per (?:sec|min)\w*| rate|$)",
        text,
    ) and not re.search(r"\b(?:prompt|token\w*|tok)\b.*\b(?:token\w*|tok|tps)\b", text):
        if not tokens:
            return "request_tps"
    if tokens and (re.search(r"\bprompt completion\b|\binput output\b|\bprompt generat\w+\b", text)):
        return "total_tps"
    if re.search(r"\b(?:prefill|prompt|context|pp|prompt eval\w*|prompt processing|input processing)\b", text) and not re.search(
        r"\b(?:output|generat\w*|decode|tg|total)\b", text
    ):
        return "prefill_tps"
    if re.search(r"\btotal\b", text) and not re.search(r"\boutput|generat|completion|decode|input\b", text) and tokens:
        return "total_tps"
    if re.search(r"\b(?:decode|decoding|generation|tg|token generation|eval|gen|2nd tokens?|other tokens?)\b", text) and not re.search(
        r"\bprompt\b", text
    ):
        return "decode_tps"
    if re.search(r"\b(?:output|generated|completion|out)\b", text) and (tokens or "throughput" in text):
        return "output_tps"
    if re.search(r"\binput\b", text) and (tokens or "throughput" in text) and not re.search(r"\b(?:inputs|sequences?|images?|frames?) s\b|input sequence", text):
        return "input_tps"
    return None
