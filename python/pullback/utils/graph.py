"""Pictures of an autograd graph: a layered drawing as SVG or HTML, and Graphviz text.

`collect` walks `grad_fn.next_functions` without recursion into a plain `Graph`; `to_dot`
writes that as text, `to_svg` lays it out (see `graph_layout`), `draw_graph` writes a file. The
forward pass runs downwards: leaves on top, the result at the bottom. Invariant: the graph
is only read; nothing runs, and no node is kept after the call. Notebooks show a node by the same
`walk` and `drawn` (`_html/graph.py`), so that a picture needs no style sheet and has no ids.
"""

from __future__ import annotations

import html
import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from .. import Tensor
from .graph_layout import lay_out

__all__ = ["Graph", "GraphNode", "collect", "draw_graph", "drawn", "to_dot", "to_svg", "walk"]

Names = Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None


class GraphNode(NamedTuple):
    """A box: `lines` are a title and details, `name` is what a mouse over it shows.

    `kind` is "leaf", "op", "result", or "more" for what is not drawn.
    """

    kind: str
    lines: tuple[str, ...]
    name: str = ""


class Graph(NamedTuple):
    """`edges` are (consumer, producer, times): the consumer's node points to the producer's."""

    nodes: list[GraphNode]
    edges: list[tuple[int, int, int]]


def _shape_text(value: Any) -> str:
    sizes = ", ".join(str(size) for size in value.shape)
    return f"({sizes}) {str(value.dtype).rpartition('.')[2]}"


def _saved_lines(node: Any) -> list[str]:
    lines = []
    for attribute in dir(node):
        if not attribute.startswith("_saved_"):
            continue
        label = attribute[len("_saved_") :]
        try:
            value = getattr(node, attribute)
        except RuntimeError:
            # Freed by an earlier backward pass.
            lines.append(f"{label}: freed")
            continue
        text = _shape_text(value) if isinstance(value, Tensor) else repr(value)
        lines.append(f"{label}: {text if len(text) <= 40 else text[:37] + '...'}")
    return lines


def _describe(node: Any, names: dict[int, str], show_saved: bool) -> GraphNode:
    variable = getattr(node, "variable", None)
    if isinstance(variable, Tensor):
        title = names.get(id(variable), "leaf")
        return GraphNode("leaf", (title, _shape_text(variable)))
    name = str(node.name())
    short = name.rstrip("0123456789")
    title = short.removesuffix("Backward") or name
    details = _saved_lines(node) if show_saved else []
    return GraphNode("op", (title, *([name] if title != name else []), *details))


def collect(tensor: Tensor, names: Names = None, show_saved: bool = False) -> Graph:
    """Reads the graph behind `tensor` into plain data.

    `names` gives leaves their names: a mapping or pairs, as `module.named_parameters()`.
    Raises `ValueError` if `tensor` has no graph.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"expected a Tensor to draw the graph of, but got {type(tensor)}")
    pairs = names.items() if isinstance(names, Mapping) else (names or ())
    labels = {id(value): name for name, value in pairs}
    result = GraphNode("result", ("result", _shape_text(tensor)))
    root = tensor.grad_fn
    if root is None:
        if not tensor.requires_grad:
            raise ValueError(
                f"a tensor of shape {tuple(tensor.shape)} that does not require grad has no "
                "graph to draw"
            )
        leaf = GraphNode("leaf", (labels.get(id(tensor), "leaf"), _shape_text(tensor)))
        return Graph([leaf], [])
    behind = walk(root, lambda node: _describe(node, labels, show_saved))
    edges = [(consumer + 1, producer + 1, times) for consumer, producer, times in behind.edges]
    return Graph([result, *behind.nodes], [(0, 1, 1), *edges])


def walk(root: Any, describe: Callable[[Any], GraphNode], most: int | None = None) -> Graph:
    """The graph behind a node, breadth first.

    Args:
        root: the node, the first of the graph.
        describe: makes the box of a node.
        most: the number of nodes after which a box counts those that one of them has behind it.
    """
    # Numbers by the node itself; the dict also keeps the nodes' wrappers alive and unique.
    numbers: dict[Any, int] = {root: 0}
    nodes = [describe(root)]
    times: dict[tuple[int, int], int] = {}
    waiting = [root]
    for node in waiting:
        beyond = 0
        for producer, _ in node.next_functions:
            if producer is None:
                continue
            if producer not in numbers:
                if most is not None and len(numbers) >= most:
                    beyond += 1
                    continue
                numbers[producer] = len(nodes)
                nodes.append(describe(producer))
                waiting.append(producer)
            edge = (numbers[node], numbers[producer])
            times[edge] = times.get(edge, 0) + 1
        if beyond:
            times[numbers[node], len(nodes)] = 1
            nodes.append(GraphNode("more", (f"{beyond} more",), "not shown"))
    return Graph(
        nodes, [(consumer, producer, count) for (consumer, producer), count in times.items()]
    )


def to_dot(tensor: Tensor, names: Names = None, show_saved: bool = False) -> str:
    """The graph behind `tensor` in Graphviz's language; arguments as for `draw_graph`."""
    graph = collect(tensor, names, show_saved)
    lines = [
        "digraph autograd {",
        '  rankdir=TB; node [shape=box, style="rounded,filled", fontname="sans-serif"];',
    ]
    for number, node in enumerate(graph.nodes):
        text = "\\n".join(_dot_escape(line) for line in node.lines)
        lines.append(f'  n{number} [label="{text}", fillcolor="{_FILL[node.kind]}"];')
    for consumer, producer, count in graph.edges:
        label = f' [label="x{count}"]' if count > 1 else ""
        lines.append(f"  n{producer} -> n{consumer}{label};")
    return "\n".join([*lines, "}", ""])


