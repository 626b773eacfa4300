"""Programs that change a value which a node saved: outputs, inputs, views, masks and buffers."""

from __future__ import annotations

from blame.program import (
    CHANGE_A_CLONE,
    LEAVE_OUT,
    LEAVE_THE_SWITCH,
    PUT_TOGETHER,
    STALE,
    broken,
)

import pullback as torch
from pullback import nn
from pullback.nn import functional as F


@broken(STALE)
def the_output_of_exp_is_shifted() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()  # made: ExpBackward0
    y.add_(1)  # wrote: add_
    y.sum().backward()


@broken(STALE)
def the_output_of_sigmoid_is_scaled_by_an_augmented_assignment() -> None:
    x = torch.ones(3, requires_grad=True)
    gate = torch.sigmoid(x)  # made: SigmoidBackward0
    gate *= 0.5  # wrote: mul_
    gate.sum().backward()


@broken(STALE)
def a_residual_is_added_to_the_output_of_tanh() -> None:
    x = torch.ones(3, requires_grad=True)
    h = torch.tanh(x)  # made: TanhBackward0
    h += x  # wrote: add_
    h.sum().backward()


@broken(STALE)
def the_output_of_sqrt_is_divided() -> None:
    x = torch.ones(3, requires_grad=True)
    std = x.sqrt()  # made: SqrtBackward0
    std /= 2  # wrote: div_
    std.sum().backward()


@broken(STALE)
def a_softmax_by_hand_divides_in_place() -> None:
    logits = torch.zeros(2, 3, requires_grad=True)
    p = (logits - 1).exp()  # made: ExpBackward0
    p /= p.sum(1, keepdim=True)  # wrote: div_
    p.sum().backward()


@broken(STALE)
def attention_is_masked_after_the_softmax() -> None:
    scores = torch.zeros(2, 2, requires_grad=True)
    mask = torch.tensor([[False, True], [False, False]])
    attention = F.softmax(scores, dim=-1)  # made: SoftmaxBackward0
    attention.masked_fill_(mask, 0.0)  # wrote: masked_fill_
    attention.sum().backward()


@broken(STALE)
def the_output_of_log_softmax_is_negated() -> None:
    logits = torch.zeros(2, 3, requires_grad=True)
    losses = torch.log_softmax(logits, 1)  # made: LogSoftmaxBackward0
    losses.neg_()  # wrote: neg_
    losses.sum().backward()


@broken(STALE, hint=LEAVE_THE_SWITCH)
def relu_in_place_after_a_sigmoid() -> None:
    x = torch.ones(3, requires_grad=True)
    h = torch.sigmoid(x)  # made: SigmoidBackward0
    F.relu(h, inplace=True)  # wrote: relu_
    h.sum().backward()


@broken(STALE)
def dropout_in_place_after_a_tanh() -> None:
    x = torch.ones(64, requires_grad=True)
    h = x.tanh()  # made: TanhBackward0
    h = F.dropout(h, 0.5, training=True, inplace=True)  # wrote: mul_
    h.sum().backward()


@broken(STALE)
def the_output_of_relu_is_counted_up() -> None:
    x = torch.ones(3, requires_grad=True)
    h = F.relu(x)  # made: ReluBackward0
    h += 1  # wrote: add_
    h.sum().backward()


@broken(STALE)
def a_factor_of_a_product_is_counted_up() -> None:
    x = torch.ones(3, requires_grad=True)
    step = torch.zeros(3)
    y = x * step  # made: MulBackward0
    step += 1  # wrote: add_
    y.sum().backward()


