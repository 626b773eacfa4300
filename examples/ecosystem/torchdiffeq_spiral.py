"""torchdiffeq: the matrix of a linear differential equation, found from points on one solution.

python -m pullback examples/ecosystem/torchdiffeq_spiral.py
"""

from __future__ import annotations

import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint

TRUE = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
START = torch.tensor([[2.0, 0.0]])


class Linear(nn.Module):
    """The equation ``dy/dt = y A``."""

    def __init__(self, matrix: torch.Tensor) -> None:
        super().__init__()
        self.matrix = nn.Parameter(matrix)

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The derivative at a time and a place."""
        return y @ self.matrix


def main() -> float:
    """Fits the matrix by the adjoint equation, and gives its largest error."""
    torch.manual_seed(0)
    times = torch.linspace(0.0, 2.0, 12)
    with torch.no_grad():
        points = odeint(Linear(TRUE), START, times, rtol=1e-6, atol=1e-6)
    # The solution of this equation is known: exp(-0.1 t) times a rotation by 2 t.
    angle, size = 2 * times, 2 * torch.exp(-0.1 * times)
    exact = torch.stack([size * torch.cos(angle), size * torch.sin(angle)], -1)
    assert torch.allclose(points[:, 0], exact, atol=1e-4)

    model = Linear(TRUE + 0.3 * torch.randn(2, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(120):
        found = odeint_adjoint(model, START, times, rtol=1e-4, atol=1e-4)
        loss = (found - points).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float((model.matrix - TRUE).abs().max())


if __name__ == "__main__":
    error = main()
    print(f"largest error of the matrix: {error:.4f}")
    assert error < 0.05
