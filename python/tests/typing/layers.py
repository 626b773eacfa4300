"""Modules and functions of `torch.nn`, as type checkers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import assert_type

import pullback as torch
import pullback.nn.functional as F
from pullback import Tensor, nn

x = torch.randn(2, 3, 8, 8)
row = torch.randn(4, 6)
assert_type(F.relu(x), Tensor)
assert_type(F.gelu(x, approximate="tanh"), Tensor)
assert_type(F.softmax(row, dim=-1), Tensor)
assert_type(F.log_softmax(row, dim=-1), Tensor)
assert_type(F.dropout(x, 0.1, training=True), Tensor)
assert_type(F.linear(row, torch.randn(2, 6)), Tensor)
assert_type(F.conv2d(x, torch.randn(4, 3, 3, 3), padding=1), Tensor)
assert_type(F.max_pool2d(x, 2), Tensor)
assert_type(F.avg_pool2d(x, 2), Tensor)
assert_type(F.adaptive_avg_pool2d(x, 1), Tensor)
assert_type(F.layer_norm(row, (6,)), Tensor)
assert_type(F.batch_norm(x, None, None, training=True), Tensor)
assert_type(F.group_norm(x, 3), Tensor)
assert_type(F.embedding(torch.tensor([1]), row), Tensor)
assert_type(F.mse_loss(row, row), Tensor)
assert_type(F.cross_entropy(row, torch.zeros(4, dtype=torch.long)), Tensor)
assert_type(F.binary_cross_entropy_with_logits(row, row), Tensor)
assert_type(F.nll_loss(row, torch.zeros(4, dtype=torch.long)), Tensor)
assert_type(F.kl_div(row, row, reduction="batchmean"), Tensor)
assert_type(F.smooth_l1_loss(row, row), Tensor)
assert_type(F.normalize(row, dim=-1), Tensor)
assert_type(F.one_hot(torch.tensor([1]), 3), Tensor)
assert_type(F.pad(x, (1, 1)), Tensor)
assert_type(F.scaled_dot_product_attention(x, x, x, is_causal=True), Tensor)
assert_type(F.silu(x), Tensor)
assert_type(F.leaky_relu(x, 0.1), Tensor)
assert_type(F.grid_sample(x, torch.zeros(2, 4, 4, 2), align_corners=False), Tensor)
assert_type(F.pixel_shuffle(torch.randn(1, 4, 2, 2), 2), Tensor)

# What a module is called with and gives is up to its class: `forward` has the types.
linear = nn.Linear(6, 2)
assert_type(linear.forward(row), Tensor)
assert_type(linear.weight, nn.Parameter)
assert_type(linear.bias, nn.Parameter)
assert_type(linear(row), Any)
conv = nn.Conv2d(3, 4, kernel_size=(3, 3), padding="same", bias=False)
assert_type(conv.weight, nn.Parameter)
assert_type(conv(x), Any)
assert_type(conv.kernel_size, tuple[int, ...])
norm = nn.LayerNorm(6)
assert_type(norm.weight, nn.Parameter)
batch = nn.BatchNorm2d(3)
assert_type(batch.running_mean, Tensor | None)
assert_type(batch(x), Any)
assert_type(F.max_pool2d(x, 2, return_indices=True), tuple[Tensor, Tensor])
table = nn.Embedding(10, 4)
assert_type(table.weight, nn.Parameter)
net = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
assert_type(net(row), Any)
assert_type(net[0], nn.Module)
assert_type(net[:2], nn.Sequential)
assert_type(len(net), int)
layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
for layer in layers:
    assert_type(layer, nn.Module)
named = nn.ModuleDict({"a": nn.Linear(1, 1)})
assert_type(named["a"], nn.Module)
attention = nn.MultiheadAttention(8, 2, batch_first=True)
q = torch.randn(2, 3, 8)
out, weights = attention(q, q, q)
lstm = nn.LSTM(8, 4)
states, (h, c) = lstm(q)
assert_type(nn.MSELoss()(row, row), Any)
assert_type(nn.Parameter(torch.ones(2)), nn.Parameter)
assert_type(nn.Parameter(torch.ones(2)) + 1, Tensor)
nn.init.xavier_uniform_(linear.weight)
nn.init.zeros_(linear.bias)
assert_type(nn.init.normal_(linear.weight, std=0.02), Tensor)

if TYPE_CHECKING:
    # What is wrong is said.
    nn.Linear("a", 2)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    F.relu(x, inplac=True)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
