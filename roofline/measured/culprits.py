"""Why a measurement stands where it stands: sentences, the likeliest first."""

from __future__ import annotations

from collections.abc import Mapping


def culprits(row: Mapping, report: Mapping, result: Mapping) -> list[str]:
    """Rank the likely causes for one placed row.

    Args: row: the row with its file's facts; report: schema 1; result: what `place` found so far (percent_of_limit [%], phase, bound).
    Returns sentences, at most six.
    """
    if result["above_roof"]:
        found = _above(row, report, result)
    else:
        found = _below(row, report, result)
    found.sort(key=lambda pair: -pair[0])
    return [text for _, text in found][:6]


def _above(row: Mapping, report: Mapping, result: Mapping) -> list[tuple[float, str]]:
    scenario, model = report.get("scenario") or {}, report.get("model") or {}
    found: list[tuple[float, str]] = []
    if row.get("speculative") or row.get("acceptance_length"):
        length = row.get("acceptance_length")
        found.append(
            (
                9,
                f"The run speculates{f' and keeps {length:g} tokens per step' if isinstance(length, (int, float)) else ''}, so it may pass "
                f"the roof of plain decoding: set the draft length and acceptance.",
            )
        )
    if row.get("cached_tokens") or row.get("prefix_hit_pct"):
        found.append(
            (8.5, "Part of the prompt came from the prefix cache, so fewer tokens were computed than counted: set the cached tokens.")
        )
    if mismatch := size_mismatch(row, model):
        found.append((8, mismatch))
    gpus, devices = row.get("gpus"), (report.get("layout") or {}).get("devices", 1)
    if isinstance(gpus, (int, float)) and gpus > devices:
        found.append((8, f"The file reports {gpus:g} GPUs, the scenario has {devices}."))
    if "raw" in row and not any(row.get(k) for k in ("model", "model_file", "params", "params_b", "params_m")):
        found.append((7.2, "The file names no model: check that the scenario's is the one that ran."))
    if row.get("trust") == "above_roof_expected":
        found.append((7.5, "The figure is beyond any chip; the tool most likely counted or timed it wrongly."))
    memory = result["bound"] == "memory"
    far = result["percent_of_limit"] > 230  # more than a narrower format or a doubled peak explains
    if far and not row.get("aggregate") and result["phase"] != "whole run" and row.get("unit", "token/s") == "token/s":
        found.append(
            (
                5.2 if memory else 6.2,
                "So far above the roof, the rate most likely counts more than one sequence's own tokens: a sum over requests, or cached and prompt tokens too.",
            )
        )
    if row.get("aggregate") and scenario.get("batch", 1) == 1 and result["phase"] != "prefill":
        found.append((7, "The rate is a sum over the batch, and the scenario has batch 1: set the batch that ran."))
    if memory:
        found.append(
            (
                6,
                f"The weights may hold fewer bits than the scenario's {(report.get('formats') or {}).get('weights', 'format')}, or the KV "
                f"cache may be quantised.",
            )
        )
        if (model.get("parameters") or {}).get("experts"):
            found.append(
                (
                    5.5,
                    "Tokens of one batch share experts more than uniform routing says, so fewer expert weights are read than assumed: raise the routing.",
                )
            )
        if result["phase"] == "prefill":
            found.append((5, "A repeated prompt may have been answered from a prefix cache."))
        if 0 < (model.get("weights_bytes") or 0) < 200e6:
            found.append(
                (6.5, "The model is small enough to stay in the chip's cache, which is faster than the memory the roof is drawn for.")
            )
        found.append((3, "Speculative decoding or multi-token prediction would do this, if it was on."))
        found.append((2, "The chip may be another variant with faster memory, or run overclocked."))
    else:
        found.append(
            (3 if far else 6, "The arithmetic may run in a narrower format than assumed (FP8 or INT8 activations), with twice the peak.")
        )
        found.append((8 if far else 5.5, "A repeated prompt may have been answered from a prefix cache, so fewer tokens were computed."))
        found.append(
            (4, "The peak the figure is held against is dense; a sparse run, or FP16 accumulation on a consumer card, has twice that.")
        )
        found.append((2, "The prompt may be shorter than assumed, or only part of it was timed."))
    return found


