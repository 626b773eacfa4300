"""accelerate: a training loop that its `Accelerator` prepares, with gradients of several batches.

python -m pullback examples/ecosystem/accelerate_training.py
"""

from __future__ import annotations

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> float:
    """Trains a line, and gives its slope."""
    set_seed(0)
    x = torch.randn(64, 1)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    loader = DataLoader(TensorDataset(x, 3 * x + 1), batch_size=8, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for _ in range(15):
        for inputs, targets in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(inputs), targets)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 10.0)
                optimizer.step()
                optimizer.zero_grad()
    return float(accelerator.unwrap_model(model).weight)


if __name__ == "__main__":
    slope = main()
    print(f"slope {slope:.3f}")
    assert abs(slope - 3) < 0.1
