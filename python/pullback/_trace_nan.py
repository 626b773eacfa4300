"""Where the first value that is not finite arose, found in the graph of a loss after the fact.

The graph does not keep every value. What is known of it: the leaves; what nodes saved for their
derivatives, which are arguments (so values that other nodes gave) and results; tensors that the
callers' variables hold; and what follows from these, where an op can be computed again from what
its node kept, or only moves elements. `_Graph` gathers all that, `_culprit` looks for the first op
that gave such a value though it was given none, and `_gradient` runs the backward again with a look
at what goes into each node and comes out. Invariant: no ``.grad`` changes, and the graph is kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from . import _C
from ._holders import parameter_names, variables
from ._record.recorder import _arguments
from ._tensor import Tensor

# Ops that only move elements: their results are finite if and only if their arguments are.
_MOVES = frozenset(
    [
        "alias",
        "broadcast_to",
        "cat",
        "clone",
        "contiguous",
        "detach",
        "diagonal",
        "expand",
        "flatten",
        "flip",
        "movedim",
        "narrow",
        "permute",
        "pixel_shuffle",
        "repeat",
        "reshape",
        "roll",
        "select",
        "slice",
        "split",
        "squeeze",
        "stack",
        "swapaxes",
        "t",
        "to",
        "transpose",
        "unbind",
        "unflatten",
        "unsqueeze",
        "unsafe_chunk",
        "unsafe_split",
        "view",
    ]
)
# Ops that write a number of the program's: the number was intended.
_GIVEN = frozenset(
    ["constant_pad_nd", "fill", "index_fill", "masked_fill", "masked_scatter", "tril", "triu"]
)
# Arguments of ops whose results depend on more than their arguments.
_NOT_ALONE = frozenset({"generator", "train", "training"})


class NonFinite(NamedTuple):
    """The first value that is not finite, as far as the graph can tell.

    Args:
        kind: ``"value"`` or ``"gradient"``.
        op: the name of the node whose op gave the value, or that gave the gradient; ``"leaf"``,
            ``"input"`` where a leaf or a tensor without history held it already.
        file: the file of the program, None if the line is not known.
        line: the line's number.
        is_certain: whether it is known that everything before was finite.
        text: all of it, for people.
    """

    kind: str
    op: str
    file: str | None
    line: int | None
    is_certain: bool
    text: str

    def __str__(self) -> str:
        return self.text


def trace(loss: Tensor) -> NonFinite | None:
    """See :func:`pullback.trace_nan`."""
    if not isinstance(loss, Tensor):
        raise TypeError(f"trace_nan(): a tensor is needed, not {type(loss).__name__}")
    if loss.grad_fn is None:
        if _state(loss) == "finite":
            return None
        text = "The tensor itself is not finite, and has no history: " + _counted(loss)
        return NonFinite("value", "leaf", None, None, False, text)
    graph = _Graph(loss)
    found = _culprit(graph)
    return found if found is not None else _gradient(graph)


# ---- the graph ----


class _Graph:
    """The nodes that lead to a loss, in the order in which they were made, and values between them.

    A value is known by the node that gave it and the number of its result.
    """

    def __init__(self, loss: Tensor) -> None:
        self.loss = loss
        self.nodes = _in_order(loss.grad_fn)
        self.known: dict[tuple[Any, int], Tensor] = {}
        self.saved: dict[Any, dict[str, Any]] = {}
        self.is_freed = False
        for node in self.nodes:
            self._take(node)
        self.known[loss.grad_fn, loss.output_nr] = loss.detach()
        for tensor in _callers_tensors():
            if tensor.grad_fn in self.saved:
                self.known.setdefault((tensor.grad_fn, tensor.output_nr), tensor.detach())

    def _take(self, node: Any) -> None:
        """Notes what a node saved: of itself, and of those that its edges lead to."""
        saved = self.saved[node] = {}
        if _is_leaf(node):
            self.known[node, 0] = node.variable.detach()
            return
        for name in dir(node):
            if not name.startswith("_saved_"):
                continue
            try:
                saved[name[len("_saved_") :]] = getattr(node, name)
            except RuntimeError as error:
                # (Freed, or written to since: then the value is unknown.)
                self.is_freed |= "second time" in str(error)
        op = _C._node_op(node)
        if op is None:
            return
        _, arguments, results = op
        for (producer, nr), name in zip(node.next_functions, arguments, strict=False):
            value = _item(saved, name)
            if producer is not None and isinstance(value, Tensor):
                self.known.setdefault((producer, nr), value.detach())
        for nr, name in enumerate(results):
            if isinstance(saved.get(name), Tensor) and name not in arguments:
                self.known.setdefault((node, nr), saved[name].detach())


def _in_order(root: Any) -> list[Any]:
    """The nodes that lead to one, each after those that it was made from."""
    done: dict[Any, None] = {}
    waiting: list[tuple[Any, bool]] = [(root, False)]
    seen: set[Any] = set()
    while waiting:
        node, is_second = waiting.pop()
        if is_second:
            done[node] = None
            continue
        if node in seen:
            continue
        seen.add(node)
        waiting.append((node, True))
        waiting += [(n, False) for n, _ in reversed(node.next_functions) if n is not None]
    # (The numbers say in which order the program ran, if one thread made all; leaves come first.)
    return sorted(done, key=lambda node: -1 if _is_leaf(node) else node._sequence_nr())


def _is_leaf(node: Any) -> bool:
    return hasattr(node, "variable")


def _item(saved: dict[str, Any], name: str) -> Any:
    """What was saved under ``name``, or ``name[i]`` of a list."""
    stem, _, rest = name.partition("[")
    value = saved.get(stem)
    if rest and isinstance(value, (tuple, list)):
        at = int(rest[:-1])
        return value[at] if at < len(value) else None
    return value


def _callers_tensors() -> Iterator[Tensor]:
    """The tensors in the variables of the functions that led here."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        for _, value in variables(frame):
            if isinstance(value, Tensor):
                yield value
            elif type(value) in (list, tuple):
                yield from (item for item in value if isinstance(item, Tensor))
        frame = frame.f_back


