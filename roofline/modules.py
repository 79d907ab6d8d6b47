"""Match a checkpoint's module-name patterns (ignored or targeted modules) against the tensors of a model.

Patterns name modules of the published checkpoint: "lm_head", "model.layers.3.mlp.gate", "*.self_attn.*",
"re:.*gate$". A Tensor carries its name without the layer prefix and a list of layers, so a pattern that names
a layer is kept as (rest of the name, layers), and a tensor counts how many of its layers match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache

from .errors import InputError
from .model import Tensor

MAX_PATTERNS = 200_000
MAX_EXPRESSIONS = 2_000
_LAYER = re.compile(r"(?:^|.*?\.)(?:layers|h|blocks|block|layer)\.(\d{1,4})(?:\.(.*)|([*].*))?$", re.DOTALL)
# Layers of a tower or of a multi-token-prediction head are numbered from 0 too; they are not the decoder's.
_TOWERS = re.compile(r"vision|visual|image|audio|multi_modal|multimodal|mm_proj|patch_embed")
_FOREIGN = re.compile(_TOWERS.pattern + r"|(^|\.)mtp|nextn")
_PREFIXES = ("model.layers.", "model.language_model.layers.", "language_model.model.layers.", "backbone.layers.", "layers.")
_ENDS = ("", "model.", "language_model.", "model.language_model.", "language_model.model.")
# What families call the same part.
_CONTAINERS = ("mlp", "block_sparse_moe", "feed_forward", "mixer", "moe", "ffn")
_FUSED = {
    "gate_up_proj": ("gate_proj", "up_proj", "w1", "w3"), "qkv_proj": ("q_proj", "k_proj", "v_proj"), "in_proj_qkvz": ("in_proj_qkv", "in_proj_z"),
    "gate_proj": ("gate_up_proj", "w1"), "up_proj": ("gate_up_proj", "w3"), "down_proj": ("w2",), "w1": ("gate_proj", "gate_up_proj"),
    "w2": ("down_proj",), "w3": ("up_proj", "gate_up_proj"), "q_proj": ("qkv_proj",), "k_proj": ("qkv_proj",), "v_proj": ("qkv_proj",),
    "weights_proj": ("indexers_proj",), "shared_expert": ("shared_experts",), "shared_experts": ("shared_expert", "shared_mlp"),
    "router": ("gate",), "gate": ("router", "gate.wg", "router.layer"),
}


@lru_cache(maxsize=4096)
def module_names(name: str, experts: bool) -> tuple:
    """The names a tensor's module may have, without layer prefix: its own first, then what other writers call it.

    >>> module_names("mlp.experts.down_proj", True)[:2]
    ('mlp.experts.down_proj', 'mlp.experts.0.down_proj')
    """
    name = re.sub(r"\.(weight|bias)$", "", name)
    found = [name]
    if experts and not re.search(r"experts\.\d+\.", name):
        found.append(re.sub(r"experts\.", "experts.0.", name, count=1))
    for other in list(found):
        head, _, last = other.rpartition(".")
        found += [f"{head}.{twin}" if head else twin for twin in _FUSED.get(last, ())]
    if ".indexer." in name:
        found.append(name.replace(".indexer.", ".index_"))
    for other in list(found):
        first, _, rest = other.partition(".")
        if first in _CONTAINERS and rest:
            found += [f"{twin}.{rest}" for twin in _CONTAINERS if twin != first]
    return tuple(dict.fromkeys(found))


def _expression(pattern: str, field: str) -> re.Pattern:
    """Compile one pattern, refusing what could take for ever on a short name."""
    if len(pattern) > 1000 or re.search(r"\)\s*[*+{]", pattern) or len(re.findall(r"[*+{]", pattern)) > 5:
        raise InputError(field, pattern, "is too complicated a pattern; name the modules instead")
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        raise InputError(field, pattern, "is not a valid regular expression") from None


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """Module-name patterns, sorted by kind so that thousands of them match quickly.

    anywhere: literals without a layer number; layered: rest of the name -> layers; globs: (expression for the rest,
    layers); whole: expressions for the whole name; towers: a vision or audio tower is among them.
    """

    anywhere: frozenset
    layered: dict
    globs: tuple
    whole: tuple
    towers: bool = False

    def __bool__(self) -> bool:
        return bool(self.anywhere or self.layered or self.globs or self.whole)

    def layers_of(self, t: Tensor) -> frozenset | set:
        """Which of the tensor's layers match; {-1} for a model-level tensor that does."""
        layers = t.layers or (-1,)
        if t.group == "vision":
            return frozenset(layers) if self.towers else _NONE
        found = set()
        for name in module_names(t.name, t.group == "experts"):
            parts = name.split(".")
            runs = {".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)}
            if not runs.isdisjoint(self.anywhere) or any(a.endswith("." + name) for a in self.anywhere if not t.layers):
                return frozenset(layers)
            for end in range(len(parts) + 1):
                found |= self.layered.get(".".join(parts[:end]), _NONE) & set(layers)
            for expression, those in self.globs:
                if expression.match(name):
                    found |= those & set(layers)
            if self.whole:
                for layer in set(layers) - found:
                    heads = (f"{p}{layer}." for p in _PREFIXES) if layer >= 0 else _ENDS
                    if any(e.match(head + name) for head in heads for e in self.whole):
                        found.add(layer)
        return found


_NONE: frozenset = frozenset()


def read_patterns(patterns, field: str) -> Patterns:
    """Sort a list of module-name patterns into a Patterns.

    Args: patterns: strings, "re:" marks a regular expression, "*" a wildcard; field: for errors.
    Raises InputError for anything else than a list of strings, or one too long.
    """
    if patterns is None:
        patterns = ()
    if isinstance(patterns, str):
        patterns = (patterns,)
    if not isinstance(patterns, (list, tuple, dict, set)) or len(patterns) > MAX_PATTERNS:
        raise InputError(field, type(patterns).__name__, f"must be a list of at most {MAX_PATTERNS} module names")
    anywhere, layered, globs, whole, towers = set(), {}, {}, [], False
    for pattern in patterns:
        if not isinstance(pattern, str) or len(pattern) > 10_000:
            raise InputError(field, pattern, "must be a module name")
        foreign = _FOREIGN.search(pattern)
        towers = towers or bool(_TOWERS.search(pattern))
        if foreign and not pattern.startswith("re:"):
            continue
        if pattern.startswith("re:"):
            whole.append(_expression(pattern[3:], field))
            continue
        pattern = re.sub(r"\.(weight|bias)$", "", pattern.strip("."))
        layer = _LAYER.match(pattern)
        if layer and "*" not in pattern[:layer.start(1)]:
            rest = layer[2] or layer[3] or ""
            table = globs if "*" in rest else layered
            table.setdefault(re.sub(r"experts\.\d+\.", "experts.0.", rest), set()).add(int(layer[1]))
        elif "*" in pattern:
            whole.append(re.compile(translate(pattern)))
        else:
            anywhere.add(pattern)
    if len(whole) > MAX_EXPRESSIONS or len(globs) > MAX_EXPRESSIONS:
        raise InputError(field, len(whole), f"may have at most {MAX_EXPRESSIONS} different wildcards and expressions")
    return Patterns(frozenset(anywhere), {k: frozenset(v) for k, v in layered.items()},
                    tuple((re.compile(translate(k)), frozenset(v)) for k, v in globs.items()), tuple(whole), towers)
