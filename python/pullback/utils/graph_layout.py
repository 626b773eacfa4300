"""A layered layout of a directed acyclic graph of boxes: where each box and edge goes.

Four steps, all linear or nearly so: layers by longest path; unseen points where an edge
passes a layer, so that edges run between boxes and not through them; an order within each
layer by sweeps of neighbours' means (Sugiyama, Tagawa and Toda, 1981); coordinates that
keep boxes under their neighbours. Invariant: boxes of one layer never overlap, and layers
are stacked without overlap. Nothing here knows what the boxes stand for.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

Size = tuple[float, float]
Point = tuple[float, float]

_GAP_X = 26.0
_GAP_Y = 44.0
_MARGIN = 24.0
# Room that an edge keeps where it passes a layer.
_LANE = 10.0
_SWEEPS = 8
_MAX_POINTS = 40_000


class Layout(NamedTuple):
    """`boxes` are (x, y, width, height) by node; `routes` the points of each edge."""

    width: float
    height: float
    boxes: list[tuple[float, float, float, float]]
    routes: list[list[Point]]


def lay_out(sizes: list[Size], edges: list[tuple[int, int]]) -> Layout:
    """Places boxes of the given sizes so that every edge points downwards.

    Raises `ValueError` if the edges form a cycle.
    """
    layer_of = _layers(len(sizes), edges)
    widths = [width for width, _ in sizes]
    chains = _split_long_edges(edges, layer_of, widths)
    layers: list[list[int]] = [[] for _ in range(max(layer_of, default=-1) + 1)]
    for item, layer in enumerate(layer_of):
        layers[layer].append(item)
    above, below = _neighbours(len(layer_of), chains)
    _order(layers, above, below)
    centres = _coordinates(layers, widths, above, below)
    tops, heights = _rows(layers, sizes)
    left = min((centres[i] - widths[i] / 2 for i in range(len(centres))), default=0.0)
    shift = _MARGIN - left
    boxes = []
    for item, (width, height) in enumerate(sizes):
        layer = layer_of[item]
        top = tops[layer] + (heights[layer] - height) / 2
        boxes.append((centres[item] + shift - width / 2, top, width, height))
    routes = [
        _route(chain, boxes, len(sizes), centres, shift, layer_of, tops, heights)
        for chain in chains
    ]
    right = max((centres[i] + widths[i] / 2 for i in range(len(centres))), default=0.0)
    bottom = tops[-1] + heights[-1] if tops else 0.0
    return Layout(right + shift + _MARGIN, bottom + _MARGIN, boxes, routes)


def _layers(count: int, edges: list[tuple[int, int]]) -> list[int]:
    """The longest distance of each node to a sink, reversed so that sinks are lowest."""
    sources: list[list[int]] = [[] for _ in range(count)]
    open_targets = [0] * count
    for source, target in edges:
        sources[target].append(source)
        open_targets[source] += 1
    rank = [0] * count
    ready = [node for node in range(count) if open_targets[node] == 0]
    done = 0
    while ready:
        node = ready.pop()
        done += 1
        for source in sources[node]:
            rank[source] = max(rank[source], rank[node] + 1)
            open_targets[source] -= 1
            if open_targets[source] == 0:
                ready.append(source)
    if done != count:
        raise ValueError(
            f"the graph has a cycle: {count - done} of {count} nodes are on or behind it"
        )
    highest = max(rank, default=0)
    return [highest - value for value in rank]


def _split_long_edges(
    edges: list[tuple[int, int]], layer_of: list[int], widths: list[float]
) -> list[list[int]]:
    """Each edge as a chain of items, one per layer; the points between are added as items."""
    total = sum(layer_of[target] - layer_of[source] - 1 for source, target in edges)
    chains = []
    for source, target in edges:
        first, last = layer_of[source], layer_of[target]
        chain = [source]
        # In a huge graph only edges over few layers get points of their own.
        if total <= _MAX_POINTS or last - first <= 4:
            for layer in range(first + 1, last):
                chain.append(len(layer_of))
                layer_of.append(layer)
                widths.append(_LANE)
        chains.append([*chain, target])
    return chains


def _neighbours(count: int, chains: list[list[int]]) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for chain in chains:
        for upper, lower in pairwise(chain):
            below[upper].append(lower)
            above[lower].append(upper)
    return above, below


def _order(layers: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    """Sorts each layer by the mean coordinate of its neighbours, down and up in turn."""
    coordinate = [0.0] * len(above)
    for layer in layers:
        _number(layer, coordinate)
    best = _crossings(layers, below, coordinate)
    kept = [list(layer) for layer in layers]
    for sweep in range(_SWEEPS):
        if best == 0:
            break
        neighbours = above if sweep % 2 == 0 else below
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            layer.sort(key=lambda item: _mean_coordinate(item, neighbours[item], coordinate))
            _number(layer, coordinate)
        crossings = _crossings(layers, below, coordinate)
        if crossings < best:
            best = crossings
            kept = [list(layer) for layer in layers]
    for layer, order in zip(layers, kept, strict=True):
        layer[:] = order


def _number(layer: list[int], coordinate: list[float]) -> None:
    # Centred, so that layers of different length compare.
    start = -(len(layer) - 1) / 2
    for position, item in enumerate(layer):
        coordinate[item] = start + position


def _mean_coordinate(item: int, neighbours: list[int], coordinate: list[float]) -> float:
    if not neighbours:
        return coordinate[item]
    return sum(coordinate[other] for other in neighbours) / len(neighbours)


def _crossings(layers: list[list[int]], below: list[list[int]], coordinate: list[float]) -> int:
    """How many pairs of edges cross, counted with a Fenwick tree (Barth et al., 2002)."""
    total = 0
    for upper, lower in pairwise(layers):
        rank = {item: position for position, item in enumerate(lower)}
        tree = [0] * (len(lower) + 1)
        seen = 0
        for item in upper:
            targets = sorted(rank[other] for other in below[item] if other in rank)
            for target in targets:
                at, not_right = target + 1, 0
                while at:
                    not_right += tree[at]
                    at &= at - 1
                total += seen - not_right
            for target in targets:
                at = target + 1
                while at < len(tree):
                    tree[at] += 1
                    at += at & -at
            seen += len(targets)
    return total


def _coordinates(
    layers: list[list[int]], widths: list[float], above: list[list[int]], below: list[list[int]]
) -> list[float]:
    """Centres: as near to the neighbours' as the spacing within the layer allows."""
    centres = [0.0] * len(widths)
    for layer in layers:
        _spread(layer, widths, [0.0] * len(layer), centres)
    for sweep in range(2 * _SWEEPS):
        neighbours = above if sweep % 2 == 0 else below
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wishes = [_mean_coordinate(item, neighbours[item], centres) for item in layer]
            _spread(layer, widths, wishes, centres)
    return centres