# ---- values ----


def _state(value: Tensor) -> str:
    """``"finite"``, ``"nan"`` if there is one, else ``"inf"``; ``"unknown"`` for what hides it."""
    if value.layout is not _torch().strided or value.device.type == "meta":
        return "unknown"
    if not (value.is_floating_point() or value.is_complex()):
        return "finite"
    with _torch().no_grad():
        if bool(_torch().isfinite(value).all()):
            return "finite"
        return "nan" if bool(_torch().isnan(value).any()) else "inf"


def _torch() -> Any:
    return sys.modules[__name__.rpartition(".")[0]]


def _culprit(graph: _Graph) -> NonFinite | None:
    """The first op with a value that is not finite, made of finite ones."""
    meant: set[tuple[Any, int]] = set()
    for node in graph.nodes:
        if _is_leaf(node):
            if _state(graph.known[node, 0]) in ("nan", "inf"):
                return _of_leaf(graph, node)
            continue
        inputs = _inputs(graph, node)
        for name, value, _ in inputs:
            if value is not None and _producer(node, name) is None and _state(value) == "nan":
                return _of_input(node, name, value)
        outputs = {nr: v for (n, nr), v in graph.known.items() if n is node}
        if not outputs:
            outputs = _again(graph, node, inputs)
            graph.known.update({(node, nr): value for nr, value in outputs.items()})
        state = _worst(outputs.values())
        if state not in ("nan", "inf"):
            continue
        is_given = _stem(node) in _GIVEN
        # (A tensor without history that was not kept may be a mask.)
        came_in = any(
            edge in meant or (edge is None if value is None else _state(value) == "inf")
            for _, value, edge in inputs
        )
        if state == "inf" and (is_given or came_in):
            meant.update((node, nr) for nr in outputs)
            continue
        return _of_op(node, inputs, outputs)
    return None


def _worst(values: Any) -> str:
    states = {_state(value) for value in values}
    return next((s for s in ("nan", "inf", "finite") if s in states), "unknown")


def _stem(node: Any) -> str:
    op = _C._node_op(node)
    return "" if op is None else op[0].partition(".")[0].strip("_")


def _producer(node: Any, name: str) -> Any:
    """The node that an argument came from; None if it has no history."""
    _, arguments, _ = _C._node_op(node) or ("", [], [])
    for (producer, _), argument in zip(node.next_functions, arguments, strict=False):
        if argument == name:
            return producer
    return None


