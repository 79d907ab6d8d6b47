"""Which traced operators a compiler would run as one kernel, and what then still crosses memory. No torch here.

"none": every operator reads its inputs and writes its outputs, as eager PyTorch does.
"elementwise": chains of element-by-element operators, layout copies and row reductions (a norm, a softmax) become one kernel;
a matrix product stays alone.
"attention": besides, the score product, its softmax and the value product become one kernel that keeps the scores on chip
(FlashAttention), together with the copies that only repeat or reorder its inputs.

A group's bytes: what it reads that it did not make, and what it makes that anyone else reads or that outlives the run.
Two operators may join only if no other operator has to run between them.
"""

from __future__ import annotations

from ..errors import InputError
from .data import Kernel, Trace, union_bytes

FUSIONS = ("none", "elementwise", "attention")
_FUSIBLE = ("pointwise", "reduction", "copy", "create")
_SHARED = 4  # readers
_SOFTMAX = ("_softmax", "_safe_softmax")


class _Graph:
    """Operators as nodes that can be merged; edges are "must run before"."""

    def __init__(self, trace: Trace):
        self.ops = [op for op in trace.ops if op.kind != "view"]
        n = len(self.ops)
        self.parent = list(range(n))
        self.before: list = [set() for _ in range(n)]  # direct predecessors
        self.first, self.last = list(range(n)), list(range(n))
        self.members: list = [[i] for i in range(n)]
        writer: dict = {}
        readers: dict = {}
        self.makers: list = []  # for each node, the nodes whose results it reads
        for i, op in enumerate(self.ops):
            made = {writer[r.buffer] for r in op.reads if r.buffer in writer}
            edges = set(made)
            for w in op.writes:  # whoever read or wrote the old content comes first
                edges |= readers.pop(w.buffer, set())
                if w.buffer in writer:
                    edges.add(writer[w.buffer])
            edges.discard(i)
            self.makers.append(made - {i})
            self.before[i] |= edges
            for r in op.reads:
                readers.setdefault(r.buffer, set()).add(i)
            for w in op.writes:
                writer[w.buffer] = i

    def find(self, i: int) -> int:
        while self.parent[i] != i:
            self.parent[i] = self.parent[self.parent[i]]
            i = self.parent[i]
        return i

    def can_merge(self, *nodes: int) -> bool:
        """Whether no path between these groups leaves them (which would make a cycle)."""
        roots = {self.find(i) for i in nodes}
        floor, seen = min(self.first[r] for r in roots), set()
        stack = [p for r in roots for p in map(self.find, self.before[r]) if p not in roots]
        while stack:
            node = stack.pop()
            if node in seen or self.last[node] < floor:
                continue
            seen.add(node)
            for p in map(self.find, self.before[node]):
                if p in roots:
                    return False
                stack.append(p)
        return True

    def merge(self, a: int, b: int) -> int:
        a, b = self.find(a), self.find(b)
        if a == b:
            return a
        self.parent[b] = a
        self.before[a] |= self.before[b]
        self.members[a] += self.members[b]
        self.members[b] = []
        self.first[a], self.last[a] = min(self.first[a], self.first[b]), max(self.last[a], self.last[b])
        return a

    def readers(self) -> dict:
        """{node: nodes that read its result}."""
        found: dict = {}
        for i, made in enumerate(self.makers):
            for j in made:
                found.setdefault(j, []).append(i)
        return found

    def groups(self) -> list:
        """Lists of node numbers, in order of their first operator."""
        return sorted((sorted(m) for m in self.members if m), key=lambda m: m[0])


def fuse(trace: Trace, fusion: str) -> tuple:
    """The kernels of a trace under a fusion rule.

    fusion: "none", "elementwise" or "attention". Returns a tuple of Kernel; their FLOPs add up to the trace's.
    """
    if fusion not in FUSIONS:
        raise InputError("fusion", fusion, f"must be one of {', '.join(FUSIONS)}")
    graph = _Graph(trace)
    if fusion == "none":
        return tuple(_kernel(trace, graph, [i], set()) for i in range(len(graph.ops)))
    if fusion == "attention":
        _flash(graph)
    readers = graph.readers()
    simple = lambda i: all(graph.ops[k].kind in _FUSIBLE for k in graph.members[graph.find(i)])
    for i in range(len(graph.ops)):
        for j in sorted(graph.makers[i], reverse=True):
            # What many operators read (rotary angles, the mask) is made once and kept, not made again inside one of them.
            if len(readers.get(j, ())) < _SHARED and simple(i) and simple(j) and graph.can_merge(i, j):
                graph.merge(j, i)
    used = _uses(graph)
    return tuple(_kernel(trace, graph, group, used) for group in graph.groups())


