"""Per-example gradients and influence: which training images make a classifier worse?

    python examples/python/influence.py [--steps 40] [--seed 0] [--out demo-out]

One label in twelve is wrong. `vmap(grad(loss))` gives the gradient of every training image by
itself; how much the loss on other images would change without image `i` is, to first order,

    g_i . H^-1 g_validation / n

(Koh and Liang, 2017), with the Hessian `H` of the training loss by `torch.func.hessian`. The most
harmful images turn out to be those with wrong labels. (A high loss betrays these as soon; influence
also says what each one costs.) Some of the predictions are checked by training without the image.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from chart import MUTED, PALETTE, Series
from command import parse, report
from digits_data import Digits, load
from figure import Figure, spread
from progress import Progress

import pullback as torch
from pullback import Tensor
from pullback.func import grad, hessian, vmap

DECAY = 1e-2
CLASSES = 10


class Labels(NamedTuple):
    """Labels as given to the classifier, and which of them are wrong."""

    given: Tensor
    is_wrong: Tensor


def spoil(labels: Tensor, share: float = 1 / 12) -> Labels:
    """Gives a share of the images another label."""
    is_wrong = torch.rand(len(labels)) < share
    shift = torch.randint(1, CLASSES, (len(labels),))
    return Labels(torch.where(is_wrong, (labels + shift) % CLASSES, labels), is_wrong)


def scores(weights: Tensor, images: Tensor) -> Tensor:
    """A linear classifier of 64 pixels; `weights` has 65 rows of ten, flattened."""
    matrix = weights.view(65, CLASSES)
    return images.flatten(-3) @ matrix[:64] + matrix[64]


def loss(weights: Tensor, images: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy, of one image or of many."""
    return torch.nn.functional.cross_entropy(scores(weights, images), labels)


def objective(weights: Tensor, images: Tensor, labels: Tensor, kept: Tensor) -> Tensor:
    """What training minimises: the loss of the images that are kept, with weight decay."""
    each = torch.nn.functional.cross_entropy(scores(weights, images), labels, reduction="none")
    return (each * kept).mean() + DECAY / 2 * weights.square().sum()