def _inputs(graph: _Graph, node: Any) -> list[tuple[str, Tensor | None, tuple[Any, int] | None]]:
    """The tensors that a node's op was given: name, value if it is known, and where it is from."""
    op = _C._node_op(node)
    arguments = op[1] if op is not None else [f"input {i}" for i in range(len(node.next_functions))]
    found: list[tuple[str, Tensor | None, tuple[Any, int] | None]] = []
    for (producer, nr), name in zip(node.next_functions, arguments, strict=False):
        if producer is not None:
            found.append((name, graph.known.get((producer, nr)), (producer, nr)))
            continue
        value = _item(graph.saved[node], name)
        found.append((name, value.detach() if isinstance(value, Tensor) else None, None))
    results = op[2] if op is not None else []
    for name, value in graph.saved[node].items():
        is_other = name not in arguments and name not in results
        if is_other and isinstance(value, Tensor):
            found.append((name, value.detach(), None))
    return found


def _again(graph: _Graph, node: Any, inputs: Any) -> dict[int, Tensor]:
    """The results of a node's op from its arguments; empty if too little is known of them."""
    op = _C._node_op(node)
    values = {name: value for name, value, _ in inputs}
    if op is None or any(value is None for value in values.values()):
        return {}
    if _stem(node) in _MOVES:
        # (Only whether the values are finite is stored.)
        worst = _worst(values.values())
        return {0: next(v for v in values.values() if _state(v) == worst)} if values else {}
    function = _overload(op[0])
    if function is None:
        return {}
    known = {**graph.saved[node], **values}
    names = [name for name, _ in _arguments(function)]
    if any(known.get(name) is None for name in names):
        return {}
    # (By position, because a program may use other names than the signature.)
    count = len(_arguments(function, only_positional=True))
    given = {name: known[name] for name in names[count:]}
    try:
        with _torch().no_grad():
            result = function(*(known[name] for name in names[:count]), **given)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return {}
    results = result if isinstance(result, (tuple, list)) else (result,)
    return {nr: r for nr, r in enumerate(results) if isinstance(r, Tensor)}


def _overload(name: str) -> Any:
    """The op, if its result depends on nothing but its arguments."""
    stem, _, overload = name.partition(".")
    packet = getattr(_torch().ops.aten, stem, None)
    function = getattr(packet, overload or "default", None)
    if function is None:
        return None
    names = dict(_arguments(function))
    is_plain = not any(names.values()) and names.keys().isdisjoint(_NOT_ALONE)
    return function if is_plain else None


# ---- gradients ----


