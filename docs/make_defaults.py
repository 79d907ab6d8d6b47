"""Write roofline/data/families.json: the defaults of the library's config classes, for the fields that families read.

    python docs/make_defaults.py        (needs transformers 5.24.0, which the package itself does not)

A field is kept if its name appears as a string in roofline/families/*.py, a model type if it appears there too.
"""

import dataclasses
import json
import re
from pathlib import Path

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

ROOT = Path(__file__).parent.parent
WORDS = set(
    re.findall(r'"([A-Za-z_0-9-]+)"', "".join(p.read_text("utf-8") for p in sorted((ROOT / "roofline/families").glob("*.py"))))
)
SKIP = {"id2label", "label2id", "architectures", "transformers_version", "dtype", "model_type"}
# Spellings that older or remote-code configs use and no class here declares.
OLDER = {
    "bloom": {"hidden_size": "n_embed"},
    "chatglm": {"num_hidden_layers": "num_layers", "vocab_size": "padded_vocab_size"},
    "exaone": {"num_hidden_layers": "num_layers"},
    "falcon": {"num_hidden_layers": "n_layer", "num_attention_heads": "n_head", "hidden_size": "n_embed"},
    "mamba": {"hidden_size": "d_model", "num_hidden_layers": "n_layer"},
    "phi-msft": {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"},
}


def fields(cls) -> dict:
    """The class's declared defaults, where JSON can say them."""
    found = {}
    for field in dataclasses.fields(cls):
        if field.name not in WORDS or field.name in SKIP:
            continue
        value = field.default if field.default is not dataclasses.MISSING else None
        if field.default is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        elif field.default is dataclasses.MISSING:
            continue
        value = list(value) if isinstance(value, tuple) else value
        try:
            text = json.dumps(value)
        except TypeError:
            text, value = "null", None
        if not isinstance(value, dict) or len(text) <= 400:
            found[field.name] = value
    return found


def collect() -> tuple:
    """(defaults, spellings, parts) of every type that families name, nested configs included."""
    defaults, spellings, parts, seen = {}, {}, {}, set()

    def add(name: str, cls) -> None:
        defaults[name] = fields(cls)
        same = {k: v for k, v in (getattr(cls, "attribute_map", None) or {}).items() if k in WORDS or v in WORDS}
        if same:
            spellings[name] = same

    def walk(cls) -> None:
        if cls in seen:
            return
        seen.add(cls)
        for sub in (getattr(cls, "sub_configs", None) or {}).values():
            if isinstance(sub, type) and dataclasses.is_dataclass(sub):
                if sub.model_type and sub.model_type not in defaults and sub.model_type in WORDS:
                    add(sub.model_type, sub)
                walk(sub)

    for name in sorted(set(CONFIG_MAPPING_NAMES) & WORDS):
        add(name, CONFIG_MAPPING[name])
        walk(CONFIG_MAPPING[name])
    for name in sorted(defaults):
        nested = (getattr(CONFIG_MAPPING[name], "sub_configs", None) or {}) if name in CONFIG_MAPPING_NAMES else {}
        fixed = {
            key: sub for key, sub in nested.items() if isinstance(sub, type) and getattr(sub, "model_type", "") and key in WORDS
        }
        for sub in fixed.values():
            if sub.model_type not in defaults:
                add(sub.model_type, sub)
        if fixed:
            parts[name] = {key: sub.model_type for key, sub in fixed.items()}
    for name, names in OLDER.items():
        spellings.setdefault(name, {}).update(names)
    return defaults, spellings, parts


def rows(table: dict) -> str:
    return ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(table.items()))


if __name__ == "__main__":
    defaults, spellings, parts = collect()
    text = (
        f'{{\n"source": "transformers {transformers.__version__}",\n"aliases": {{\n{rows(spellings)}\n}},\n'
        f'"parts": {{\n{rows(parts)}\n}},\n"defaults": {{\n{rows(defaults)}\n}}\n}}\n'
    )
    json.loads(text)
    (ROOT / "roofline/data/families.json").write_text(text, encoding="utf-8")
    print(len(defaults), "types,", len(text), "bytes")
