"""``make_fx``: the ops that a function runs on example inputs, as a graph.

The function runs as it is, on the inputs themselves, under a mode that sees every op below autograd
and ``vmap`` and notes it as a node. So the graph has what was run: the branches that were taken,
and the backward if the function asks for gradients. Which node made a tensor is known by the tensor
itself or, where autograd gives another object for the same elements, by where they lie; all tensors
of a trace live until it ends, so that no memory is used twice. A tensor that no node made becomes a
constant of the graph. Shapes are those of the example: symbolic ones are refused.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from ... import _C, Tensor, _absent, nn
from ..._tag import Tag
from ...utils._alias_info import get_alias_info
from ...utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from ...utils._pytree import TreeSpec, tree_flatten
from .._symbolic_trace import Tracer
from ..graph import CodeGen, Graph
from ..graph_module import GraphModule
from ..node import Node
from ..passes.shape_prop import _metadata_of
from ..proxy import Proxy

__all__ = [
    "ProxyTorchDispatchMode",
    "PythonKeyTracer",
    "decompose",
    "disable_proxy_modes_tracing",
    "get_innermost_proxy_mode",
    "get_proxy_mode",
    "make_fx",
]


class PythonKeyTracer(Tracer):
    """A tracer whose program runs on tensors, not on stand-ins."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        self.root = nn.Module()
        self.graph = Graph(tracer_cls=type(self))
        # By identity, and by where elements lie; the tensors are held, so that both stay true.
        self._by_id: dict[int, tuple[Tensor, Proxy]] = {}
        self._by_place: dict[Any, Proxy] = {}
        self._constants: dict[int, tuple[Tensor, str]] = {}

    def track(self, tensor: Tensor, proxy: Proxy) -> None:
        """Records the node that a tensor comes from."""
        self._by_id[id(tensor)] = (tensor, proxy)
        place = _place(tensor)
        if place is not None:
            self._by_place[place] = proxy

    def proxy_of(self, tensor: Tensor) -> Proxy | None:
        """The node that a tensor comes from; None for a tensor from outside."""
        known = self._by_id.get(id(tensor))
        if known is not None:
            return known[1]
        place = _place(tensor)
        return None if place is None else self._by_place.get(place)

    def create_arg(self, a: Any) -> Any:
        """An argument of a node: a tensor by its node, or as a constant."""
        if isinstance(a, _C.TensorBase):
            proxy = self.proxy_of(a)  # type: ignore[arg-type]
            return self._constant(a) if proxy is None else proxy.node
        return super().create_arg(a)

    def _constant(self, tensor: Any) -> Node:
        known = self._constants.get(id(tensor))
        if known is None:
            kind = "_param_constant" if isinstance(tensor, nn.Parameter) else "_tensor_constant"
            number = sum(name.startswith(kind) for _, name in self._constants.values())
            known = (tensor, f"{kind}{number}")
            self._constants[id(tensor)] = known
            setattr(self.root, known[1], tensor)
        return self.create_node("get_attr", known[1], (), {})