def _dot_escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


_FILL = {"leaf": "#dbeafe", "op": "#ffffff", "result": "#dcfce7", "more": "#f1f5f9"}
_STROKE = {"leaf": "#3b82f6", "op": "#94a3b8", "result": "#16a34a", "more": "#cbd5e1"}
_FACE = "system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif"
_TITLE = 'font-size="14" font-weight="600" fill="#0f172a"'
_DETAIL = 'font-size="11" fill="#64748b"'


def draw_graph(
    tensor: Tensor,
    path: str | os.PathLike[str],
    names: Names = None,
    show_saved: bool = False,
    title: str = "",
) -> None:
    """Draws the graph behind `tensor` into `path`, an `.svg` or a self-contained `.html` file.

    Leaves carry the names found in `names` (a mapping or pairs, as
    `module.named_parameters()`), with shape and dtype; ops carry the names of their nodes and,
    with `show_saved`, what they keep for backward. In the HTML file the mouse moves and zooms.

    Raises `ValueError` for another suffix or for a tensor without a graph.
    """
    where = os.fspath(path)
    if not where.endswith((".svg", ".html")):
        raise ValueError(f"expected a path that ends in .svg or .html, but got {where}")
    picture = to_svg(tensor, names, show_saved, title)
    with open(where, "w", encoding="utf-8") as file:
        file.write(_PAGE.format(title=html.escape(title or "autograd graph"), svg=picture)
                   if where.endswith(".html") else picture)  # fmt: skip


def to_svg(tensor: Tensor, names: Names = None, show_saved: bool = False, title: str = "") -> str:
    """The picture behind `tensor` as the text of an SVG file; arguments as for `draw_graph`."""
    return drawn(collect(tensor, names, show_saved), title)


def drawn(graph: Graph, title: str = "") -> str:
    """The picture of a graph as the text of an SVG element, which may stand in a page as it is."""
    layout = lay_out(
        [_box_size(node) for node in graph.nodes],
        [(producer, consumer) for consumer, producer, _ in graph.edges],
    )
    top = 40.0 if title else 0.0
    # A title may be wider than the graph (by a sans-serif face of 18 pixels).
    width, height = max(layout.width, 10.0 * len(title) + 32.0), layout.height + top
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{_FACE}" text-anchor="middle" '
        'role="img">',
        '<rect width="100%" height="100%" fill="#f8fafc"/>',
    ]
    if title:
        out.append(
            f'<text x="{width / 2:.1f}" y="28" font-size="18" font-weight="600" fill="#0f172a">'
            f"{html.escape(title)}</text>"
        )
    out.append(f'<g transform="translate({(width - layout.width) / 2:.0f} {top:.0f})">')
    for (_, _, count), points in zip(graph.edges, layout.routes, strict=True):
        out += _edge(points, count)
    for node, box in zip(graph.nodes, layout.boxes, strict=True):
        out += _svg_box(node, box)
    return "\n".join([*out, "</g>", "</svg>", ""])


