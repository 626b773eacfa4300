"""gpytorch: a Gaussian process through noisy points of a sine.

python -m pullback examples/ecosystem/gpytorch_regression.py
"""

from __future__ import annotations

import math

import gpytorch
import torch


class Process(gpytorch.models.ExactGP):
    """A process with a constant mean and a kernel of squared distances."""

    def __init__(
        self, x: torch.Tensor, y: torch.Tensor, likelihood: gpytorch.likelihoods.Likelihood
    ) -> None:
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        """The distribution of values at places."""
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def main() -> float:
    """Fits the process, and gives its largest error between the points."""
    torch.manual_seed(0)
    x = torch.linspace(0, 1, 40)
    y = torch.sin(x * 2 * math.pi) + 0.05 * torch.randn(40)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Process(x, y, likelihood)
    model.train()
    likelihood.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    for _ in range(60):
        optimizer.zero_grad()
        loss = -marginal(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    likelihood.eval()
    places = torch.linspace(0.05, 0.95, 33)
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        found = likelihood(model(places))
    lower, upper = found.confidence_region()
    assert bool((lower < upper).all())
    return float((found.mean - torch.sin(places * 2 * math.pi)).abs().max())


if __name__ == "__main__":
    error = main()
    print(f"largest error of the mean: {error:.3f}")
    assert error < 0.15
