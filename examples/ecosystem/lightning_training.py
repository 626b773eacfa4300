"""lightning: a training loop that is written as a module, with a checkpoint.

python -m pullback examples/ecosystem/lightning_training.py
"""

from __future__ import annotations

import tempfile
from typing import Any

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Line(lightning.LightningModule):
    """A line through points."""

    def __init__(self, lr: float = 0.1) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layer = nn.Linear(1, 1)

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        """The squared error of a batch."""
        x, y = batch
        loss = nn.functional.mse_loss(self.layer(x), y)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """What trains."""
        return torch.optim.SGD(self.parameters(), lr=self.hparams["lr"])


def main() -> float:
    """Trains, reads the checkpoint again, and gives the slope that was found."""
    lightning.seed_everything(0, verbose=False)
    x = torch.randn(64, 1)
    loader = DataLoader(TensorDataset(x, 3 * x + 1), batch_size=16, shuffle=True)
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            max_epochs=10,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder,
        )
        model = Line()
        trainer.fit(model, loader)
        trainer.save_checkpoint(f"{folder}/line.ckpt")
        again = Line.load_from_checkpoint(f"{folder}/line.ckpt")
    assert torch.equal(again.layer.weight, model.layer.weight)
    return float(again.layer.weight)


if __name__ == "__main__":
    slope = main()
    print(f"slope {slope:.3f}")
    assert abs(slope - 3) < 0.1