def _box_size(node: GraphNode) -> tuple[float, float]:
    # Widths of a sans-serif face, on the generous side: no text may leave its box.
    widths = [len(node.lines[0]) * 8.6, *(len(line) * 6.6 for line in node.lines[1:])]
    return max(64.0, max(widths) + 22.0), 14.0 + 18.0 + 14.0 * (len(node.lines) - 1)


def _edge(points: list[tuple[float, float]], count: int) -> list[str]:
    """A line with its arrowhead, and the number of edges that it stands for."""
    out = [f'<path d="{_curve(points)}" fill="none" stroke="#94a3b8" stroke-width="1.4"/>']
    # (A head of its own: an id for markers would have to differ between the pictures of a page.)
    (before, above), (x, y) = points[-2], points[-1]
    # A curve arrives vertically, a straight line from where it comes.
    along = (x - before, y - above) if abs(x - before) < 0.05 else (0.0, y - above)
    length = math.hypot(*along) or 1.0
    right, down = 8 * along[0] / length, 8 * along[1] / length
    out.append(
        f'<path d="M{x:.1f} {y:.1f}L{x - right - down / 2:.1f} {y - down + right / 2:.1f}'
        f'L{x - right + down / 2:.1f} {y - down - right / 2:.1f}z" fill="#94a3b8"/>'
    )
    if count > 1:
        # Beside the head, where edges that begin together have parted.
        out.append(
            f'<text x="{x - 14:.1f}" y="{y - 10:.1f}" font-size="11" fill="#475569">'
            f"&#215;{count}</text>"
        )
    return out


def _svg_box(node: GraphNode, box: tuple[float, float, float, float]) -> list[str]:
    x, y, width, height = box
    middle = x + width / 2
    radius = 14 if node.kind in ("leaf", "result") else 6
    name = f"<title>{html.escape(node.name)}</title>" if node.name else ""
    out = [
        f'<g>{name}<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{radius}" fill="{_FILL[node.kind]}" stroke="{_STROKE[node.kind]}" '
        'stroke-width="1.5"/>'
    ]
    baseline = y + 21
    for position, line in enumerate(node.lines):
        style = _DETAIL if position else _TITLE
        out.append(f'<text x="{middle:.1f}" y="{baseline:.1f}" {style}>{html.escape(line)}</text>')
        baseline += 15 if position == 0 else 14
    out.append("</g>")
    return out


def _curve(points: list[tuple[float, float]]) -> str:
    """A path through the points that leaves and enters each of them vertically."""
    x, y = points[0]
    parts = [f"M{x:.1f} {y:.1f}"]
    for next_x, next_y in points[1:]:
        bend = (next_y - y) / 2
        if abs(next_x - x) < 0.05:
            parts.append(f"L{next_x:.1f} {next_y:.1f}")
        else:
            bends = f"{x:.1f} {y + bend:.1f} {next_x:.1f} {next_y - bend:.1f}"
            parts.append(f"C{bends} {next_x:.1f} {next_y:.1f}")
        x, y = next_x, next_y
    return "".join(parts)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>html,body{{margin:0;height:100%;background:#f8fafc;overflow:hidden}}
#v{{width:100%;height:100%;cursor:grab;touch-action:none}}#v:active{{cursor:grabbing}}
#v>svg{{transform-origin:0 0}}</style></head><body><div id="v">{svg}</div>
<script>
const view = document.getElementById("v"), picture = view.firstElementChild;
const fit = Math.min(1, view.clientWidth / picture.clientWidth);
let scale = Math.max(fit, 0.3), x = (view.clientWidth - picture.clientWidth * scale) / 2, y = 0;
const show = () => {{
  picture.style.transform = `translate(${{x}}px,${{y}}px) scale(${{scale}})`;
}};
view.addEventListener("wheel", event => {{
  event.preventDefault();
  const factor = Math.exp(-event.deltaY * 0.0015);
  x = event.clientX - (event.clientX - x) * factor;
  y = event.clientY - (event.clientY - y) * factor;
  scale *= factor; show();
}}, {{passive: false}});
view.addEventListener("pointermove", event => {{
  if (event.buttons & 1) {{ x += event.movementX; y += event.movementY; show(); }}
}});
show();
</script></body></html>
"""