def size_mismatch(row: Mapping, model: Mapping) -> str | None:
    """A sentence where the file states another number of parameters than the scenario's model has, else None."""
    stated = (
        row.get("params")
        or (row["params_b"] * 1e9 if isinstance(row.get("params_b"), (int, float)) else None)
        or (row["params_m"] * 1e6 if isinstance(row.get("params_m"), (int, float)) else None)
    )
    total = (model.get("parameters") or {}).get("total")
    if stated and total and not 0.85 < stated / total < 1.18:
        return f"The file's model has {stated / 1e9:.3g} B parameters, the scenario's {total / 1e9:.3g} B: it is another model."
    size = (
        row.get("size_bytes")
        or (row["size_gib"] * 2**30 if isinstance(row.get("size_gib"), (int, float)) else None)
        or (row["size_mib"] * 2**20 if isinstance(row.get("size_mib"), (int, float)) else None)
    )
    weights = model.get("weights_bytes")
    if size and weights and not 0.8 < size / weights < 1.25:
        return f"The file's weights take {size / 1e9:.3g} GB, the scenario's {weights / 1e9:.3g} GB: it is another number format."
    return None


def _below(row: Mapping, report: Mapping, result: Mapping) -> list[tuple[float, str]]:
    percent, phase, bound = result["percent_of_limit"], result["phase"], result["bound"]
    model, layout = report.get("model") or {}, report.get("layout") or {}
    found: list[tuple[float, str]] = []
    if mismatch := size_mismatch(row, model):
        found.append((9.5, mismatch))
    if row.get("engine_of_file") == "mlx" and "apple" not in str((report.get("hardware") or {}).get("id")):
        found.append((9.6, "MLX runs on Apple's chips, and the scenario names another."))
    if percent > 100:
        return [*found, (9, f"{percent:.0f} % of the limit: at the roof, within what clocks and rounding make of it.")]
    if percent >= 80:
        return [
            *found,
            (
                9,
                f"{percent:.0f} % of the limit is as good as engines get; only fewer bytes or FLOPs per token (a smaller format, a larger "
                f"batch, speculation) go further.",
            ),
        ]
    if row.get("speculative") and phase != "prefill" and not (report.get("scenario") or {}).get("draft"):
        found.append((9.3, "The run speculates, so the roof of plain decoding is not its roof: set the draft length and acceptance."))
    typical = _typical(result, report)
    if typical and not (row.get("metric") == "ttft_ms" and _queues(row)):
        found.append(typical)
    layers = model.get("layers")
    ngl = row.get("ngl")
    if isinstance(ngl, int) and not isinstance(ngl, bool) and layers and ngl < layers:
        found.append(
            (
                9.4,
                f"Only {ngl} of {layers} layers ran on the GPU; the rest waited for host memory."
                if ngl
                else "No layer ran on the GPU (ngl 0): this is the CPU's speed.",
            )
        )
    if isinstance(row.get("n_cpu_moe"), int) and row["n_cpu_moe"] > 0:
        found.append((9.2, f"The experts of {row['n_cpu_moe']} layers stayed in host memory (n_cpu_moe)."))
    if str(row.get("backend", "")).upper() in ("CPU", "BLAS") and "hardware" in row:
        found.append((9.1, "The CPU backend ran, whatever chip the scenario names."))
    devices = layout.get("devices") or 1
    if devices > 1 and (row.get("split_mode") == "layer" or layout.get("pp", 1) == devices):
        found.append((6.5, f"With layers split over {devices} devices they work one after another on a single sequence."))
    elif devices > 1:
        found.append((6, f"{devices} chips wait for each other twice a layer; small messages cost latency, not bandwidth."))
    if phase == "decode":
        found += _below_decode(row, report, result)
    elif phase == "prefill":
        found += _below_prefill(row, report, result)
    else:
        found += _below_whole(row, report, result)
    if row.get("warm") is False or row.get("repetitions") == 1:
        found.append((3.5, "It is a single run: the first one also loads, compiles or warms up."))
    if bound == "memory" and percent < 50:
        found.append((1.5, "Power or thermal limits can lower the clocks of a long run."))
    return found


