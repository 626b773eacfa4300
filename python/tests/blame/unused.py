"""Programs that ask for the gradient of what the output does not depend on."""

from __future__ import annotations

from typing import Any

from blame.program import UNUSED, broken

import pullback as torch
from pullback import nn
from pullback.autograd import grad


def leaf() -> Any:
    return torch.ones(3, requires_grad=True)


@broken(UNUSED)
def the_input_was_detached() -> None:
    h = leaf() * 2  # input: MulBackward0
    w = leaf()
    loss = (h.detach() * w).sum()  # output: SumBackward0
    grad(loss, h)


@broken(UNUSED)
def the_input_went_through_data() -> None:
    h = leaf().exp()  # input: ExpBackward0
    loss = (h.data * leaf()).mean()  # output: MeanBackward0
    grad(loss, h)


@broken(UNUSED)
def the_input_became_a_number() -> None:
    scale = leaf().sum()  # input: SumBackward0
    loss = leaf().prod() * scale.item()  # output: MulBackward0
    grad(loss, scale)


@broken(UNUSED)
def the_input_was_copied_by_the_constructor() -> None:
    h = leaf().sum()  # input: SumBackward0
    copy = torch.tensor(h.item(), requires_grad=True)
    loss = copy.exp()  # output: ExpBackward0
    grad(loss, h)


@broken(UNUSED)
def the_input_was_used_under_no_grad() -> None:
    h = leaf() + 1  # input: AddBackward0
    with torch.no_grad():
        factor = h * 2
    loss = factor @ leaf()  # output: DotBackward0
    grad(loss, [h])


@broken(UNUSED)
def the_input_is_a_leaf_of_another_graph() -> None:
    x, other = leaf(), leaf()
    loss = (x * x).sum()  # output: SumBackward0
    grad(loss, other)


@broken(UNUSED)
def the_input_is_a_view_made_after_the_use() -> None:
    x = leaf()
    loss = x.square().sum()  # output: SumBackward0
    first = x[0]  # input: SelectBackward0
    grad(loss, first)


@broken(UNUSED)
def the_input_is_a_copy_of_what_was_used() -> None:
    x = leaf()
    loss = x.square().sum()  # output: SumBackward0
    same = x.clone()  # input: CloneBackward0
    grad(loss, same)


@broken(UNUSED)
def the_input_is_one_name_for_two_tensors() -> None:
    x = leaf()
    h = x.exp()
    loss = h.log().sum()  # output: SumBackward0
    h = x.exp()  # input: ExpBackward0
    grad(loss, h)


@broken(UNUSED)
def the_input_was_overwritten_before_its_use() -> None:
    h = leaf() * 3
    old = h
    h = torch.zeros(3, requires_grad=True)
    h = h.sin()
    loss = h.sum()  # output: SumBackward0
    grad(loss, old.neg())  # input: NegBackward0


@broken(UNUSED)
def a_layer_is_not_used_in_forward() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.forgotten = nn.Linear(3, 1), nn.Linear(3, 1)

        def forward(self, x: Any) -> Any:
            return self.used(x)  # output: AddmmBackward0

    net = Net()
    grad(net(torch.ones(1, 3)), net.forgotten.weight)


@broken(UNUSED)
def a_linear_function_has_no_second_gradient() -> None:
    x = leaf()
    w = leaf()
    (slope,) = grad((x * w).sum(), x, create_graph=True)
    grad(slope.sum(), x)  # output: SumBackward0


@broken(UNUSED)
def a_gradient_penalty_for_another_input() -> None:
    real, fake = leaf(), leaf()
    score = (real.square() * 2).sum()
    (slope,) = grad(score, real, create_graph=True)
    penalty = slope.norm()  # output: LinalgVectorNormBackward0
    mixed = real * 0.5 + fake * 0.5  # input: AddBackward0
    grad(penalty, mixed)


@broken(UNUSED)
def a_branch_is_not_taken() -> None:
    h = leaf().tanh()  # input: TanhBackward0
    x = leaf()
    y = h if x.sum() < 0 else x
    loss = y.sum()  # output: SumBackward0
    grad(loss, h)


@broken(UNUSED)
def an_argument_is_ignored_by_a_function_of_the_users() -> None:
    def cost(a: Any, b: Any) -> Any:
        return a.square().sum()  # output: SumBackward0

    h = leaf() / 2  # input: DivBackward0
    grad(cost(leaf(), h), h)


@broken(UNUSED)
def the_time_of_a_solution_does_not_enter_it() -> None:
    t = torch.linspace(0, 1, 3).requires_grad_()
    t = t.view(3, 1)  # input: ViewBackward0
    net = nn.Linear(1, 1)
    u = net(t.detach())  # output: AddmmBackward0
    grad(u, t, torch.ones(3, 1))


@broken(UNUSED)
def a_mask_of_a_comparison_carries_no_gradient() -> None:
    h = leaf() - 1  # input: SubBackward0
    loss = torch.where(h > 0, leaf(), 0).sum()  # output: SumBackward0
    grad(loss, h)


@broken(UNUSED)
def a_rounded_index_carries_no_gradient() -> None:
    where = leaf().sigmoid()  # input: SigmoidBackward0
    table = torch.ones(4, requires_grad=True)
    loss = table[where.long()].sum()  # output: SumBackward0
    grad(loss, where)
