"""Programs whose in-place writes are refused: to leaves, their views, and views without history."""

from __future__ import annotations

from typing import Any

from blame.program import LEAF_VIEW_WRITE, LEAF_WRITE, VIEW_WRITE, Cause, broken

import pullback as torch
from pullback import nn

UNBOUND = "Such functions do not allow the output views to be modified inplace."
OF_NO_GRAD = "A view was created in no_grad mode and is being modified inplace"
OF_FUNCTION = "This view was created inside a custom Function"

BASE_WRITE = Cause(
    phrase="is a view and its base or another view of its base has been modified inplace",
    headings={
        "wrote": "{} changed its base here",
        "used": "the view is used here",
        "view": "{} made the view here",
    },
)


@broken(LEAF_WRITE)
def a_leaf_is_counted_up() -> None:
    x = torch.ones(3, requires_grad=True)
    x += 1  # write


@broken(LEAF_WRITE)
def a_weight_is_updated_without_no_grad() -> None:
    net = nn.Linear(2, 1)
    net(torch.ones(1, 2)).sum().backward()
    for p in net.parameters():
        p.sub_(0.1 * p.grad)  # write


@broken(LEAF_WRITE)
def a_parameter_is_filled_by_the_user() -> None:
    nn.Parameter(torch.ones(3)).fill_(0)  # write


@broken(LEAF_WRITE)
def a_module_writes_to_its_parameter_in_forward() -> None:
    class Count(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = nn.Parameter(torch.zeros(1))

        def forward(self, x: Any) -> Any:
            self.calls += 1  # write
            return x * self.calls

    nn.Sequential(Count())(torch.ones(1))


@broken(LEAF_WRITE)
def relu_in_place_on_a_leaf() -> None:
    x = torch.ones(3, requires_grad=True)
    nn.ReLU(inplace=True)(x)  # write


@broken(LEAF_WRITE)
def dropout_in_place_on_a_leaf() -> None:
    x = torch.ones(3, requires_grad=True)
    nn.functional.dropout(x, inplace=True)  # write


@broken(LEAF_WRITE)
def a_leaf_is_written_by_a_mask() -> None:
    x = torch.ones(3, requires_grad=True)
    x[x > 0] = 0.0  # write


@broken(LEAF_VIEW_WRITE)
def one_element_of_a_leaf_is_written() -> None:
    x = torch.ones(3, requires_grad=True)
    x[0] = 1  # write; view: SelectBackward0


@broken(LEAF_VIEW_WRITE)
def a_column_of_a_leaf_is_written() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    x[:, 1] = torch.zeros(2)  # write; view: SelectBackward0


@broken(LEAF_VIEW_WRITE)
def a_slice_of_a_leaf_is_added_to() -> None:
    x = torch.ones(4, requires_grad=True)
    x[1:3] += 1  # write; view: SliceBackward0


@broken(LEAF_VIEW_WRITE)
def a_tensor_is_copied_into_a_view_of_a_weight() -> None:
    weight = nn.Linear(3, 3).weight
    row = weight[0]  # view: SelectBackward0
    row.copy_(torch.zeros(3))  # write


@broken(LEAF_VIEW_WRITE)
def a_reshaped_leaf_is_written() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    flat = x.view(6)  # view: ViewBackward0
    flat.zero_()  # write


@broken(LEAF_VIEW_WRITE)
def a_transposed_leaf_is_written() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    turned = x.t()  # view: TBackward0
    turned *= 2  # write


@broken(LEAF_VIEW_WRITE)
def an_expanded_leaf_is_written() -> None:
    x = torch.ones(3, requires_grad=True)
    wide = x.expand(2, 3)  # view: ExpandBackward0
    wide.add_(1)  # write


@broken(LEAF_VIEW_WRITE)
def the_row_of_padding_of_an_embedding_is_written() -> None:
    table = nn.Embedding(4, 2)
    table.weight[0].fill_(0)  # write; view: SelectBackward0


@broken(VIEW_WRITE, phrase=UNBOUND)
def one_part_of_a_chunk_is_written() -> None:
    x = torch.ones(4, requires_grad=True) * 1
    a, _ = x.chunk(2)  # view: SplitBackward0
    a += 1  # write


@broken(VIEW_WRITE, phrase=UNBOUND)
def one_gate_of_a_split_is_written() -> None:
    gates = torch.ones(2, 6, requires_grad=True).sigmoid()
    forget, *_ = gates.split(2, dim=1)  # view: SplitBackward0
    forget.add_(1.0)  # write


@broken(VIEW_WRITE, phrase=UNBOUND)
def one_row_of_unbind_is_written() -> None:
    x = torch.ones(2, 3, requires_grad=True) * 1
    rows = x.unbind(0)  # view: UnbindBackward0
    rows[0].zero_()  # write


@broken(VIEW_WRITE, phrase=UNBOUND)
def a_row_is_written_while_the_tensor_is_gone_through() -> None:
    x = torch.ones(2, 3, requires_grad=True) * 1
    for row in x:  # view: UnbindBackward0
        row.mul_(2)  # write


@broken(VIEW_WRITE, phrase=UNBOUND)
def a_row_is_written_by_the_augmented_assignment_of_a_loop() -> None:
    x = torch.ones(2, 3, requires_grad=True) * 1
    for k, row in enumerate(x):  # view: UnbindBackward0
        row += k  # write


@broken(VIEW_WRITE, phrase=OF_NO_GRAD)
def a_view_made_under_no_grad_is_written() -> None:
    x = torch.ones(3, requires_grad=True) * 1
    with torch.no_grad():
        head = x[:2]
    head.mul_(2)  # write


@broken(VIEW_WRITE, phrase="view was created in inference mode and is being modified inplace")
def a_view_made_in_inference_mode_is_written() -> None:
    x = torch.ones(3, requires_grad=True) * 1
    with torch.inference_mode():
        head = x[:2]
    head.mul_(2)  # write


@broken(VIEW_WRITE, phrase=OF_FUNCTION)
def a_view_made_by_a_custom_function_is_written() -> None:
    class Head(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[:2]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return torch.cat([grad, torch.zeros(1)])

    y = Head.apply(torch.ones(3, requires_grad=True) * 1)  # view: HeadBackward
    y.add_(1)  # write


@broken(VIEW_WRITE, phrase=OF_FUNCTION)
def an_input_returned_by_a_custom_function_is_written() -> None:
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    y = Same.apply(torch.ones(3, requires_grad=True) * 1)  # view: SameBackward
    y.add_(1)  # write


@broken(VIEW_WRITE, phrase="Output 0 of SliceBackward0 is a view of a view which was created in no")
def a_view_of_a_view_made_under_no_grad_is_written() -> None:
    x = torch.ones(3, requires_grad=True) * 1
    with torch.no_grad():
        head = x[:2]
    first = head[:1]  # view: SliceBackward0
    first.mul_(2)  # write


@broken(BASE_WRITE)
def the_base_of_the_parts_of_a_split_is_written() -> None:
    x = torch.ones(4, requires_grad=True) * 1
    head, _ = x.split(2)  # view: SplitBackward0
    x.add_(1)  # wrote: add_
    head.sum()  # used
