"""pyro: how fair a coin is, by variational inference and by Hamiltonian Monte Carlo.

python -m pullback examples/ecosystem/pyro_coin.py
"""

from __future__ import annotations

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from pyro.optim import Adam
from torch.distributions import constraints

HEADS, TAILS = 14, 6
DATA = torch.tensor([1.0] * HEADS + [0.0] * TAILS)


def model(data: torch.Tensor) -> None:
    """A coin whose fairness is Beta(2, 2) before anything is seen."""
    fairness = pyro.sample("fairness", dist.Beta(2.0, 2.0))
    with pyro.plate("tosses", len(data)):
        pyro.sample("toss", dist.Bernoulli(fairness), obs=data)


def guide(data: torch.Tensor) -> None:
    """A distribution Beta(a, b) whose parameters are sought."""
    a = pyro.param("a", torch.tensor(2.0), constraint=constraints.positive)
    b = pyro.param("b", torch.tensor(2.0), constraint=constraints.positive)
    pyro.sample("fairness", dist.Beta(a, b))


def main() -> tuple[float, float]:
    """The mean that both ways find; it is known: Beta(2 + heads, 2 + tails)."""
    pyro.set_rng_seed(0)
    pyro.clear_param_store()
    inference = SVI(model, guide, Adam({"lr": 0.02}), Trace_ELBO(num_particles=4))
    for _ in range(600):
        inference.step(DATA)
    a, b = pyro.param("a").item(), pyro.param("b").item()
    chain = MCMC(NUTS(model), num_samples=150, warmup_steps=50, disable_progbar=True)
    chain.run(DATA)
    return a / (a + b), chain.get_samples()["fairness"].mean().item()


if __name__ == "__main__":
    exact = (2 + HEADS) / (4 + HEADS + TAILS)
    variational, sampled = main()
    print(f"exact {exact:.3f}, variational {variational:.3f}, sampled {sampled:.3f}")
    assert abs(variational - exact) < 0.08
    assert abs(sampled - exact) < 0.05
