"""What the engine can say, read out of its source: every refusal (InputError), its parts in all their variants.

`reachable` are the modules that the page's bridge brings along; an f-string's holes are filled with samples of what may stand there.
"""

from __future__ import annotations

import ast
import itertools
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Reached by an import, but only for the command line: what the page's methods call of these modules refuses nothing.
COMMAND_LINE = ("document", "document_text", "options", "plot", "trace")
SAMPLES = ("7", "llama", "'llama'", "a, b")
# What stands in a hole where none of the samples does.
USUAL = {
    "error.msg": ("Expecting value",),
    "chip.source": ("given by the user",),
    "', '.join(low)": ("bandwidth_gbs, fp8",),
    "fabric.network_source": ("assumed as fast as the links themselves",),
    "'; '.join(texts)": ("7 such chips hold it",),
    "found['format']": ("published",),
    "reason[:300]": ("it holds no figure",),
}
SPREAD = 400  # variants of one text that are looked at


@dataclass(frozen=True)
class Hole:
    """What is not known before it runs."""

    source: str
    samples: tuple = SAMPLES


@dataclass(frozen=True)
class Refusal:
    """One way to refuse: where it stands, and the variants of each part, each a tuple of texts and holes."""

    where: str
    field: tuple
    value: tuple
    rule: tuple


def _file(dotted: str) -> Path | None:
    path = ROOT.joinpath(*dotted.split("."))
    return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.exists()), None)


def _imports(path: Path):
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*(package[: len(package) - node.level + 1] if node.level else ()), *([node.module] if node.module else ())])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


@cache
def reachable() -> tuple:
    """The Python files that a call of the page can run."""
    todo, seen = [ROOT / "site" / "py" / "bridge.py"], set()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for dotted in _imports(path):
            parts = dotted.split(".")
            if parts[0] == "roofline" and parts[1:2] not in [[name] for name in COMMAND_LINE]:
                todo += [found for i in range(1, len(parts) + 1) if (found := _file(".".join(parts[:i])))]
    return tuple(sorted(seen))


