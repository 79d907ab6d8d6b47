"""params.json of Meta's and Mistral's own checkpoints, against the catalogue models they are."""

import pytest

from roofline import catalogue
from roofline.errors import InputError
from roofline.families import from_hf_config
from roofline.families.params import to_config

# Figures of the published params.json files (llama-models and mistral-inference).
META = {
    "llama-2-7b": {"dim": 4096, "multiple_of": 256, "n_heads": 32, "n_layers": 32, "norm_eps": 1e-05, "vocab_size": 32000},
    "llama-2-70b": {"dim": 8192, "multiple_of": 4096, "ffn_dim_multiplier": 1.3, "n_heads": 64, "n_kv_heads": 8, "n_layers": 80, "norm_eps": 1e-05, "vocab_size": 32000},
    "llama-3-8b": {"dim": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256, "multiple_of": 1024, "ffn_dim_multiplier": 1.3, "rope_theta": 500000.0},
    "llama-3.1-405b": {"dim": 16384, "n_layers": 126, "n_heads": 128, "n_kv_heads": 8, "vocab_size": 128256, "multiple_of": 4096, "ffn_dim_multiplier": 1.2, "use_scaled_rope": True},
    "llama-3.2-1b": {"dim": 2048, "n_layers": 16, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 128256, "multiple_of": 256, "ffn_dim_multiplier": 1.5, "use_scaled_rope": True},
    "llama-3.2-3b": {"dim": 3072, "n_layers": 28, "n_heads": 24, "n_kv_heads": 8, "vocab_size": 128256, "multiple_of": 256, "ffn_dim_multiplier": 1.0, "use_scaled_rope": True},
    "mistral-7b-v0.1": {"dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8, "sliding_window": 4096, "vocab_size": 32000},
    "mistral-nemo-12b": {"dim": 5120, "n_layers": 40, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 131072},
    "mixtral-8x7b": {"dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8, "vocab_size": 32000,
                     "moe": {"num_experts_per_tok": 2, "num_experts": 8}},
}


@pytest.mark.parametrize("ident", META)
def test_a_params_json_is_the_catalogue_model(ident):
    arch, reference = from_hf_config(META[ident]), catalogue.load(ident)
    count = lambda a: (sum(t.parameters for t in a.tensors), sum(t.active_parameters for t in a.tensors), sum(x.kv_elements * x.count for x in a.attentions), a.tied)
    assert count(arch) == count(reference)


@pytest.mark.parametrize("change", [{"dim": 0}, {"dim": "4096"}, {"dim": True}, {"n_layers": None}, {"n_layers": 1e300}, {"n_heads": -1}, {"vocab_size": -1}, {"vocab_size": None},
                                    {"ffn_dim_multiplier": "x"}, {"ffn_dim_multiplier": float("nan")}, {"ffn_dim_multiplier": 1e9}, {"multiple_of": 0}, {"moe": 3}, {"moe": {}},
                                    {"kv_lora_rank": 512}, {"vision_encoder": {}, "kv_lora_rank": 3}, {"head_dim": 0}, {"max_seq_len": "x"}])
def test_hostile_params_are_refused_in_one_sentence(change):
    with pytest.raises(InputError) as error:
        from_hf_config({**META["mixtral-8x7b" if {"moe", "head_dim"} & set(change) else "llama-3-8b"], **change})
    assert "\n" not in str(error.value)


def test_what_the_file_says_is_what_the_config_says():
    config = to_config(META["mistral-7b-v0.1"])
    assert (config["model_type"], config["intermediate_size"], config["sliding_window"], config["head_dim"]) == ("mistral", 14336, 4096, 128)