def _gradient(graph: _Graph) -> NonFinite | None:
    """The first node that gives a gradient which is not finite, though those that it got were."""
    found: list[NonFinite] = []

    def hook_of(node: Any) -> Callable[[Any, Any], None]:
        def look(given: Any, got: Any) -> None:
            if found or _worst(g for g in given if g is not None) not in ("nan", "inf"):
                return
            if _worst(g for g in got if g is not None) not in ("nan", "inf"):
                found.append(_of_gradient(graph, node, given, got))

        return look

    leaves = [node.variable for node in graph.nodes if _is_leaf(node)]
    handles = [n.register_hook(hook_of(n)) for n in graph.nodes if not _is_leaf(n)]
    torch = _torch()
    loss = graph.loss
    ones = torch.ones_like(loss.detach())
    try:
        torch.autograd.grad(loss, leaves, ones, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        if "second time" not in str(error):
            raise
        return _freed(graph, error)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


def _freed(graph: _Graph, error: RuntimeError) -> NonFinite | None:
    """The result after a backward has freed the graph: the leaves with such a gradient."""
    leaves = [node.variable for node in graph.nodes if _is_leaf(node)]
    bad = [leaf for leaf in leaves if leaf.grad is not None and _state(leaf.grad) in ("nan", "inf")]
    if not bad:
        raise RuntimeError(
            "trace_nan(): a backward has freed the graph, so that values and gradients on the way"
            " are not known any more. Call trace_nan before backward(), or give backward()"
            " retain_graph=True"
        ) from error
    names = _names(bad)
    listed = "\n".join(
        f"  {name}: {_counted(leaf.grad)}" for name, leaf in zip(names, bad, strict=True)
    )
    text = (
        f"{len(bad)} of {len(leaves)} leaves have gradients that are not finite. Where they arose"
        " is not known any more: a backward has freed the graph (retain_graph=True keeps it)."
        f"\n{listed}"
    )
    return NonFinite("gradient", "leaf", None, None, False, text)


# ---- texts ----


def _names(leaves: list[Tensor]) -> list[str]:
    names = parameter_names()
    return [names.get(id(leaf), f"a leaf of shape {tuple(leaf.shape)}") for leaf in leaves]


def _counted(value: Tensor) -> str:
    """Shape and dtype, and how many elements are not finite."""
    torch = _torch()
    dtype = str(value.dtype).removeprefix("torch.")
    text = f"{tuple(value.shape)} {dtype}"
    if _state(value) == "unknown":
        return text
    flat = value.detach().reshape(-1)
    if value.is_complex():
        flat = torch.view_as_real(flat.resolve_conj()).reshape(-1)
    with torch.no_grad():
        finite = torch.isfinite(flat)
        bad = int((~finite).sum())
        parts = []
        if bad:
            nan = int(torch.isnan(flat).sum())
            kinds = [f"{n} {what}" for n, what in ((nan, "nan"), (bad - nan, "inf")) if n]
            parts.append(f"{' and '.join(kinds)} of {flat.numel()}")
        if bad < flat.numel():
            kept = flat[finite]
            parts.append(f"from {kept.min().item():.6g} to {kept.max().item():.6g}")
    return ", ".join([text, *parts])


def _place(node: Any) -> tuple[str | None, int | None, str]:
    """File and number of the line that made a node, and both as in a traceback."""
    site = _C._call_site(node)
    if site is None:
        return None, None, "    (the line is not known)"
    file, line, function, source = site
    text = f'    File "{file}", line {line}'
    text += f", in {function}" if function else ""
    return file, line, text + (f"\n      {source.strip()}" if source else "")


def _of_leaf(graph: _Graph, node: Any) -> NonFinite:
    (name,) = _names([node.variable])
    text = (
        f"A leaf is not finite: {name}: {_counted(node.variable)}. (It may have been so before, or"
        " an optimizer's step may have made it so.)"
    )
    return NonFinite("value", "leaf", None, None, True, text)


def _of_input(node: Any, name: str, value: Tensor) -> NonFinite:
    file, line, place = _place(node)
    text = (
        f"The argument {name!r} of {_stem(node)}, which has no history, is not finite: "
        f"{_counted(value)}. It is used here:\n{place}"
    )
    return NonFinite("value", "input", file, line, True, text)


def _of_op(node: Any, inputs: Any, outputs: dict[int, Tensor]) -> NonFinite:
    file, line, place = _place(node)
    name = node.name().rpartition("::")[2]
    unknown = [(n, edge) for n, value, edge in inputs if value is None]
    bad = next(v for v in outputs.values() if _state(v) in ("nan", "inf"))
    lines = [f"The first value that is not finite is the result of {_stem(node) or name} ({name}):"]
    lines += [place, f"  result: {_counted(bad)}"]
    lines += [f"  {n}: {_counted(value)}" for n, value, _ in inputs if value is not None]
    for argument, edge in unknown:
        if edge is None:
            lines.append(f"  {argument}: not kept, and without history")
            continue
        lines.append(f"  {argument}: not kept, so it may have been so before; it was made here:")
        lines.append(_place(edge[0])[2])
    return NonFinite("value", name, file, line, not unknown, "\n".join(lines))


def _of_gradient(graph: _Graph, node: Any, given: Any, got: Any) -> NonFinite:
    file, line, place = _place(node)
    name = node.name().rpartition("::")[2]
    op = _C._node_op(node)
    arguments = op[1] if op is not None else [f"input {i}" for i in range(len(given))]
    lines = [
        "All values are finite as far as they are known. The first gradient that is not comes from"
        f" {name}:"
    ]
    lines.append(place)
    for at, gradient in enumerate(got):
        if gradient is not None:
            which = f" {at}" if len(got) > 1 else ""
            lines.append(f"  gradient of the result{which}: {_counted(gradient)}")
    for argument, gradient in zip(arguments, given, strict=False):
        if gradient is not None:
            lines.append(f"  gradient for {argument}: {_counted(gradient)}")
    for argument, value, _ in _inputs(graph, node):
        if value is not None:
            lines.append(f"  {argument} was: {_counted(value)}")
    return NonFinite("gradient", name, file, line, True, "\n".join(lines))
