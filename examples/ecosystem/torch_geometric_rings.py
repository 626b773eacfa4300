"""torch_geometric: a graph network tells rings from paths by their nodes' neighbours.

python -m pullback examples/ecosystem/torch_geometric_rings.py
"""

from __future__ import annotations

import torch
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, global_add_pool
from torch_geometric.utils import degree, to_undirected


def graph(nodes: int, is_ring: bool) -> Data:
    """A path, which is closed if it is to be a ring; nodes carry how many neighbours they have."""
    ends = torch.arange(nodes if is_ring else nodes - 1)
    edges = to_undirected(torch.stack([ends, (ends + 1) % nodes]))
    x = degree(edges[0], nodes).unsqueeze(1)
    return Data(x=x, edge_index=edges, y=torch.tensor([int(is_ring)]))


class Network(torch.nn.Module):
    """Two convolutions over neighbours and a sum over the nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.first = GCNConv(1, 16)
        self.second = GATConv(16, 16, heads=2, concat=False)
        self.last = torch.nn.Linear(16, 2)

    def forward(self, data: Data) -> torch.Tensor:
        """Scores of the two classes."""
        x = self.first(data.x, data.edge_index).relu()
        x = self.second(x, data.edge_index).relu()
        return self.last(global_add_pool(x, data.batch))


def main() -> float:
    """Trains, and gives the share of larger graphs that are told right."""
    torch.manual_seed(0)
    graphs = [graph(nodes, ring) for nodes in range(4, 12) for ring in (True, False)]
    network = Network()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(40):
        for batch in DataLoader(graphs, batch_size=8, shuffle=True):
            loss = functional.cross_entropy(network(batch), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    (batch,) = DataLoader(graphs, batch_size=len(graphs))
    return float((network(batch).argmax(1) == batch.y).float().mean())


if __name__ == "__main__":
    share = main()
    print(f"{100 * share:.0f}% of the graphs are told right")
    assert share > 0.9