class Source:
    """One module, with what its names stand for."""

    def __init__(self, path: Path):
        self.path, self.tree = path, ast.parse(path.read_text("utf-8"))
        self.around = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.around[child] = node

    def function(self, node):
        while node in self.around:
            node = self.around[node]
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return node
        return self.tree

    def assigned(self, name: str, at) -> list:
        """The expressions that a name is given, in its function or else in the module; of a parameter, what callers in the module pass."""
        scope = self.function(at)
        while True:
            found = []
            for node in ast.walk(scope):
                if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    for target in targets:
                        if isinstance(target, ast.Name) and target.id == name and node.value is not None and (scope is not self.tree or self.function(node) is self.tree):
                            found.append(node.value)
                        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) and len(target.elts) == len(node.value.elts):
                            found += [v for t, v in zip(target.elts, node.value.elts, strict=True) if isinstance(t, ast.Name) and t.id == name]
                elif isinstance(node, ast.For) and isinstance(node.iter, (ast.Tuple, ast.List)):
                    if isinstance(node.target, ast.Name) and node.target.id == name:
                        found += node.iter.elts
                    elif isinstance(node.target, ast.Tuple):
                        place = [t.id if isinstance(t, ast.Name) else None for t in node.target.elts]
                        if name in place and all(isinstance(e, ast.Tuple) and len(e.elts) == len(place) for e in node.iter.elts):
                            found += [e.elts[place.index(name)] for e in node.iter.elts]
            if not found and isinstance(scope, ast.FunctionDef):
                found = self.passed(scope, name)
            if found or scope is self.tree:
                return found
            scope = self.function(scope)

    def passed(self, function: ast.FunctionDef, name: str) -> list:
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        named = [a.arg for a in function.args.kwonlyargs]
        if name not in names + named:
            return []
        default = dict(zip(reversed(names), reversed(function.args.defaults), strict=False)) | {n: d for n, d in zip(named, function.args.kw_defaults, strict=True) if d}
        found = [default[name]] if name in default else []
        for call in (n for n in ast.walk(self.tree) if isinstance(n, ast.Call)):
            called = call.func.id if isinstance(call.func, ast.Name) else call.func.attr if isinstance(call.func, ast.Attribute) else ""
            if called != function.name:
                continue
            at = names.index(name) - (names[0] in ("self", "cls") and isinstance(call.func, ast.Attribute)) if name in names else -1
            found += [k.value for k in call.keywords if k.arg == name] or ([call.args[at]] if 0 <= at < len(call.args) else [])
        return found

    def variants(self, node, depth: int = 0) -> list:
        """The texts an expression may be, each a tuple of strings and holes."""
        hole = [(Hole(ast.unparse(node), USUAL.get(ast.unparse(node), SAMPLES)),)]
        if isinstance(node, ast.Constant):
            return [(str(node.value),)] if node.value is not None else [(None,)]
        if depth > 9:
            return hole
        again = lambda n: self.variants(n, depth + 1)
        if isinstance(node, ast.JoinedStr):
            return self.product([again(part) for part in node.values])
        if isinstance(node, ast.FormattedValue):
            spec = "".join(str(v.value) for v in node.format_spec.values if isinstance(v, ast.Constant)) if node.format_spec else ""
            if spec or node.conversion == ord("r"):
                samples = ("7%",) if spec.endswith("%") else ("7",) if spec and spec[-1] in "dfge," else ("'llama'", "7")
                return [(Hole(ast.unparse(node)[1:-1], samples),)]
            return [v if v != (None,) else (Hole(ast.unparse(node.value)),) for v in again(node.value)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.product([again(node.left), again(node.right)])
        if isinstance(node, ast.IfExp):
            return again(node.body) + again(node.orelse)
        if isinstance(node, ast.BoolOp):
            return [v for part in node.values for v in again(part)]
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and isinstance(node.func.value, ast.Dict):
                return [v for value in (*node.func.value.values, *node.args[1:]) for v in again(value)]
            if called == "nearest":
                return [("",), ("; did you mean 'llama'?",)]
            if called in ("str", "field", "v.field", "c.field", "m.c.field", "self.field", "self.c.field", "inner.field") and node.args:
                return again(node.args[0])
            if called in ("format_number", "percent", "format_quantity"):
                return [(Hole(ast.unparse(node), ("7",) if called == "format_number" else ("7 GB", "7 GB/s")),)]
            function = next((f for f in self.tree.body if isinstance(f, ast.FunctionDef) and f.name == called), None)
            if function:
                returned = [r.value for r in ast.walk(function) if isinstance(r, ast.Return) and r.value is not None]
                found = [v for r in returned for v in again(r)]
                if found and any(isinstance(part, str) for v in found for part in v):
                    return found
            return hole
        if isinstance(node, ast.Name):
            found = [v for value in self.assigned(node.id, node) for v in again(value)]
            return found or hole
        if isinstance(node, ast.Attribute) and node.attr in ("name", "id"):
            return [(Hole(ast.unparse(node), ("Llama 3.1 8B", "llama-3.1-8b")),)]
        if isinstance(node, ast.Subscript):
            table = [node.value] if isinstance(node.value, ast.Dict) else self.assigned(node.value.id, node) if isinstance(node.value, ast.Name) else []
            return [v for t in table if isinstance(t, ast.Dict) for value in t.values for v in again(value)] or hole
        return hole

    @staticmethod
    def product(parts: list) -> list:
        return [tuple(itertools.chain.from_iterable(chosen)) for chosen in itertools.islice(itertools.product(*parts), SPREAD)]

    def refusals(self):
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "InputError" and len(node.args) == 3:
                yield Refusal(f"{self.path.relative_to(ROOT)}:{node.lineno}", *(tuple(dict.fromkeys(self.variants(a))) for a in node.args))


@cache
def refusals() -> tuple:
    return tuple(r for path in reachable() for r in Source(path).refusals())


def filled(variant: tuple):
    """The texts a variant may be, with samples in its holes."""
    holes = [part.samples if isinstance(part, Hole) else (part or "",) for part in variant]
    yield from ("".join(chosen) for chosen in itertools.islice(itertools.product(*holes), SPREAD))


def sentences():
    """Every whole sentence in the source of these modules (it starts with a capital and ends with a full stop) that is no docstring: where, and its variants."""
    for path in reachable():
        source = Source(path)
        docs = {n.body[0].value for n in ast.walk(source.tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.Module)) and isinstance(n.body[0], ast.Expr)}
        for node in ast.walk(source.tree):
            if node in docs or isinstance(source.around.get(node), (ast.JoinedStr, ast.FormattedValue)):
                continue
            if isinstance(node, ast.JoinedStr) or isinstance(node, ast.Constant) and isinstance(node.value, str):
                variants = source.variants(node)
                plain = "".join("X" if isinstance(p, Hole) else p or "" for p in variants[0])
                if re.match(r"[A-Z]\S* .* .*\.$", plain):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", variants


def warnings():
    """What the readers of benchmarks remark: the second argument of `sheet.warn(code, text)` and its like."""
    for path in reachable():
        source = Source(path)
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "warn" and len(node.args) == 2:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", source.variants(node.args[1])