def _spread(
    layer: list[int], widths: list[float], wishes: list[float], centres: list[float]
) -> None:
    """Places a layer at least squares from its wishes, keeping order and gaps.

    With the offsets that the gaps demand taken off, this is isotonic regression: runs that
    would be out of order are pooled at their mean.
    """
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + (widths[left] + widths[right]) / 2 + _GAP_X)
    pools: list[tuple[float, int]] = []
    for wish, offset in zip(wishes, offsets, strict=True):
        mean, size = wish - offset, 1
        while pools and pools[-1][0] >= mean:
            other, count = pools.pop()
            mean = (mean * size + other * count) / (size + count)
            size += count
        pools.append((mean, size))
    position = 0
    for mean, size in pools:
        for _ in range(size):
            centres[layer[position]] = mean + offsets[position]
            position += 1


def _rows(layers: list[list[int]], sizes: list[Size]) -> tuple[list[float], list[float]]:
    tops, heights = [], []
    top = _MARGIN
    for layer in layers:
        height = max((sizes[item][1] for item in layer if item < len(sizes)), default=_LANE)
        tops.append(top)
        heights.append(height)
        top += height + _GAP_Y
    return tops, heights


def _route(
    chain: list[int],
    boxes: list[tuple[float, float, float, float]],
    box_count: int,
    centres: list[float],
    shift: float,
    layer_of: list[int],
    tops: list[float],
    heights: list[float],
) -> list[Point]:
    source, target = chain[0], chain[-1]
    points = [(centres[source] + shift, boxes[source][1] + boxes[source][3])]
    # Straight through the whole height of a layer that is passed, bends only between layers.
    for item in chain[1:-1]:
        x, layer = centres[item] + shift, layer_of[item]
        points.append((x, tops[layer]))
        points.append((x, tops[layer] + heights[layer]))
    points.append((centres[target] + shift, boxes[target][1]))
    if len(points) > 2:
        points = [points[0], *_without_runs(points[1:-1]), points[-1]]
    return points


def _without_runs(points: list[Point]) -> list[Point]:
    """Drops the inner points of vertical runs."""
    return [
        point
        for position, point in enumerate(points)
        if position in (0, len(points) - 1)
        or not points[position - 1][0] == point[0] == points[position + 1][0]
    ]