def _flash(graph: _Graph) -> None:
    """Merge score product, softmax and value product, wherever a softmax stands between two products of activations."""
    users = graph.readers()
    core = lambda i: graph.ops[i].kind == "matmul" and not graph.ops[i].parameter
    for i, op in enumerate(graph.ops):
        if op.short not in _SOFTMAX:
            continue
        back = _walk(i, lambda k: graph.makers[k], graph, core)
        ahead = _walk(i, lambda k: users.get(k, ()), graph, core)
        scores = [k for k in back if core(k)]
        values = [k for k in ahead if core(k)]
        if not scores or not values:
            continue
        wanted = set(back) | set(ahead) | {i}
        # Copies that only feed this kernel (keys repeated for each query head, layouts) are read where they come from.
        for k in (*scores, *values):
            chain = [j for j in graph.makers[k] if j not in wanted]
            while chain:
                j = chain.pop()
                if _repeats(graph.ops[j]) and all(u in wanted for u in users.get(j, ())):
                    wanted.add(j)
                    chain += [m for m in graph.makers[j] if m not in wanted]
        # And its result is written in the layout that is read next.
        wanted |= {j for k in values for j in users.get(k, ()) if graph.ops[j].short == "clone" and graph.makers[j] == {k}}
        if graph.can_merge(*wanted):
            for k in wanted:
                graph.merge(i, k)


def _repeats(op) -> bool:
    """Whether an operator only copies what it reads, into no fewer bytes (a conversion from FP32 is cheaper to read converted)."""
    return op.short in ("clone", "_to_copy") and sum(r.size for r in op.reads) <= sum(w.size for w in op.writes)


def _walk(start: int, step, graph: _Graph, stop) -> list:
    """Operators reached from `start` through element-by-element ones of its own module, up to and including a product.

    An operator that no path leads on to a product (the mask, an attention output nobody multiplies) is left out.
    """
    module = graph.ops[start].module
    leads: dict = {}

    def visit(k: int, depth: int) -> bool:
        if k in leads:
            return leads[k]
        op = graph.ops[k]
        if stop(k):
            leads[k] = op.module == module
        elif op.kind not in _FUSIBLE or op.module != module or depth > 40:
            leads[k] = False
        else:
            leads[k] = False
            onward = [visit(j, depth + 1) for j in step(k)]  # all of them, so that each is noted
            leads[k] = any(onward)
        return leads[k]

    for k in step(start):
        visit(k, 0)
    return [k for k, yes in leads.items() if yes]


def _uses(graph: _Graph) -> dict:
    """{(node, buffer): nodes that read what the node wrote there}."""
    writer: dict = {}
    used: dict = {}
    for i, op in enumerate(graph.ops):
        for r in op.reads:
            if r.buffer in writer:
                used.setdefault((writer[r.buffer], r.buffer), set()).add(i)
        for w in op.writes:
            if w.buffer in writer and op.in_place:  # a partial write leaves the rest of the old content in use
                used.setdefault((writer[w.buffer], w.buffer), set()).add(i)
            writer[w.buffer] = i
    for buffer, i in writer.items():
        used.setdefault((i, buffer), set()).add(-1)  # the last content: kept if the buffer is
    return used


def _kernel(trace: Trace, graph: _Graph, group: list, used) -> Kernel:
    ops = [graph.ops[i] for i in group]
    if len(ops) == 1:
        reads, writes = ops[0].reads, ops[0].writes
        if used and ops[0].kind == "create" and not any(_needed(trace, used, group[0], w.buffer, set(group)) for w in writes):
            writes = ()
    else:
        members, made, reads, writes = set(group), set(), [], []
        for i in group:
            op = graph.ops[i]
            reads += [r for r in op.reads if r.buffer not in made]
            made |= {w.buffer for w in op.writes}
            writes += [w for w in op.writes if _needed(trace, used, i, w.buffer, members)]
    weights = [r for r in reads if trace.roles.get(r.buffer) == "parameter"]
    return Kernel(
        ops=tuple(ops),
        read_bytes=union_bytes(reads, trace.capacity),
        write_bytes=union_bytes(writes, trace.capacity),
        parameter_bytes=union_bytes(weights, trace.capacity),
    )


def _needed(trace: Trace, used: dict, node: int, buffer: int, members: set) -> bool:
    """Whether anything outside the group reads what `node` wrote, now or after the run."""
    readers = used.get((node, buffer), ())
    return any((k == -1 and buffer in trace.kept) or (k >= 0 and k not in members) for k in readers)