def fit(images: Tensor, labels: Tensor, kept: Tensor, start: Tensor, steps: int) -> Tensor:
    """The weights that minimise the objective, by L-BFGS."""
    weights = start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([weights], max_iter=steps, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = objective(weights, images, labels, kept)
        value.backward()
        return value

    optimizer.step(closure)
    return weights.detach()


def influence(weights: Tensor, train: Digits, labels: Tensor, validation: Digits) -> Tensor:
    """How much the loss on the validation images falls without each training image."""
    each = vmap(grad(loss), in_dims=(None, 0, 0))(weights, train.images, labels)
    towards = grad(loss)(weights, *validation)
    kept = torch.ones(len(labels), dtype=weights.dtype)
    curvature = hessian(objective)(weights, train.images, labels, kept)
    solved = torch.linalg.solve(curvature, towards)
    return -each @ solved / len(labels)


class Check(NamedTuple):
    """Predicted and true change of the validation loss without certain images."""

    predicted: list[float]
    actual: list[float]


def check(
    weights: Tensor, train: Digits, labels: Tensor, validation: Digits, harm: Tensor
) -> Check:
    """Trains without each of some images, from the most helpful to the most harmful."""
    order = harm.argsort()
    rows = torch.cat((order[:6], order[:: len(order) // 8], order[-12:])).tolist()
    base = loss(weights, *validation).item()
    progress = Progress("training without one image", len(rows))
    actual = []
    for row in rows:
        kept = torch.ones(len(labels), dtype=weights.dtype)
        kept[row] = 0
        again = fit(train.images, labels, kept, weights, 25)
        actual.append(base - loss(again, *validation).item())
        progress.update(len(actual), f"image {row}")
    predicted = harm[torch.tensor(rows)].tolist()
    both = torch.tensor([predicted, actual])
    progress.finish(f"{len(rows)} times, correlation {torch.corrcoef(both)[0, 1].item():.3f}")
    return Check(predicted, actual)


def found(order: Tensor, is_wrong: Tensor) -> list[float]:
    """The share of the wrong labels among the first images of an order, for each length."""
    hits = is_wrong[order].double().cumsum(0)
    return (hits / hits[-1].clamp_min(1)).tolist()


def draw(
    path: Path, train: Digits, labels: Labels, orders: dict[str, Tensor], checked: Check
) -> None:
    """Writes the picture: the most harmful images, how soon wrong labels are found, the check."""
    figure = Figure("Which images teach the wrong thing?", 3, width=500, height=500)
    worst = orders["influence"][:36].tolist()
    captions = [f"{labels.given[i].item()} not {train.labels[i].item()}" for i in worst]
    for at, row in enumerate(worst):
        if not labels.is_wrong[row]:
            captions[at] = f"{train.labels[row].item()} (right)"
    figure.tiles(
        (0, 0), "most harmful images, and their labels",
        train.images[torch.tensor(worst)].squeeze(1).tolist(), 6, captions,
    )  # fmt: skip
    panel = figure.axes(
        (1, 0), "wrong labels found", (0, 0.5), (0, 1.02), ("share of images looked at", "found"),
        percent=True,
    )  # fmt: skip
    places = [k / len(labels.given) for k in range(len(labels.given))]
    shown = sum(place <= 0.5 for place in places)
    panel.lines(
        [
            Series(name, places[:shown], found(order, labels.is_wrong)[:shown], color)
            for (name, order), color in zip(orders.items(), (*PALETTE[:2], MUTED), strict=True)
        ]
    )
    ends = spread([1e4 * value for part in checked for value in part], 0.1)
    panel = figure.axes(
        (2, 0),
        "loss without one image",
        ends,
        ends,
        ("predicted change x 10000", "change when trained anew"),
    )
    panel.line(Series("", ends, ends, MUTED, 1.2))
    predicted, actual = ([1e4 * value for value in part] for part in checked)
    panel.points(predicted, actual, PALETTE[0], 4, 0.8)
    panel.key([("one image each", PALETTE[0]), ("equal", MUTED)])
    figure.save(path)


def main() -> None:
    """Finds the wrong labels, drops the most harmful tenth, trains again."""
    options = parse(__doc__, steps=40)
    torch.manual_seed(options.seed)
    train, held = (Digits(part.images.double(), part.labels) for part in load())
    validation = Digits(held.images[::2], held.labels[::2])
    test = Digits(held.images[1::2], held.labels[1::2])
    labels = spoil(train.labels)
    everything = torch.ones(len(train.labels), dtype=torch.float64)
    nothing = torch.zeros(65 * CLASSES, dtype=torch.float64)
    weights = fit(train.images, labels.given, everything, nothing, options.steps)
    harm = influence(weights, train, labels.given, validation)
    losses = vmap(loss, in_dims=(None, 0, 0))(weights, train.images, labels.given)
    orders = {
        "influence": harm.argsort(descending=True),
        "loss": losses.argsort(descending=True),
        "chance": torch.randperm(len(harm)),
    }
    checked = check(weights, train, labels.given, validation, harm)
    tenth = len(harm) // 10
    share = found(orders["influence"], labels.is_wrong)[tenth - 1]
    print(f"{share:.0%} of the {int(labels.is_wrong.sum())} wrong labels are in the worst tenth")
    kept = everything.clone()
    kept[orders["influence"][:tenth]] = 0
    cleaned = fit(train.images, labels.given, kept, nothing, options.steps)
    path = options.picture("influence.png")
    draw(path, train, labels, orders, checked)
    before, after = (loss(fitted, *test).item() for fitted in (weights, cleaned))
    report("loss of test images", before, after, path)


if __name__ == "__main__":
    main()
