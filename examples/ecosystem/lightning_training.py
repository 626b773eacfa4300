"""lightning: a convolutional network learns the handwritten digits; the best checkpoint is kept.

python -m pullback examples/ecosystem/lightning_training.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DIGITS = Path(__file__).parents[1] / "data" / "digits.bin"
COUNT = 1797


class Digits(lightning.LightningModule):
    """Two convolutions over images of 8 by 8 pixels."""

    def __init__(self, lr: float = 0.05) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(512, 10),
        )

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        """The loss of a batch."""
        images, labels = batch
        loss = nn.functional.cross_entropy(self.layers(images), labels)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: Any, index: int) -> None:
        """The share of a batch that is told right."""
        images, labels = batch
        right = self.layers(images).argmax(1) == labels
        self.log("accuracy", right.float().mean())

    def configure_optimizers(self) -> dict[str, Any]:
        """What trains, and how its steps become shorter."""
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams["lr"], momentum=0.9)
        return {
            "optimizer": optimizer,
            "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6),
        }


def loaders() -> tuple[DataLoader, DataLoader]:
    """Batches to learn from, and every fifth image to check with."""
    raw = torch.frombuffer(bytearray(DIGITS.read_bytes()), dtype=torch.uint8)
    images = raw[: 64 * COUNT].view(COUNT, 1, 8, 8).float() / 16
    labels = raw[64 * COUNT :].long()
    is_test = torch.arange(COUNT) % 5 == 0
    train = TensorDataset(images[~is_test], labels[~is_test])
    test = TensorDataset(images[is_test], labels[is_test])
    return DataLoader(train, batch_size=64, shuffle=True), DataLoader(test, batch_size=360)


def main() -> float:
    """Trains, reads the best checkpoint again, and gives the share that it tells right."""
    lightning.seed_everything(0, verbose=False)
    train, test = loaders()
    with tempfile.TemporaryDirectory() as folder:
        best = ModelCheckpoint(dirpath=folder, monitor="accuracy", mode="max")
        trainer = lightning.Trainer(
            max_epochs=6,
            accelerator="cpu",
            gradient_clip_val=5.0,
            logger=False,
            callbacks=[best],
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder,
        )
        trainer.fit(Digits(), train, test)
        again = Digits.load_from_checkpoint(best.best_model_path)
        (scores,) = trainer.validate(again, test, verbose=False)
    assert abs(scores["accuracy"] - float(best.best_model_score)) < 1e-6
    return scores["accuracy"]


if __name__ == "__main__":
    share = main()
    print(f"{share:.1%} of the other images are told right")
    assert share > 0.95
