"""A module's graph for TensorBoard: the ops of one call, within the modules that called them.

Nothing is traced: the module runs once, below autograd each op is noted down (a dispatch mode), and
an edge leads from the op that made a tensor to those that take it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

from ... import no_grad
from ..._tensor import Tensor
from .._python_dispatch import TorchDispatchMode
from .._pytree import tree_leaves

if TYPE_CHECKING:
    from ...nn.modules.module import Module

__all__ = ["graph"]


def graph(model: Module, args: Any = None, verbose: bool = False) -> tuple[Any, Any]:
    """The graph of a module's call, and what says that it ran on the CPU.

    Args:
        model: the module; it runs once, without gradients.
        args: its only argument, or all of them in a tuple or list.
        verbose: whether the ops are printed too.

    Raises:
        RuntimeError: if the call calls no op on tensors.
    """
    arguments = tuple(args) if isinstance(args, (tuple, list)) else () if args is None else (args,)
    recorder = _Recorder(type(model).__name__)
    recorder.name_inputs(arguments)
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        recorder.name_state(model, name, tensor)
    with ExitStack() as stack:
        stack.enter_context(recorder.following(model))
        stack.enter_context(no_grad())
        stack.enter_context(recorder)
        outputs = model(*arguments)
    if not recorder.is_used:
        raise RuntimeError("the call of the module has called no op: there is no graph to show")
    recorder.name_outputs(outputs)
    if verbose:
        for node in recorder.nodes:
            print(f"{node.name} = {node.op}({', '.join(node.input)})")
    made = GraphDef(node=recorder.nodes, versions=VersionDef(producer=22))
    return made, RunMetadata(
        step_stats=StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")])
    )


class _Recorder(TorchDispatchMode):
    """Notes ops down as nodes of a graph."""

    def __init__(self, root: str) -> None:
        super().__init__()
        self.nodes: list[Any] = []
        self.is_used = False
        self._scopes = [root]
        self._names: dict[str, int] = {}
        # By identity: the tensors are kept, so that no other tensor comes to have the same.
        self._made: dict[int, str] = {}
        self._kept: list[Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs the op and notes it down."""
        result = func(*args, **(kwargs or {}))
        self.is_used = True
        inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        packet = str(func).rpartition(".")[0] if "." in str(func) else str(func)
        short = packet.rpartition(".")[2].rpartition("::")[2]
        name = self._unique("/".join((*self._scopes, short)))
        self._add(name, f"aten::{short}", inputs, outputs)
        return result

    def name_inputs(self, arguments: tuple[Any, ...]) -> None:
        """Makes a node of each tensor among the arguments."""
        for tensor in tree_leaves(arguments):
            if isinstance(tensor, Tensor):
                self._add(self._unique("input/input"), "IO Node", [], [tensor])

    def name_state(self, model: Module, path: str, tensor: Tensor) -> None:
        """Makes a node of a parameter or buffer, within the module that has it."""
        owners, _, last = path.rpartition(".")
        scope, owner = [self._scopes[0]], model
        for part in owners.split(".") if owners else ():
            owner = owner.get_submodule(part)
            scope.append(f"{type(owner).__name__}[{part}]")
        self._add(self._unique("/".join((*scope, last))), "Parameter", [], [tensor])

    def name_outputs(self, outputs: Any) -> None:
        """Makes a node of each tensor that the module returned."""
        for tensor in tree_leaves(outputs):
            if isinstance(tensor, Tensor):
                name = self._unique("output/output")
                self.nodes.append(self._node(name, "IO Node", [tensor], [tensor]))

    @contextmanager
    def following(self, model: Module) -> Iterator[None]:
        """Within it, what a module calls has its name in the scope."""
        handles = []
        for path, module in model.named_modules():
            if path:
                name = f"{type(module).__name__}[{path.rpartition('.')[2]}]"
                handles.append(module.register_forward_pre_hook(self._entering(name)))
                handles.append(module.register_forward_hook(self._leaving, always_call=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _entering(self, name: str) -> Any:
        def enter(module: Any, args: Any) -> None:
            self._scopes.append(name)

        return enter

    def _leaving(self, module: Any, args: Any, output: Any) -> None:
        self._scopes.pop()

    def _unique(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return f"{name}_{count}" if count else name

    def _add(self, name: str, op: str, inputs: list[Tensor], outputs: list[Tensor]) -> None:
        self.nodes.append(self._node(name, op, inputs, outputs))
        for tensor in outputs:
            self._made[id(tensor)] = name
            self._kept.append(tensor)

    def _node(self, name: str, op: str, inputs: list[Tensor], outputs: list[Tensor]) -> Any:
        sources = [self._made[id(tensor)] for tensor in inputs if id(tensor) in self._made]
        shapes = [
            TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in tensor.shape])
            for tensor in outputs
        ]
        listed = AttrValue(list=AttrValue.ListValue(shape=shapes))
        return NodeDef(name=name, op=op, input=sources, attr={"_output_shapes": listed})