@broken(STALE, hint=PUT_TOGETHER)
def a_mask_is_written_by_index() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()  # made: ExpBackward0
    y[y > 2] = 0.0  # wrote: index_put_
    y.sum().backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def one_element_is_written() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()  # made: ExpBackward0
    y[0] = 1  # wrote: copy_
    y.sum().backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def states_are_written_into_a_buffer_step_by_step() -> None:
    w = torch.ones(2, 2, requires_grad=True)
    h = torch.zeros(2, 4)
    for t in range(1, 4):
        h[:, t] = h[:, t - 1] * w[0]  # made: MulBackward0; wrote: copy_
    h.sum().backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def the_next_state_is_computed_from_a_slice_of_the_buffer() -> None:
    w = torch.ones(2, requires_grad=True)
    h = torch.zeros(2, 4)
    for t in range(1, 4):
        before = h[:, t - 1]
        after = before * w  # made: MulBackward0
        h[:, t] = after  # wrote: copy_
    h.sum().backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def the_hidden_state_of_a_module_is_copied_into() -> None:
    w = torch.ones(2, 2, requires_grad=True)
    state = torch.ones(2)
    after = torch.tanh(w @ state)  # made: MvBackward0
    state.copy_(after.detach())  # wrote: copy_
    after.sum().backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def the_state_is_set_to_zero_for_the_next_episode() -> None:
    w = torch.ones(2, requires_grad=True)
    state = torch.ones(2)
    value = torch.dot(w, state)  # made: DotBackward0
    state.zero_()  # wrote: zero_
    value.backward()


@broken(STALE)
def a_running_mean_is_kept_in_place() -> None:
    x = torch.ones(3, requires_grad=True)
    mean = torch.zeros(3)
    y = (x * mean).sum()  # made: MulBackward0
    mean.mul_(0.9).add_(x.detach(), alpha=0.1)  # wrote: add_
    y.backward()


@broken(STALE, hint=LEAVE_OUT)
def a_sum_is_written_into_a_saved_tensor_by_out() -> None:
    x = torch.ones(3, requires_grad=True)
    room = torch.ones(3)
    y = x / room  # made: DivBackward0
    torch.add(torch.ones(3), torch.ones(3), out=room)  # wrote: add(out=...)
    y.sum().backward()


@broken(STALE, hint=LEAVE_OUT)
def the_parameters_are_joined_into_a_saved_tensor_by_out() -> None:
    x = torch.ones(4, requires_grad=True)
    room = torch.ones(4)
    y = torch.pow(x, room)  # made: PowBackward1
    torch.cat([torch.ones(2), torch.ones(2)], out=room)  # wrote: cat(out=...)
    y.sum().backward()


@broken(STALE)
def a_view_of_a_saved_output_is_written() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    y = x.exp()  # made: ExpBackward0
    y.view(-1)[:2].mul_(3)  # wrote: mul_
    y.sum().backward()


@broken(STALE)
def the_transpose_of_a_saved_factor_is_written() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    w = torch.ones(2, 3)
    y = x * w  # made: MulBackward0
    w.t().clamp_(max=0.5)  # wrote: clamp_
    y.sum().backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def the_base_of_a_saved_view_is_written() -> None:
    x = torch.ones(3, requires_grad=True)
    table = torch.ones(2, 3)
    y = x * table[0]  # made: MulBackward0
    table.fill_(2)  # wrote: fill_
    y.sum().backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def one_gate_of_a_split_is_written() -> None:
    x = torch.ones(6, requires_grad=True)
    gates = torch.sigmoid(x)  # made: SigmoidBackward0
    with torch.no_grad():
        _, forget = gates.split(3)
        forget.fill_(1)  # wrote: fill_
    gates.sum().backward()


@broken(STALE)
def the_index_of_a_gather_is_counted_up() -> None:
    x = torch.ones(3, requires_grad=True)
    index = torch.tensor([0, 1])
    y = x.gather(0, index)  # made: GatherBackward0
    index += 1  # wrote: add_
    y.sum().backward()


@broken(STALE)
def the_condition_of_where_is_turned_round() -> None:
    x = torch.ones(3, requires_grad=True)
    mask = torch.tensor([True, False, True])
    y = torch.where(mask, x, 0.0)  # made: WhereBackward0
    mask.logical_not_()  # wrote: logical_not_
    y.sum().backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def noise_is_drawn_again_into_the_same_tensor() -> None:
    x = torch.ones(3, requires_grad=True)
    noise = torch.zeros(3)
    y = x * noise  # made: MulBackward0
    noise.normal_()  # wrote: normal_
    y.sum().backward()


