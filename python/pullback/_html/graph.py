"""A node of the graph for notebooks: the graph behind it, drawn as inline SVG.

The forward pass runs downwards: leaves on top, the node itself at the bottom. A node shows its name
and the shapes of what the op gave. Large graphs are cut at the nodes that are farthest away. The
graph is only read.
"""

from __future__ import annotations

from typing import Any

from .. import _C
from ..utils.graph import GraphNode, drawn, walk
from .page import count_text, dtype_text, escape, frame, muted

__all__ = ["node_html"]

MOST_NODES = 60


def node_html(node: Any) -> str:
    """The piece of HTML for a node."""
    with _C.DisableTorchFunction():
        graph = walk(node, lambda each: _described(each, is_root=each is node), MOST_NODES)
    kinds = [box.kind for box in graph.nodes]
    leaves, nodes = kinds.count("leaf"), kinds.count("op") + kinds.count("result")
    text = f"{count_text(nodes, 'node')}, {leaves} {'leaf' if leaves == 1 else 'leaves'}"
    cut = sum(int(box.lines[0].split()[0]) for box in graph.nodes if box.kind == "more")
    if cut:
        text += f"; {count_text(cut, 'input')} beyond these not shown"
    head = f"<div><b>{escape(node.name())}</b> {muted(text)}</div>"
    picture = f'<div style="overflow:auto;max-height:40em">{drawn(graph)}</div>'
    return frame(head, picture)


def _described(node: Any, is_root: bool) -> GraphNode:
    name = str(node.name())
    variable = getattr(node, "variable", None) if name.endswith("AccumulateGrad") else None
    if isinstance(variable, _C.TensorBase):
        return GraphNode("result" if is_root else "leaf", ("leaf", _shape(variable)), name)
    title = name.rstrip("0123456789").removesuffix("Backward") or name
    shapes = [_shape(given) for given in node._input_metadata[:2]]
    return GraphNode("result" if is_root else "op", (_short(title), *shapes), name)


def _shape(given: Any) -> str:
    sizes = ", ".join(str(size) for size in given.shape)
    return f"({sizes}) {dtype_text(given.dtype)}"


def _short(text: str) -> str:
    return text if len(text) <= 32 else text[:30] + "..."