def _times(ratio: float) -> str:
    """A ratio with two figures, without an exponent."""
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"


def _queues(row: Mapping) -> bool:
    """True if requests may have waited behind others."""
    many = row.get("concurrency")
    return isinstance(many, (int, float)) and many > 1 or row.get("request_rate") == "inf"


def _typical(result: Mapping, report: Mapping) -> tuple[float, str] | None:
    of_expected = result.get("percent_of_expectation")
    what = {"memory": "bandwidth", "compute": "peak compute", "network": "link bandwidth"}.get(result["bound"] or "", "the limit")
    if of_expected:
        if of_expected >= 85:
            return (
                9,
                f"{result['percent_of_limit']:.0f} % of {what}: typical of this engine on this chip ({of_expected:.0f} % of what is measured there).",
            )
        return (
            5.3,  # above what the format costs: what engines reach has that in it already
            f"Engines usually come {_times(100 / of_expected)} times nearer to the roof here, so something in this run is slow rather than in the "
            f"engine.",
        )
    if result["bound"] == "memory" and result["phase"] == "decode" and 55 <= result["percent_of_limit"] < 80:
        return 7, f"{result['percent_of_limit']:.0f} % of {what}: kernels that stream weights usually reach 60 to 85 %."
    if result["bound"] == "compute" and 35 <= result["percent_of_limit"] < 80:
        return 7, f"{result['percent_of_limit']:.0f} % of {what}: large matrix products usually reach 50 to 75 %."
    return None


def _below_decode(row: Mapping, report: Mapping, result: Mapping) -> list[tuple[float, str]]:
    found: list[tuple[float, str]] = []
    model, scenario = report.get("model") or {}, report.get("scenario") or {}
    operators = sum(op.get("count", 1) for op in (report.get("decode") or {}).get("operators", ()))
    step, lost = result["measured_s"], result["measured_s"] - result["limit_s"]
    launch = 3e-6 * operators
    if operators and launch > 0.2 * lost:
        found.append(
            (
                4 + 5 * min(launch / lost, 1.0),
                f"A step launches about {operators:.0f} kernels in {step * 1e3:.3g} ms; at some 3 us each that is "
                f"{100 * min(launch / step, 1):.0f} % of it. CUDA graphs or a compiled step remove most of it.",
            )
        )
    quant = str(row.get("quant") or "")
    if quant.upper().startswith("IQ"):
        found.append((6.8, f"{quant} unpacks through lookup tables, which keeps cores busy before memory is."))
    elif quant and quant.upper() not in ("F16", "BF16", "FP16", "F32", "FP32"):
        found.append(
            (5.2, f"Unpacking {quant} weights costs instructions; such kernels often stay below the bandwidth of plain 16-bit ones.")
        )
    batch = scenario.get("batch", 1)
    if batch > 4:
        found.append(
            (6, f"At batch {batch} the kernels of many engines leave the matrix-vector path but do not yet fill the matrix units.")
        )
    depth = row.get("n_depth") or 0
    if isinstance(depth, (int, float)) and depth >= 4096:
        found.append(
            (
                6.2,
                f"At a depth of {depth:,.0f} tokens attention reads the KV cache with less bandwidth than weights are read, more so without "
                f"flash attention.",
            )
        )
        if row.get("fa") == 0:
            found.append((7.2, "Flash attention was off."))
    if row.get("metric") in ("tpot_ms", "decode_tps_per_user"):
        found.append(
            (
                6.6,
                "In a running service the time per token also waits for the prefill of other requests, for scheduling and for the client.",
            )
        )
    if (model.get("parameters") or {}).get("experts"):
        found.append((5.5, "Expert weights are read in small pieces, and more experts may be touched than expected."))
    if isinstance(row.get("n_gen"), int) and 0 < row["n_gen"] < 32:
        found.append((4.5, f"Only {row['n_gen']} tokens were generated; start-up weighs in."))
    return found


