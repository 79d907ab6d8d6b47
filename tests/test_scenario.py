"""A Scenario survives every conversion; old links keep working."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline import InputError, Scenario, evaluate
from roofline.cli import build_parser
from roofline.options import scenario_of
from roofline.scenario import resolve

CONFIG = '{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 256, "num_key_value_heads": 2, "rms_norm_eps": 1e-5}'

# Golden links: published once, read for ever. Add to this table; never edit a row.
GOLDEN = [
    ("#s=1&model=llama-3.1-8b&hardware=h100-sxm", {}),
    ("#s=1&model=llama-3.1-70b&hardware=h200-sxm&devices=2&weights=fp8&batch=32&prompt=8192&output=512", {"model": "llama-3.1-70b", "hardware": "h200-sxm", "devices": 2, "weights": "fp8", "batch": 32, "prompt": 8192, "output": 512}),
    ("s=1&model=llama-3.1-8b&hardware=custom&peak=989000000000000&bandwidth=3350000000000&fused=false", {"hardware": "custom", "peak": 989e12, "bandwidth": 3.35e12, "fused": False}),
]


@pytest.mark.parametrize(("link", "fields"), GOLDEN)
def test_golden_links(link, fields):
    scenario, notices = Scenario.from_fragment(link)
    assert scenario == Scenario(**fields) and notices == ()


scenarios = st.builds(Scenario, batch=st.integers(1, 10**6), prompt=st.integers(2, 10**6), output=st.integers(1, 10**6), cached=st.integers(0, 1), weights=st.sampled_from(["auto", "fp8", "q4_k_m"]),
                      routing=st.floats(0, 1), fused=st.booleans(), devices=st.sampled_from([None, 1, 8]), network=st.sampled_from([None, 5e10]), config=st.sampled_from(["", CONFIG]))


@given(scenarios)
def test_round_trips(s):
    assert Scenario.from_dict(s.to_dict()) == s
    back, notices = Scenario.from_fragment(s.to_fragment())
    assert notices == () and back.replace(config="") == s.replace(config="")
    if s.config:
        assert evaluate(back.replace(devices=None)).model["parameters"] == evaluate(s.replace(devices=None)).model["parameters"]
    else:
        assert scenario_of(build_parser().parse_args(s.to_cli().split()[1:])).replace(routing=0.0) == s.replace(routing=0.0)


def test_short_link_for_defaults():
    assert Scenario().to_fragment() == "s=1&model=llama-3.1-8b&hardware=h100-sxm"


def test_unknown_parts_are_named_not_fatal():
    scenario, notices = Scenario.from_fragment("#s=9&model=llama-3.1-8b&hardware=h100-sxm&colour=red")
    assert scenario == Scenario() and "schema 9" in notices[0] and "colour" in notices[1]


@pytest.mark.parametrize("link", ["#config=!!!", "#config=eJw", "#batch=0", "#batch=NaN", "#fused=maybe", "#prompt=-1", "#config=" + "A" * 300_000, "#hardware=custom&model=" + "x" * 500])
def test_hostile_links_are_refused_in_a_sentence(link):
    with pytest.raises(InputError) as error:
        Scenario.from_fragment(link)
    assert len(str(error.value)) < 300 and "\n" not in str(error.value)


def test_a_bomb_is_not_inflated():
    import base64
    import zlib
    bomb = base64.urlsafe_b64encode(zlib.compress(b"[" * 60_000_000, 9)).decode().rstrip("=")
    with pytest.raises(InputError, match="longer than"):
        Scenario.from_fragment("#config=" + bomb)


@pytest.mark.parametrize(("fields", "name"), [({"batch": 0}, "batch"), ({"batch": 1.5}, "batch"), ({"prompt": "many"}, "prompt"), ({"cached": 1024}, "cached"), ({"routing": 2}, "routing"),
                                              ({"weights": 7}, "weights"), ({"utilisation": 0}, "utilisation"), ({"colour": 1}, "scenario field"), ({"model": "x" * 200}, "model")])
def test_bad_fields_name_themselves(fields, name):
    with pytest.raises(InputError) as error:
        Scenario.from_dict(fields)
    assert error.value.field == name


def test_four_bit_weights_meet_the_four_bit_unit_where_there_is_one():
    """B200's dense FP4 peak is 9 PFLOP/s (NVIDIA, Blackwell datasheet); H100 has no FP4 unit, so the same weights compute in FP8 or wider there."""
    for activations in ("auto", "fp4", "nvfp4"):
        r = resolve(Scenario(model="llama-3.1-8b", hardware="b200-sxm", weights="nvfp4", activations=activations))
        assert r.compute == "fp4" and r.activations.bits == 4 and 8.9e15 <= r.chip.roof_of(r.compute)[1] <= 1.01e16
    assert resolve(Scenario(model="llama-3.1-8b", hardware="h100-sxm", weights="nvfp4")).compute != "fp4"


@pytest.mark.parametrize("field", ["draft_model", "peak_format", "read_as"])
def test_a_name_that_means_nothing_is_refused_even_where_nothing_asks_for_it(field):
    with pytest.raises(InputError, match="zzz"):
        resolve(Scenario(**{field: "zzz"}))


def test_brackets_that_would_exhaust_a_small_stack_are_refused_before_they_are_parsed():
    # 3,000 levels parse under CPython; in the browser they take the engine down for good.
    for text in ('{"a":' * 3000 + "1" + "}" * 3000, '{"a":1,"b":' * 3000 + "1" + "}" * 3000, "[" * 3000 + "]" * 3000):
        with pytest.raises(InputError, match="nested too deeply"):
            resolve(Scenario(config=text))
    with pytest.raises(InputError, match="model_type"):  # brackets inside a text are no nesting
        resolve(Scenario(config='{"a": "' + "[{" * 3000 + '"}'))


@pytest.mark.parametrize("wrong", [None, 7, {"model": "llama-3.1-8b"}, "llama-3.1-8b", []])
def test_what_is_no_scenario_is_refused_in_a_sentence(wrong):
    with pytest.raises(InputError, match="must be a Scenario"):
        evaluate(wrong)
    if not isinstance(wrong, str):
        with pytest.raises(InputError, match="must be text"):
            Scenario.from_fragment(wrong)