def _place(tensor: Tensor) -> Any:
    """The address and geometry of a tensor's elements; None if it has none in memory."""
    if type(tensor) not in (Tensor, nn.Parameter) or tensor.layout is not _C.strided:
        return None
    address = tensor.untyped_storage().data_ptr() if tensor.device.type != "meta" else 0
    if not address or not tensor.numel():
        return None
    bits = (tensor.is_conj(), tensor.is_neg())
    geometry = (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
    return (address, tensor.dtype, *geometry, *bits)


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Notes each op as a node of a tracer's graph.

    Args:
        tracer: whose graph it is.
        decompositions: functions that stand for ops, by overload; their ops are noted instead.
    """

    def __init__(
        self,
        tracer: PythonKeyTracer,
        decompositions: dict[Any, Callable[..., Any]] | None = None,
    ) -> None:
        super().__init__()
        self.tracer = tracer
        self.enable_tracing = True
        self._decompositions = decompositions or {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Runs one op, and notes it."""
        kwargs = kwargs or {}
        if not self.enable_tracing:
            return func(*args, **kwargs)
        if func in self._decompositions:
            with self:
                result = self._decompositions[func](*args, **kwargs)
            if result is not NotImplemented:
                return result
        if Tag.data_dependent_output in func.tags:
            self._check_constant(func, (args, kwargs))
            return func(*args, **kwargs)
        node_args = self.tracer.create_arg(tuple(args))
        node_kwargs = {name: self.tracer.create_arg(value) for name, value in kwargs.items()}
        out = func(*args, **kwargs)
        node = self.tracer.create_node(
            "call_function", func, node_args, node_kwargs, name=func._opname
        )
        self._track_tree(out, self.tracer.proxy(node))
        self._track_written(func, args, kwargs, out)
        return out

    def _check_constant(self, func: Any, given: Any) -> None:
        tensors = [leaf for leaf in tree_flatten(given)[0] if isinstance(leaf, _C.TensorBase)]
        if any(self.tracer.proxy_of(tensor) is not None for tensor in tensors):  # type: ignore[arg-type]
            raise RuntimeError(
                f"It appears that you're trying to get value out of a tracing tensor with {func} - "
                "erroring out! It's likely that this is caused by data-dependent control flow or "
                "similar: a graph has no values"
            )

    def _track_tree(self, out: Any, proxy: Proxy) -> None:
        """Says of each result which node it comes from; several are taken out of the call's."""
        if isinstance(out, _C.TensorBase):
            self.tracer.track(out, proxy)  # type: ignore[arg-type]
            proxy.node.meta["tensor_meta"] = _metadata_of(out)  # type: ignore[arg-type]
        elif isinstance(out, tuple | list):
            for number, one in enumerate(out):
                if isinstance(one, _C.TensorBase | tuple | list):
                    self._track_tree(one, proxy[number])

    def _track_written(self, func: Any, args: Any, kwargs: dict[str, Any], out: Any) -> None:
        """Where an argument was written to and is the result, the node made the argument."""
        if not isinstance(out, _C.TensorBase):
            return
        target = kwargs.get("out", args[0] if args else None)
        if isinstance(target, _C.TensorBase) and _is_writing(func, kwargs):
            proxy = self.tracer.proxy_of(out)  # type: ignore[arg-type]
            if proxy is not None:
                self.tracer.track(target, proxy)  # type: ignore[arg-type]


def _is_writing(func: Any, kwargs: Any) -> bool:
    return "out" in kwargs or any(one.is_write for one in get_alias_info(func).args)


def _is_kept(node: Node) -> bool:
    """Whether a node must stay though nobody uses it: it writes, or draws random numbers."""
    if node.op != "call_function" or not hasattr(node.target, "_opname"):
        return node.is_impure()
    func: Any = node.target
    return _is_writing(func, node.kwargs) or Tag.nondeterministic_seeded in func.tags


class _TreeInputs(CodeGen):
    """A function whose arguments are trees; the graph has their leaves."""

    def __init__(self, spec: TreeSpec) -> None:
        self._spec = spec

    def process_inputs(self, *args: Any) -> Any:
        """The leaves of the arguments.

        Raises:
            RuntimeError: for arguments of another structure than the example's.
        """
        leaves, spec = tree_flatten(args)
        if spec != self._spec:
            raise RuntimeError(
                f"the function was traced with arguments of structure {self._spec}, not {spec}"
            )
        return tuple(leaves)


def _names_of(f: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """A name for each leaf: the parameter's, with a number."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    known = [one.name for one in parameters if one.kind in positional]
    if len(known) < len(args):
        known = [f"arg{number}" for number in range(len(args))]
    return [
        f"{name}_{number}"
        for name, arg in zip(known, args, strict=False)
        for number in range(1, len(tree_flatten(arg)[0]) + 1)
    ]


def _refuse_options(tracing_mode: str, options: dict[str, bool]) -> None:
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(
            f'tracing_mode should be "real", "fake" or "symbolic", got {tracing_mode!r}'
        )
    if tracing_mode != "real":
        raise NotImplementedError(
            f"make_fx(tracing_mode={tracing_mode!r}): there are no fake tensors and no symbolic "
            "shapes; use tracing_mode='real', which runs the function on the example inputs"
        )
    for name, value in options.items():
        if value:
            raise NotImplementedError(f"make_fx({name}=True) is not available")


def make_fx(
    f: Callable[..., Any],
    decomposition_table: dict[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
) -> Callable[..., GraphModule]:
    """A function that runs ``f`` on example inputs and gives the graph of its ops.

    Args:
        f: a function of tensors, or of trees of them; what is no tensor is part of the program.
        decomposition_table: functions that stand for ops, by overload.
        tracing_mode: ``"real"``: the function is run on the inputs themselves.
        pre_dispatch: refused: ops are seen below autograd.
        record_module_stack: refused.

    Returns:
        A function of the inputs of ``f``, which gives a :class:`GraphModule` of the same inputs.

    Raises:
        NotImplementedError: for what is refused.
        RuntimeError: (by the function returned) if the program asks for the value of a tensor that
            it computes.

    Example:
        >>> import pullback as torch
        >>> from pullback.fx.experimental.proxy_tensor import make_fx
        >>> graph = make_fx(lambda x: x.sin().sum())(torch.zeros(2))
        >>> [node.name for node in graph.graph.nodes]
        ['x_1', 'sin', 'sum_1', 'output']
    """
    _refuse_options(
        tracing_mode,
        {
            "pre_dispatch": pre_dispatch,
            "record_module_stack": record_module_stack,
            "_allow_fake_constant": _allow_fake_constant,
        },
    )

    @functools.wraps(f)
    def traced(*args: Any) -> GraphModule:
        return _trace(f, args, decomposition_table)

    return traced


def _trace(f: Any, args: tuple[Any, ...], decompositions: Any) -> GraphModule:
    tracer = PythonKeyTracer()
    leaves, spec = tree_flatten(args)
    for name, leaf in zip(_names_of(f, args), leaves, strict=True):
        proxy = tracer.create_proxy("placeholder", name, (), {})
        if isinstance(leaf, _C.TensorBase):
            tracer.track(leaf, proxy)  # type: ignore[arg-type]
            proxy.node.meta["tensor_meta"] = _metadata_of(leaf)  # type: ignore[arg-type]
    with ProxyTorchDispatchMode(tracer, decompositions):
        result = f(*args)
    tracer.graph.output(tracer.create_arg(result))
    tracer.graph.eliminate_dead_code(_is_kept)
    if any(not one.is_leaf() for one in spec.children_specs):
        tracer.graph.set_codegen(_TreeInputs(spec))
    name = type(f).__name__ if isinstance(f, nn.Module) else getattr(f, "__name__", "GraphModule")
    return GraphModule(tracer.root, tracer.graph, name if name.isidentifier() else "GraphModule")


def get_innermost_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The innermost mode of this thread that traces; None if none does."""
    for mode in reversed(_get_current_dispatch_mode_stack()):
        if isinstance(mode, ProxyTorchDispatchMode) and mode.enable_tracing:
            return mode
    return None


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The mode of this thread that traces; None if none does."""
    return get_innermost_proxy_mode()


@contextlib.contextmanager
def disable_proxy_modes_tracing() -> Iterator[ProxyTorchDispatchMode | None]:
    """Within it ops are not noted; gives the mode that traces outside of it."""
    mode = get_innermost_proxy_mode()
    if mode is None:
        yield None
        return
    mode.enable_tracing = False
    try:
        yield mode
    finally:
        mode.enable_tracing = True


@contextlib.contextmanager
def decompose(
    decomposition_table: dict[Any, Callable[..., Any]] | None,
) -> Iterator[dict[Any, Callable[..., Any]]]:
    """Within it the mode that traces takes other functions for ops.

    Args:
        decomposition_table: the functions, by overload.
    """
    mode = get_innermost_proxy_mode()
    table = decomposition_table or {}
    if mode is None:
        yield table
        return
    before = mode._decompositions
    mode._decompositions = table
    try:
        yield table
    finally:
        mode._decompositions = before


_absent.announce(globals())
