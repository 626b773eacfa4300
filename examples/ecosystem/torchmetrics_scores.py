"""torchmetrics: scores of a classifier collected over batches, beside the same ones by hand.

python -m pullback examples/ecosystem/torchmetrics_scores.py
"""

from __future__ import annotations

import torch
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
)
from torchmetrics.regression import MeanSquaredError, R2Score


def main() -> float:
    """Collects scores of batches, and gives the accuracy."""
    torch.manual_seed(0)
    scores = MetricCollection(
        {
            "accuracy": MulticlassAccuracy(num_classes=3, average="micro"),
            "f1": MulticlassF1Score(num_classes=3, average="macro"),
            "table": MulticlassConfusionMatrix(num_classes=3),
        }
    )
    loss, squared, explained = MeanMetric(), MeanSquaredError(), R2Score()
    right = count = 0
    for _ in range(5):
        labels = torch.randint(0, 3, (40,))
        logits = torch.randn(40, 3) + 2 * torch.nn.functional.one_hot(labels, 3)
        scores.update(logits, labels)
        loss.update(torch.nn.functional.cross_entropy(logits, labels))
        truth = torch.randn(40)
        squared.update(truth + 0.1, truth)
        explained.update(truth + 0.1, truth)
        right += int((logits.argmax(-1) == labels).sum())
        count += 40
    found = scores.compute()
    table = found["table"]
    assert int(table.sum()) == count
    assert abs(float(found["accuracy"]) - right / count) < 1e-6
    assert int(table.diagonal().sum()) == right
    f1 = 2 * table.diagonal() / (table.sum(0) + table.sum(1))
    assert abs(float(found["f1"]) - float(f1.mean())) < 1e-6
    assert abs(float(squared.compute()) - 0.01) < 1e-6
    assert 0.9 < float(explained.compute()) < 1
    assert 0 < float(loss.compute()) < 2
    return right / count


if __name__ == "__main__":
    print(f"accuracy {main():.1%}")