@broken(STALE)
def a_sum_over_rows_is_scattered_into_a_saved_tensor() -> None:
    x = torch.ones(3, requires_grad=True)
    totals = torch.zeros(3)
    y = x * totals  # made: MulBackward0
    totals.index_add_(0, torch.tensor([0, 2]), torch.ones(2))  # wrote: index_add_
    y.sum().backward()


@broken(STALE)
def counts_are_scattered_into_a_saved_tensor() -> None:
    x = torch.ones(3, requires_grad=True)
    counts = torch.ones(3)
    y = x / counts  # made: DivBackward0
    counts.scatter_add_(0, torch.tensor([0]), torch.ones(1))  # wrote: scatter_add_
    y.sum().backward()


@broken(STALE)
def a_saved_matrix_is_made_triangular() -> None:
    a = torch.ones(2, 2, requires_grad=True)
    b = torch.ones(2, 2)
    y = a @ b  # made: MmBackward0
    b.tril_()  # wrote: tril_
    y.sum().backward()


@broken(STALE)
def the_norm_of_a_vector_is_clamped() -> None:
    x = torch.ones(3, requires_grad=True)
    norm = x.norm()  # made: LinalgVectorNormBackward0
    norm.clamp_(min=1e-6)  # wrote: clamp_
    (x / norm).sum().backward()


@broken(STALE)
def the_largest_elements_positions_are_shifted() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    values, where = x.max(dim=1)  # made: MaxBackward0
    where += 1  # wrote: add_
    values.sum().backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def the_storage_of_a_saved_tensor_is_replaced() -> None:
    x = torch.ones(3, requires_grad=True)
    w = torch.ones(3)
    y = x * w  # made: MulBackward0
    w.set_(torch.zeros(3))  # wrote: set_
    y.sum().backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def a_saved_buffer_is_resized() -> None:
    x = torch.ones(3, requires_grad=True)
    w = torch.ones(3)
    y = x * w  # made: MulBackward0
    w.resize_(4)  # wrote: resize_
    y.sum().backward()


@broken(STALE)
def a_target_of_a_loss_is_smoothed_in_place() -> None:
    x = torch.ones(3, requires_grad=True)
    target = torch.zeros(3)
    loss = F.mse_loss(x, target)  # made: MseLossBackward0
    target.lerp_(torch.ones(3), 0.1)  # wrote: lerp_
    loss.backward()


@broken(STALE)
def labels_are_remapped_after_the_loss() -> None:
    logits = torch.zeros(2, 3, requires_grad=True)
    labels = torch.tensor([0, 1])
    loss = F.cross_entropy(logits, labels)  # made: NllLossBackward0
    labels.remainder_(1)  # wrote: remainder_
    loss.backward()


@broken(STALE)
def a_gradient_of_a_gradient_needs_what_was_changed() -> None:
    x = torch.ones(3, requires_grad=True)
    (slope,) = torch.autograd.grad(x.exp().sum(), x, create_graph=True)
    penalty = slope.square().sum()  # made: PowBackward0
    slope.clamp_(max=1)  # wrote: clamp_
    penalty.backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def gradients_are_set_to_zero_before_they_are_differentiated() -> None:
    w = torch.ones(3, requires_grad=True)
    (w**3).sum().backward(create_graph=True)
    penalty = (w.grad * w).sum()  # made: MulBackward0
    w.grad.zero_()  # wrote: zero_
    penalty.backward()


@broken(STALE)
def the_input_is_changed_after_it_is_standardised() -> None:
    x = torch.ones(4, 2, requires_grad=True) * 1
    y = nn.LayerNorm(2)(x)  # made: NativeLayerNormBackward0
    x.add_(1)  # wrote: add_
    y.sum().backward()
