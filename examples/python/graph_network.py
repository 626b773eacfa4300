"""Sparse graph network: finds communities in a graph from five labels each.

    python examples/python/graph_network.py [--steps 150] [--seed 0] [--out demo-out]

A graph convolution (Kipf and Welling, 2017) averages what neighbours know: a product with the
sparse matrix `D^-1/2 (A + I) D^-1/2`, kept in CSR form, through which gradients flow. The graph is
drawn from a stochastic block model of four communities; what nodes say of themselves is mostly
noise. The same network without the graph shows what the edges are worth.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

from chart import PALETTE, Series
from command import parse, report
from figure import CLASSES, Figure, spread
from progress import Progress

import pullback as torch
from pullback import Tensor, nn

NODES, COMMUNITIES, FEATURES = 1200, 4, 16


class Graph(NamedTuple):
    """Edges (2, n), both directions of each; features, true communities, labelled nodes."""

    edges: Tensor
    features: Tensor
    labels: Tensor
    known: Tensor


def make_graph(inside: float = 0.03, outside: float = 0.002, noise: float = 2.0) -> Graph:
    """A stochastic block model: edges within a community are more likely than others."""
    labels = torch.arange(NODES) % COMMUNITIES
    chance = torch.where(labels[:, None] == labels, inside, outside)
    upper = torch.triu(torch.rand(NODES, NODES) < chance, diagonal=1)
    pairs = upper.nonzero().T
    centres = torch.randn(COMMUNITIES, FEATURES)
    features = centres[labels] + noise * torch.randn(NODES, FEATURES)
    known = torch.cat([(labels == c).nonzero().flatten()[:5] for c in range(COMMUNITIES)])
    return Graph(torch.cat((pairs, pairs.flip(0)), dim=1), features, labels, known)


def normalized(graph: Graph) -> Tensor:
    """`D^-1/2 (A + I) D^-1/2` as a sparse CSR matrix."""
    loops = torch.arange(NODES).expand(2, -1)
    places = torch.cat((graph.edges, loops), dim=1)
    degree = torch.bincount(places[0], minlength=NODES).float()
    values = (degree[places[0]] * degree[places[1]]).rsqrt()
    return torch.sparse_coo_tensor(places, values, (NODES, NODES)).coalesce().to_sparse_csr()


class Network(nn.Module):
    """Two layers that average over neighbours, to a plane, and a classifier on that plane."""

    def __init__(self, average: Tensor | None) -> None:
        super().__init__()
        self.average = average
        self.first = nn.Linear(FEATURES, 32)
        self.second = nn.Linear(32, 2)
        self.classifier = nn.Linear(2, COMMUNITIES)
        self.dropout = nn.Dropout(0.4)

    def mixed(self, x: Tensor) -> Tensor:
        """What the neighbours have, on average; without a graph each node is alone."""
        return x if self.average is None else self.average @ x

    def embed(self, features: Tensor) -> Tensor:
        """A point of the plane for each node."""
        hidden = torch.relu(self.mixed(self.first(self.dropout(features))))
        return self.mixed(self.second(hidden))

    def forward(self, features: Tensor) -> Tensor:
        """The scores of the communities."""
        return self.classifier(self.embed(features))


@torch.no_grad()
def accuracy(model: Network, graph: Graph) -> float:
    """The share of right answers for the nodes without a label."""
    model.eval()
    is_right = model(graph.features).argmax(1) == graph.labels
    is_right[graph.known] = False
    return is_right.sum().item() / (NODES - len(graph.known))


def train(model: Network, graph: Graph, steps: int, name: str) -> list[float]:
    """Learns from the labelled nodes; gives the accuracy on the others after each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    accuracies = [accuracy(model, graph)]
    progress = Progress(name, steps)
    for step in range(steps):
        model.train()
        scores = model(graph.features)[graph.known]
        loss = nn.functional.cross_entropy(scores, graph.labels[graph.known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracies.append(accuracy(model, graph))
        progress.update(step + 1, f"loss {loss.item():.3f}  accuracy {accuracies[-1]:.1%}")
    progress.finish(f"accuracy {accuracies[-1]:.1%} on nodes without a label")
    return accuracies


@torch.no_grad()
def draw(path: Path, graph: Graph, model: Network, runs: dict[str, list[float]]) -> None:
    """Writes the picture: features, embedding with edges, accuracy."""
    figure = Figure("Communities of a graph, from five labels each", 3, width=500, height=500)
    model.eval()
    left, size, _ = torch.pca_lowrank(graph.features, q=2)
    pictures = (
        ("features alone: two main directions", left * size, False),
        ("embedding by the graph network", model.embed(graph.features), True),
    )
    for column, (title, points, with_edges) in enumerate(pictures):
        xs, ys = points.T.tolist()
        panel = figure.axes((column, 0), title, spread(xs), spread(ys), ("first", "second"))
        panel.key([(f"group {c + 1}", CLASSES[c]) for c in range(COMMUNITIES)])
        if with_edges:
            for a, b in graph.edges.T[:: len(graph.edges[0]) // 700].tolist():
                panel.line(Series("", [xs[a], xs[b]], [ys[a], ys[b]], (148, 163, 184), 1.0, 0.35))
        for c in range(COMMUNITIES):
            own = range(c, NODES, COMMUNITIES)
            panel.points([xs[i] for i in own], [ys[i] for i in own], CLASSES[c], 2.8, 0.7)
    steps = list(range(len(next(iter(runs.values())))))
    panel = figure.axes(
        (2, 0), "right, of nodes without a label", (0, steps[-1]), (0, 1), ("step", "accuracy"),
        percent=True,
    )  # fmt: skip
    for (name, run), color in zip(runs.items(), PALETTE, strict=False):
        panel.line(Series(name, steps, run, color))
    panel.key(list(zip(runs, PALETTE, strict=False)))
    figure.save(path)


def main() -> None:
    """Trains with and without the graph."""
    # (Sparse CSR is marked as beta in PyTorch, and here too.)
    warnings.filterwarnings("ignore", message="Sparse .* tensor support is in beta")
    options = parse(__doc__, steps=150)
    torch.manual_seed(options.seed)
    graph = make_graph()
    average = normalized(graph)
    share = average.values().numel() / NODES**2
    print(f"{NODES} nodes, {graph.edges.shape[1] // 2} edges: {share:.1%} of the matrix is kept")
    models = {"graph network": Network(average), "without the graph": Network(None)}
    runs = {name: train(model, graph, options.steps, name) for name, model in models.items()}
    path = options.picture("graph_network.png")
    draw(path, graph, models["graph network"], runs)
    report("accuracy", runs["graph network"][0], runs["graph network"][-1], path)


if __name__ == "__main__":
    main()
