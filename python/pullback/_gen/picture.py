"""The pictures of graphs in the pages: each drawn from a graph that the library recorded.

A picture is a function that returns a tensor with its leaves' names; `PICTURES` lists them by
file. Nothing is drawn by hand, so that a page cannot show a graph that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pullback as torch
from pullback import Tensor, nn
from pullback.utils.graph import to_svg

__all__ = ["PICTURES", "Drawing", "texts"]


class Drawing(NamedTuple):
    """The options of a drawing by `to_svg`."""

    tensor: Tensor
    names: dict[str, Tensor]
    title: str
    show_saved: bool = False


def _vector() -> Tensor:
    return torch.tensor([0.5, -1.0, 2.0], requires_grad=True)


def chain() -> Drawing:
    """A small expression, with what its nodes keep."""
    x, w, b = torch.tensor([1.0, 2.0, 3.0]), _vector(), torch.tensor(1.0, requires_grad=True)
    y = (x * w + b).sin().sum()
    return Drawing(y, {"w": w, "b": b}, "(x * w + b).sin().sum()", show_saved=True)


def shared() -> Drawing:
    """A leaf that is used three times."""
    w = _vector()
    return Drawing(w * w + w.exp(), {"w": w}, "w * w + w.exp()")


def written_view() -> Drawing:
    """A write through a view, of which the base must know."""
    w, x = _vector(), torch.tensor(3.0, requires_grad=True)
    base = w * 2
    base[0].mul_(x)
    return Drawing(base.sum(), {"w": w, "x": x}, "base = w * 2; base[0].mul_(x)")


def second_order() -> Drawing:
    """The graph of a gradient that was computed with `create_graph=True`."""
    w = _vector()
    (slope,) = torch.autograd.grad((w**3).sum(), w, create_graph=True)
    return Drawing(slope, {"w": w}, "the gradient of (w ** 3).sum()")


class Clip(torch.autograd.Function):
    """The example of the page: its gradient is cut off, not its value."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, limit: float) -> Tensor:
        """The value, unchanged."""
        ctx.limit = limit
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """The gradient within its limits."""
        return grad.clamp(-ctx.limit, ctx.limit), None


def custom_function() -> Drawing:
    """A function with a custom derivative."""
    w = _vector()
    y = Clip.apply(w * 10, 0.5)
    return Drawing(y.sum(), {"w": w}, "Clip.apply(w * 10, 0.5).sum()")


def training_step() -> Drawing:
    """The loss of a small network."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    loss = nn.functional.cross_entropy(model(torch.ones(5, 4)), torch.tensor([0, 1, 2, 0, 1]))
    return Drawing(loss, dict(model.named_parameters()), "the loss of a small network")


PICTURES: dict[str, Callable[[], Drawing]] = {
    "graph-chain.svg": chain,
    "graph-shared.svg": shared,
    "graph-view.svg": written_view,
    "graph-second-order.svg": second_order,
    "graph-custom.svg": custom_function,
    "graph-training.svg": training_step,
}


def texts() -> dict[str, str]:
    """The text of each picture, by the name of its file."""
    made = {}
    # (The random stream of the caller is restored.)
    state = torch.get_rng_state()
    for name, draw in PICTURES.items():
        tensor, names, title, show_saved = draw()
        made[name] = to_svg(tensor, names, show_saved, title)
    torch.set_rng_state(state)
    return made
