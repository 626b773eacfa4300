"""A node of the graph for notebooks: the graph behind it, drawn as inline SVG.

The forward pass runs downwards: leaves on top, the node itself at the bottom. A node shows its name
and the shapes of what the op gave. Large graphs are cut at the nodes that are farthest away. The
graph is only read.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .. import _C
from ..utils.graph_layout import Layout, lay_out
from .page import count_text, dtype_text, escape, frame, muted

__all__ = ["node_html"]

MOST_NODES = 60
_FILL = {"leaf": "#dbeafe", "op": "#ffffff", "result": "#dcfce7", "more": "#f1f5f9"}
_STROKE = {"leaf": "#3b82f6", "op": "#94a3b8", "result": "#16a34a", "more": "#cbd5e1"}


class _Box(NamedTuple):
    """A node as it is drawn: its kind, its lines, and its whole name."""

    kind: str
    lines: tuple[str, ...]
    name: str


class _Graph(NamedTuple):
    """``edges`` are (producer, consumer); ``cut`` says how many inputs are not drawn."""

    boxes: list[_Box]
    edges: list[tuple[int, int]]
    cut: int


def node_html(node: Any) -> str:
    """The piece of HTML that stands for a node."""
    with _C.DisableTorchFunction():
        graph = _collected(node)
    layout = lay_out([_size(box) for box in graph.boxes], graph.edges)
    leaves = sum(box.kind == "leaf" for box in graph.boxes)
    nodes = sum(box.kind in ("op", "result") for box in graph.boxes)
    text = f"{count_text(nodes, 'node')}, {leaves} {'leaf' if leaves == 1 else 'leaves'}"
    if graph.cut:
        text += f"; {count_text(graph.cut, 'input')} beyond these not shown"
    head = f"<div><b>{escape(node.name())}</b> {muted(text)}</div>"
    picture = f'<div style="overflow:auto;max-height:40em">{_svg(graph, layout)}</div>'
    return frame(head, picture)


def _collected(root: Any) -> _Graph:
    """The nodes nearest to the root, breadth first."""
    numbers: dict[Any, int] = {root: 0}
    boxes = [_described(root, "result")]
    edges: dict[tuple[int, int], None] = {}
    waiting = [root]
    cut = 0
    for node in waiting:
        beyond = 0
        for producer, _ in node.next_functions:
            if producer is None:
                continue
            if producer not in numbers:
                if len(numbers) >= MOST_NODES:
                    beyond += 1
                    continue
                numbers[producer] = len(boxes)
                boxes.append(_described(producer, "op"))
                waiting.append(producer)
            edges[numbers[producer], numbers[node]] = None
        if beyond:
            edges[len(boxes), numbers[node]] = None
            boxes.append(_Box("more", (f"{beyond} more",), "not shown"))
            cut += beyond
    return _Graph(boxes, list(edges), cut)


def _described(node: Any, kind: str) -> _Box:
    name = str(node.name())
    variable = getattr(node, "variable", None) if name.endswith("AccumulateGrad") else None
    if isinstance(variable, _C.TensorBase):
        return _Box("leaf" if kind == "op" else kind, ("leaf", _shape(variable)), name)
    title = name.rstrip("0123456789").removesuffix("Backward") or name
    shapes = [_shape(given) for given in node._input_metadata[:2]]
    return _Box(kind, (_short(title), *shapes), name)


def _shape(given: Any) -> str:
    sizes = ", ".join(str(size) for size in given.shape)
    return f"({sizes}) {dtype_text(given.dtype)}"


def _short(text: str) -> str:
    return text if len(text) <= 32 else text[:30] + "..."


def _size(box: _Box) -> tuple[float, float]:
    # Widths of a sans-serif face, on the generous side: no text may leave its box.
    widths = [len(box.lines[0]) * 8.0, *(len(line) * 6.4 for line in box.lines[1:])]
    return max(56.0, max(widths) + 18.0), 14.0 + 16.0 + 13.0 * (len(box.lines) - 1)


def _svg(graph: _Graph, layout: Layout) -> str:
    width, height = layout.width, layout.height
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="system-ui,sans-serif" '
        'text-anchor="middle" role="img">'
    ]
    for points in layout.routes:
        (x1, y1), (x, y) = points[-2], points[-1]
        line = " ".join(f"{a:.0f},{b:.0f}" for a, b in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="#94a3b8" stroke-width="1.4"/>')
        # (A head of its own: an id for markers would have to differ between cells.)
        length = math.hypot(x - x1, y - y1) or 1.0
        along, down = (x - x1) / length, (y - y1) / length
        base, aside, below = (x - 8 * along, y - 8 * down), 3.5 * down, 3.5 * along
        out.append(
            f'<path d="M{x:.1f} {y:.1f}L{base[0] - aside:.1f} {base[1] + below:.1f}'
            f'L{base[0] + aside:.1f} {base[1] - below:.1f}z" fill="#94a3b8"/>'
        )
    for box, place in zip(graph.boxes, layout.boxes, strict=True):
        out.append(_drawn(box, place))
    return "".join([*out, "</svg>"])


def _drawn(box: _Box, place: tuple[float, float, float, float]) -> str:
    x, y, width, height = place
    out = [
        f"<g><title>{escape(box.name)}</title>"
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{12 if box.kind == "leaf" else 5}" fill="{_FILL[box.kind]}" '
        f'stroke="{_STROKE[box.kind]}"/>'
    ]
    baseline = y + 20
    for at, line in enumerate(box.lines):
        look = 'font-size="11" fill="#64748b"' if at else 'font-size="13" fill="#0f172a"'
        out.append(f'<text x="{x + width / 2:.1f}" y="{baseline:.1f}" {look}>{escape(line)}</text>')
        baseline += 14
    return "".join([*out, "</g>"])
