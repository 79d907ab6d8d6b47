"""The command line: `roofline ...` or `python -m roofline ...`."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from . import catalogue, ceilings, checkpoint_index, cli_text, document, explore_cli, formats, hardware, levers, roof, validate
from .errors import InputError, nearest
from .model import kv_bytes_per_token, parameters, state_bytes_per_sequence
from .options import emit, read_bytes, read_text, scenario_of, scenario_options
from .plot import commands as plot_commands
from .report import evaluate
from .scenario import Scenario
from .trace import commands as trace_commands
from .units import format_number, format_quantity, parse_quantity


class _Parser(argparse.ArgumentParser):
    """argparse whose errors are one sentence on stderr and exit code 2."""

    def error(self, message):
        more = f"`{self.prog} --help` lists what there is"
        if found := re.fullmatch(r"unrecognized arguments: (.*)", message, re.DOTALL):
            first = found[1].partition("=")[0]
            raise InputError("option", first, f"is not known{nearest(first, self.options())}; {more}")
        if found := re.fullmatch(r"argument \w+: invalid choice: '(.*?)' \(choose from (.*)\)", message, re.DOTALL):
            raise InputError("command", found[1], f"is not known{nearest(found[1], re.findall(r'[a-z-]+', found[2]))}; {more}")
        if found := re.fullmatch(r"the following arguments are required: (.*)", message):
            raise InputError("option", found[1], f"must be given; {more}")
        if found := re.fullmatch(r"argument (?:-\w/)?-*([\w-]+)(?: \S+)?: invalid (int|float) value: '(.*)'", message, re.DOTALL):
            raise InputError(found[1], found[3], "must be a whole number" if found[2] == "int" else "must be a number")
        if found := re.fullmatch(r"argument (?:-\w/)?-*([\w-]+)(?:[ /]\S+)*: expected one argument", message):
            raise InputError(found[1], "", "needs a value")
        raise InputError("command", self.prog.rpartition(" ")[2], f"{message if len(message) <= 200 else message[:197] + '...'}; {more}")

    def options(self) -> list:
        """The names of the options of this command."""
        commands = [a for a in self._actions if isinstance(a, argparse._SubParsersAction)]
        return [name for parser in (self, *(p for a in commands for p in a.choices.values())) for name in parser._option_string_actions]


def _model(args):
    if args.model is None and args.index:
        raise InputError("index", args.index, "needs a model to compare with; name it first")
    if args.model is None:
        entries = catalogue.entries()
        if args.json:
            return emit({"models": [{"id": e.id, "name": e.name, "hub": e.hub, "source": e.source, "provenance": e.provenance} for e in entries]})
        for e in entries:
            print(f"{e.id:34} {e.hub}")
        return None
    if catalogue.is_path(args.model) and not args.model.endswith(".gguf"):
        from .families import from_hf_config
        arch = from_hf_config(catalogue.read_config_text(read_text(args.model, catalogue.MAX_CONFIG)), id=Path(args.model).stem[:120], read_as=args.read_as)
    else:
        arch = catalogue.load(args.model)
    weights = formats.parse(args.weights) if args.weights else arch.quantization or formats.parse("bf16")
    kv = formats.parse(args.kv, "kv") if args.kv else formats.parse("bf16")
    element = lambda a: formats.kv_bytes_per_element(kv, a.cached_vector)
    kv_token = kv_bytes_per_token(arch) if not args.kv else sum((a.kv_elements / a.compress + a.index_elements) * a.count * element(a) for a in arch.attentions)
    stored = formats.weight_bytes(arch, weights)
    answer = {
        "id": arch.id, "name": arch.name, "architecture": arch.family, "parameters": parameters(arch),
        "kv_bytes_per_token": kv_token, "state_bytes_per_sequence": state_bytes_per_sequence(arch), "weights_bytes": sum(stored),
        "weights": getattr(weights, "name", str(weights)), "kv": kv.name, "bits_per_weight": 8 * sum(stored) / parameters(arch)["total"],
        "layers": arch.layer_count, "hidden": arch.hidden, "vocab": arch.vocab, "tied": arch.tied, "max_context": arch.max_context,
        "tensors": [{"name": t.name, "group": t.group, "shape": [t.rows, t.cols], "copies": t.copies, "layers": t.count, "parameters": t.parameters, "bytes": b}
                    for t, b in zip(arch.tensors, stored, strict=True)],
        "assumed": [{"field": f, "value": v, "source": w} for f, v, w in arch.assumed], "notes": list(arch.notes), "source": arch.source,
    }
    if args.index:
        answer["index"] = checkpoint_index.finding(arch, checkpoint_index.read_index(read_text(args.index, checkpoint_index.MAX_INDEX)))
    if args.json:
        return emit(answer)
    print(f"{arch.name or arch.id} ({arch.family}): {format_quantity(answer['parameters']['total'], '')} parameters, {format_quantity(answer['parameters']['active'], '')} active")
    for key, value in answer["parameters"].items():
        if value:
            print(f"  {key:16} {value:>20,}")
    print(f"  KV cache {format_number(kv_token)} bytes a token in {kv.name}; state {answer['state_bytes_per_sequence']:,} bytes a sequence")
    print(f"  weights  {format_quantity(sum(stored), 'B')} in {answer['weights']} ({answer['bits_per_weight']:.3f} bits a weight)")
    for a in answer["assumed"]:
        print(f"  assumed  {a['field']} = {a['value']} ({a['source']})")
    for note in answer["notes"]:
        print(f"  note     {note}")
    for line in [answer["index"]["text"], *answer["index"]["notes"]] if args.index else []:
        print(f"  index    {line}")
    return None


def _chip_dict(c) -> dict:
    return {name: (dict(getattr(c, name)) if name == "peaks" else list(getattr(c, name)) if name == "unverified" else getattr(c, name)) for name in c.__slots__}


def _hardware(args):
    if args.id:
        c = hardware.load(args.id)
        if args.json:
            return emit(_chip_dict(c))
        print(f"{c.name} ({c.vendor}, {c.year}), grade {c.grade}: {c.source}")
        for name, value in c.peaks:
            print(f"  {name:6} {format_quantity(value, 'FLOP/s'):>16}   ridge {format_number(value / c.bandwidth_bytes_per_s)} FLOP/byte")
        print(f"  memory {format_quantity(c.memory_bytes, 'B')} at {format_quantity(c.bandwidth_bytes_per_s, 'B/s')}; link {c.link or 'none'} {format_quantity(c.link_bytes_per_s, 'B/s')} one way, {c.domain or 1} chips")
        if c.note:
            print(f"  {c.note}")
        return None
    chips = [hardware.load(i) for i in hardware.ids()]
    if args.json:
        return emit({"hardware": [_chip_dict(c) for c in chips]})
    for c in chips:
        print(f"{c.id:20} {c.name:28} {format_quantity(c.memory_bytes, 'B'):>10} {format_quantity(c.bandwidth_bytes_per_s, 'B/s'):>12} {format_quantity(max(v for _, v in c.peaks), 'FLOP/s'):>14}  grade {c.grade}")
    return None


def _estimate(args):
    report = evaluate(scenario_of(args))
    return emit(report.to_dict()) if args.json else print(cli_text.estimate(report))


def _levers(args):
    answer = levers.levers(scenario_of(args), args.goal)
    return emit(answer) if args.json else print(cli_text.levers(answer))



def _layouts(args):
    answer = levers.layouts(scenario_of(args), args.goal)
    return emit(answer) if args.json else print(cli_text.layouts(answer))



def _compare(args):
    one = scenario_of(args)
    changes = {}
    for pair in args.change:
        key, sign, value = pair.partition("=")
        if not sign:
            raise InputError("change", pair, "must read field=value, such as weights=fp8")
        changes[key.replace("-", "_")] = value
    two = Scenario.from_dict(one.to_dict() | changes)
    answer = levers.compare(one, two)
    return emit(answer) if args.json else print(cli_text.compare(answer))


def _capability(args):
    from .capability import capability
    answer = capability(scenario_of(args), args.most)
    return emit(answer) if args.json else print(cli_text.capability(answer))


def _roof(args):
    answer = roof.bare(peak=parse_quantity(args.peak, "FLOP/s", field="peak", low=1, high=1e25), bandwidth=parse_quantity(args.bandwidth, "bytes/s", field="bandwidth", low=1, high=1e25),
                       intensity=parse_quantity(args.intensity, "FLOP/byte", field="intensity", low=1e-9, high=1e12))
    if args.json:
        return emit(answer)
    print(f"ridge {format_number(answer['ridge_flops_per_byte'])} FLOP/byte; at {format_number(answer['intensity_flops_per_byte'])} FLOP/byte {answer['bound']}-bound: "
          f"{format_quantity(answer['attainable_flops_per_s'], 'FLOP/s')}, {answer['compute_utilisation']:.1%} of peak, {answer['bandwidth_utilisation']:.1%} of bandwidth")
    return None


def _measured(args):
    from . import measured
    reading = measured.read(read_bytes(args.file), args.file)
    answer = reading.to_dict()
    if args.model and args.hardware:
        from .measured import place
        answer = place.placed(reading, scenario_of(args))
    return emit(answer) if args.json else print(cli_text.measured(answer))


def build_parser() -> argparse.ArgumentParser:
    """The parser of every command."""
    parser = _Parser(prog="roofline", description="How fast can this language model run on this chip, what holds it back, and what should I change?")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)

    def command(name, run, text):
        p = commands.add_parser(name, help=text, description=text)
        p.add_argument("--json", action="store_true", help="one JSON object on stdout")
        p.set_defaults(run=run)
        return p

    p = command("model", _model, "parameters, KV cache and weight bytes of a model (no model: the catalogue)")
    p.add_argument("model", nargs="?", help="catalogue id, hub id or path to a config.json")
    p.add_argument("--weights", help="weight format")
    p.add_argument("--kv", help="KV cache format")
    p.add_argument("--read-as", help="read an unknown model_type as this family")
    p.add_argument("--index", metavar="FILE", help="compare the model's size with what this model.safetensors.index.json states")
    p = command("hardware", _hardware, "a chip's figures with their sources (no id: the catalogue)")
    p.add_argument("id", nargs="?")
    p = command("estimate", _estimate, "one scenario: time, bound, memory")
    scenario_options(p)
    for name, run, text in (("levers", _levers, "what to change, ranked by what it gives here"), ("layouts", _layouts, "every legal layout of these chips, best first")):
        p = command(name, run, text)
        scenario_options(p)
        p.add_argument("--goal", default="tpot" if name == "levers" else "throughput", help="tpot, ttft, throughput, cost or memory")
    p = command("compare", _compare, "the scenario beside a changed one: which operator moved the total")
    scenario_options(p)
    p.add_argument("--change", action="append", default=[], metavar="FIELD=VALUE", help="what is different in the second (may be repeated)")
    p = command("capability", _capability, "published scores of models against active parameters and money, on these chips under this load")
    scenario_options(p, required=False)
    p.add_argument("--most", type=int, default=64, help="chips at most for one model (default 64)")
    p = command("roof", _roof, "the bare roofline: peak, bandwidth and intensity typed by hand")
    for name in ("peak", "bandwidth", "intensity"):
        p.add_argument("--" + name, required=True)
    p = command("measured", _measured, "read the output of a benchmark or profiler")
    p.add_argument("file")
    scenario_options(p, required=False)
    explore_cli.add_commands(command)
    plot_commands.add_commands(command)
    document.add_commands(command)
    trace_commands.add_commands(command)
    ceilings.add_commands(command)
    validate.add_commands(command)
    return parser


def main(argv=None) -> int:
    """Run one command; 0 if it went well, 2 if the user can fix what did not."""
    try:
        for word in sys.argv[1:] if argv is None else argv:
            if word.startswith("--") and word.endswith("=--"):  # argparse would hand on an empty list
                raise InputError(word[2:-3], "--", "is no value")
        args = build_parser().parse_args(argv)
        args.run(args)
        return 0
    except InputError as error:
        print(f"roofline: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