def _below_prefill(row: Mapping, report: Mapping, result: Mapping) -> list[tuple[float, str]]:
    found: list[tuple[float, str]] = []
    prompt = row.get("n_prompt") or row.get("mean_input_len")
    if row.get("metric") == "ttft_ms":
        if _queues(row):
            found.append(
                (9, "The time to first token includes waiting behind other requests, so it is no prefill time: compare at concurrency 1.")
            )
        else:
            found.append(
                (6, "The time to first token includes tokenising, scheduling, the first decode step and the network to the client.")
            )
    if isinstance(prompt, (int, float)) and prompt < 128:
        found.append(
            (8.2, f"A prompt of {prompt:.0f} tokens does not fill the matrix units; prefill rates count from a few hundred tokens on.")
        )
    elif isinstance(prompt, (int, float)) and prompt < 512:
        found.append((5.5, f"A prompt of {prompt:.0f} tokens leaves part of the last tiles of each product idle."))
    ubatch = row.get("n_ubatch")
    if isinstance(ubatch, int) and isinstance(prompt, (int, float)) and 0 < ubatch < prompt:
        found.append((5.8, f"The prompt went in pieces of {ubatch} tokens (n_ubatch), each reading all weights again."))
    quant = str(row.get("quant") or "")
    if quant and quant.upper() not in ("F16", "BF16", "FP16", "F32", "FP32"):
        found.append((6.4, f"{quant} weights are unpacked before or inside each product, which large prompts pay for in compute."))
    backend = str(row.get("backend") or "")
    if backend in ("Vulkan", "OpenCL", "SYCL", "Kompute"):
        found.append((6.9, f"The {backend} backend may not use the chip's matrix units."))
    depth = row.get("n_depth") or 0
    if isinstance(depth, (int, float)) and depth >= 4096:
        found.append(
            (
                5.9,
                f"At a depth of {depth:,.0f} tokens attention over the cache takes a growing share, at lower efficiency than the products.",
            )
        )
    return found


def _below_whole(row: Mapping, report: Mapping, result: Mapping) -> list[tuple[float, str]]:
    found: list[tuple[float, str]] = [
        (5, "The time holds both phases, scheduling between them and the start and end of the run, when fewer requests are in flight.")
    ]
    if row.get("concurrency") is not None and row.get("request_rate") not in (None, "inf"):
        found.append((7, f"Requests arrive at {row['request_rate']} per second, so the service may simply not have been asked for more."))
    if isinstance(row.get("failed"), int) and row["failed"] > 0:
        found.append((6.5, f"{row['failed']} requests failed."))
    return found


def kernel_culprits(result: Mapping, kernel: Mapping) -> list[str]:
    """Likely causes for one kernel, from its two percentages; none where the row is no kernel's.

    >>> kernel_culprits({"above_roof": False, "bandwidth_percent": 91.0, "compute_percent": 34.0, "bound": "memory"}, {"seconds": 1e-5})[0][:32]
    '91 % of bandwidth: the kernel is'
    """
    if kernel.get("whole_model"):
        return []
    memory, compute = result.get("bandwidth_percent") or 0.0, result.get("compute_percent") or 0.0
    if result["above_roof"]:
        if memory > compute:
            return ["The bytes may be counted at a cache, not at memory; or the chip has faster memory than named."]
        return [
            "The peak may be that of another format (TF32 or FP8 against FP32), or FLOPs of a fused or sparse kernel are counted twice."
        ]
    if max(memory, compute) >= 75:
        side = f"{memory:.0f} % of bandwidth" if memory >= compute else f"{compute:.0f} % of peak compute"
        return [f"{side}: the kernel is at its roof; only moving fewer bytes or computing less helps."]
    found = []
    seconds = kernel.get("seconds")
    if seconds and seconds < 5e-6:
        found.append(f"It runs for {seconds * 1e6:.2g} us, so launch and ramp-up dominate: fuse it or batch it.")
    if memory < 60 and compute < 60:
        found.append(
            "Neither memory nor arithmetic is busy: look for latency, that is too few warps or blocks, dependent loads, uncoalesced access or a long tail."
        )
    if result.get("bound") == "memory":
        found.append("It is on the memory side: larger loads per thread and more of them in flight raise bandwidth.")
    elif result.get("bound") == "compute":
        found.append("It is on the compute side: check that the matrix units are used and that tiles fill the chip.")
    return found
