"""Programs whose nodes fail when they are run: wrong gradients of the users', and NaN."""

from __future__ import annotations

from typing import Any

from blame.program import BACKWARD, DETACHED, GRADIENTS, NAN, broken

import pullback as torch
from pullback import nn
from pullback.autograd import Function, detect_anomaly, grad
from pullback.autograd.function import once_differentiable
from pullback.nn import functional as F


def leaf() -> Any:
    return torch.ones(3, requires_grad=True)


def zeros() -> Any:
    return torch.zeros(3, requires_grad=True)


@broken(GRADIENTS, phrase="incorrect number of gradients (expected 2, got 1)")
def a_custom_function_gives_too_few_gradients() -> None:
    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    y = Product.apply(leaf(), leaf())  # made: ProductBackward
    y.sum().backward()


@broken(GRADIENTS, phrase="incorrect number of gradients (expected 1, got 2)")
def a_custom_function_gives_too_many_gradients() -> None:
    class Twice(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, grad

    Twice.apply(leaf()).sum().backward()  # made: TwiceBackward


@broken(GRADIENTS, phrase="at index 0 - got [2] but expected shape compatible with [3]")
def a_custom_function_gives_a_gradient_of_a_wrong_shape() -> None:
    class Crop(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[:2].clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    y = Crop.apply(leaf())  # made: CropBackward
    y.sum().backward()


@broken(GRADIENTS, phrase="at index 1 - got [1, 3] but expected shape compatible with [3, 1]")
def a_custom_linear_layer_forgets_to_transpose() -> None:
    class Linear(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, w = ctx.saved_tensors
            return grad @ w.t(), grad.t() @ x

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3, 1))

        def forward(self, x: Any) -> Any:
            return Linear.apply(x, self.weight)  # made: LinearBackward

    Layer()(torch.ones(4, 3)).sum().backward()


@broken(GRADIENTS, phrase="different than None at position 2")
def a_custom_function_gives_a_gradient_for_a_number() -> None:
    class Scale(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, by: float) -> Any:
            return x * by

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, grad

    Scale.apply(leaf(), 2.0).sum().backward()  # made: ScaleBackward


@broken(GRADIENTS, phrase="expected Variable or None (got float)")
def a_custom_function_gives_a_number_as_gradient() -> None:
    class Mean(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.mean()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad.item() / 3

    Mean.apply(leaf()).backward()  # made: MeanBackward


@broken(
    BACKWARD,
    phrase="trying to differentiate twice a function that was marked with @once_differentiable",
)
def a_function_that_is_differentiable_once_is_differentiated_twice() -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, grad: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * grad

    x, v = leaf(), leaf()
    y = Square.apply(x)  # made: torch::autograd::Error
    (slope,) = grad(y, x, v, create_graph=True)
    slope.sum().backward()


@broken(
    BACKWARD,
    phrase="has changed the size of value",
)
def a_hook_crops_a_gradient() -> None:
    y = leaf() * 2  # made: MulBackward0
    y.register_hook(lambda grad: grad[:1])
    y.sum().backward()


@broken(DETACHED)
def a_saved_input_is_detached_in_place() -> None:
    x = leaf() * 1
    y = x * x  # made: MulBackward0
    x.detach_()
    y.sum().backward()


@broken(DETACHED)
def the_hidden_state_is_detached_in_place_before_the_backward() -> None:
    w, h = leaf(), leaf().exp()
    out = torch.dot(w, h)  # made: DotBackward0
    h.detach_()
    out.backward()


@broken(NAN)
def the_slope_of_a_root_at_zero() -> None:
    x = zeros()
    with detect_anomaly():
        y = x.sqrt()  # made: SqrtBackward0
        (y * 0).sum().backward()


@broken(NAN)
def a_logarithm_of_zero_times_zero() -> None:
    p = zeros()
    with detect_anomaly():
        terms = torch.log(p)  # made: LogBackward0
        (p.detach() * terms).sum().backward()


@broken(NAN)
def zero_divided_by_zero() -> None:
    x = zeros()
    with detect_anomaly():
        y = x / x  # made: DivBackward0
        y.sum().backward()


@broken(NAN)
def a_distance_of_a_point_to_itself() -> None:
    x = zeros()
    with detect_anomaly():
        distance = x.square().sum().sqrt()  # made: SqrtBackward0
        (0 * distance).backward()


@broken(NAN)
def a_vector_of_zeros_is_normalised() -> None:
    x = zeros()
    with detect_anomaly():
        unit = x / x.square().sum()  # made: DivBackward0
        unit.sum().backward()


@broken(NAN)
def a_branch_that_where_does_not_take() -> None:
    x = zeros()
    with detect_anomaly():
        y = torch.where(x > 0, x.log(), x)  # made: LogBackward0
        y.sum().backward()


@broken(NAN)
def a_softmax_of_a_row_that_is_masked_out() -> None:
    scores = zeros()
    with detect_anomaly():
        masked = scores.masked_fill(torch.ones(3).bool(), -torch.inf)
        weights = F.softmax(masked, dim=0)  # made: SoftmaxBackward0
        weights.sum().backward()


@broken(NAN)
def the_norm_of_what_was_divided_by_zero() -> None:
    x = zeros()
    with detect_anomaly():
        norm = (x / 0).norm()  # made: LinalgVectorNormBackward0
        norm.backward()


@broken(NAN)
def a_power_of_zero_by_a_half() -> None:
    x = zeros()
    with detect_anomaly():
        y = x**0.5  # made: PowBackward0
        (0 * y).sum().backward()


@broken(NAN)
def a_custom_function_gives_nan() -> None:
    class Bad(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * torch.nan

    with detect_anomaly():
        y = Bad.apply(leaf())  # made: BadBackward
        y.sum().backward()


@broken(NAN)
def a_loss_of_the_users_divides_by_an_empty_mask() -> None:
    class MaskedLoss(nn.Module):
        def forward(self, x: Any, mask: Any) -> Any:
            return (x * mask).sum() / mask.sum()  # made: DivBackward0

    with detect_anomaly():
        MaskedLoss()(leaf(), zeros().detach()).mul(0).backward()
