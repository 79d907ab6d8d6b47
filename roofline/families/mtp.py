"""What is said of multi-token-prediction layers: they draft, plain decoding does not run them, and no count includes them.

The reference classes do not build them, and a config gives no more than their number, so their size is that of the model's last layer
(with the matrix that joins a token's embedding to the last features, 2 x hidden x hidden); those of MiMo-V2 and Step-3.5 have a plain feed-forward under a window.
"""

from __future__ import annotations

FIELDS = ("num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers", "mtp_num_layers", "num_mtp_modules")
# Families whose published checkpoints hold such layers though their configs may not say so (model cards and weight lists).
PUBLISHED = {"qwen3_next": 1, "glm4_moe": 1, "mimo": 1, "mimo_v2_flash": 3}


def stated(*configs: dict) -> int | None:
    """How many such layers the configs (the outer one, the language model's) say there are; None if they do not say."""
    for config in configs:
        for field in FIELDS:
            value = config.get(field)
            if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1000:
                return value
    return None


def size(m) -> int:
    """Parameters of one such layer [parameters]."""
    h = m.hidden
    plain = [t for t in m.tensors if t.group == "mlp" and t.layers]
    if m.c.type in ("mimo_v2_flash", "step3p5") and plain:
        sliding = next((a.layers[0] for a in m.attentions if a.window), m.n - 1)
        own = sum(t.rows * t.cols * t.copies for t in plain if plain[0].layers[0] in t.layers)
        own += sum(t.rows * t.cols for t in m.tensors if t.group in ("attention_projection", "norm") and sliding in t.layers)
    else:
        own = sum(t.rows * t.cols * t.copies for t in m.tensors if m.n - 1 in t.layers and t.group != "vision")
    return own + 2 * h * h + 3 * h


def note(m, *configs: dict) -> str | None:
    """The sentence for a reader, or None where there are no such layers."""
    count = stated(*configs)
    if count is None:
        count = PUBLISHED.get(m.c.type)
    if not count or not m.n:
        return None
    each = size(m)
    parameters = f"{each / 1e9:.3g} billion" if each >= 1e9 else f"{each / 1e6:.3g} million"
    if count == 1:
        return f"1 multi-token-prediction layer, about {parameters} parameters, is not counted: it drafts, and plain decoding does not run it."
    return f"{count} multi-token-prediction layers, about {parameters} parameters each, are not counted: they draft, and plain decoding does not run them."
