"""Tensors and their functions, as type checkers see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import assert_type

import pullback as torch
from pullback import Tensor

x = torch.randn(3, 4, requires_grad=True)
assert_type(x, Tensor)
assert_type(x.shape, torch.Size)
assert_type(x.shape[0], int)
assert_type(x.size(), torch.Size)
assert_type(x.size(0), int)
assert_type(x.dtype, torch.dtype)
assert_type(x.device, torch.device)
assert_type(x.grad, Tensor | None)
assert_type(x.is_leaf, bool)
assert_type(x.ndim, int)
assert_type(x.numel(), int)
assert_type(x.stride(), tuple[int, ...])
assert_type(x[0], Tensor)
assert_type(x[..., None, 1:2], Tensor)
assert_type(x[x > 0], Tensor)
assert_type(x.nonzero(), Tensor)
assert_type(x.nonzero(as_tuple=True), tuple[Tensor, ...])
assert_type(x + 1, Tensor)
assert_type(2 * x, Tensor)
assert_type(x @ x.T, Tensor)
assert_type(-x, Tensor)
assert_type(x**2, Tensor)
assert_type(x == x, Tensor)
assert_type(x < 0, Tensor)
assert_type(x.sum(), Tensor)
assert_type(x.sum(dim=0, keepdim=True), Tensor)
assert_type(x.mean((0, 1)), Tensor)
assert_type(x.max(), Tensor)
assert_type(x.max(dim=1), torch.return_types.max)
assert_type(x.max(dim=1).values, Tensor)
values, indices = x.topk(2)
assert_type(values, Tensor)
assert_type(indices, Tensor)
assert_type(torch.sort(x).indices, Tensor)
assert_type(x.to(torch.float64), Tensor)
assert_type(x.to("cpu", torch.float32), Tensor)
assert_type(x.float(), Tensor)
assert_type(x.view(-1), Tensor)
assert_type(x.view(2, 6), Tensor)
assert_type(x.reshape((12,)), Tensor)
assert_type(x.permute(1, 0), Tensor)
assert_type(x.split(2), tuple[Tensor, ...])
assert_type(x.chunk(2, dim=1), tuple[Tensor, ...])
assert_type(x.unbind(), tuple[Tensor, ...])
assert_type(x[0, 0].item(), int | float | bool)
assert_type(x.detach().add_(1), Tensor)
assert_type(x.detach().cpu(), Tensor)
assert_type(x.requires_grad_(), Tensor)
assert_type(x.is_contiguous(), bool)
assert_type(len(x), int)
assert_type(float(x[0, 0]), float)
assert_type(list(x), list[Tensor])
assert_type(torch.cat([x, x], dim=0), Tensor)
assert_type(torch.stack((x, x)), Tensor)
assert_type(torch.where(x > 0, x, 0.0), Tensor)
assert_type(torch.einsum("ij,kj->ik", x, x), Tensor)
assert_type(torch.zeros(2, 3, dtype=torch.int64), Tensor)
assert_type(torch.zeros((2, 3)), Tensor)
assert_type(torch.arange(3), Tensor)
assert_type(torch.tensor([1, 2]), Tensor)
assert_type(torch.full((2,), 1.0), Tensor)
assert_type(torch.linalg.vector_norm(x), Tensor)
assert_type(torch.linalg.svd(x).S, Tensor)
assert_type(torch.broadcast_tensors(x, x), tuple[Tensor, ...])
assert_type(torch.meshgrid(x[0], x[1], indexing="ij"), tuple[Tensor, ...])
assert_type(torch.is_tensor(x), bool)
assert_type(torch.allclose(x, x), bool)
assert_type(torch.equal(x, x), bool)
assert_type(torch.get_default_dtype(), torch.dtype)
assert_type(torch.finfo(torch.float32).eps, float)
assert_type(torch.iinfo(torch.int32).max, int)
assert_type(torch.__version__ >= "2.0", bool)

dtypes: Sequence[torch.dtype] = [torch.float32, torch.long, torch.bool, torch.complex64]
device: torch.device = torch.device("cpu")


def of_kinds(a: torch.LongTensor, b: torch.FloatTensor, c: torch.BoolTensor) -> Tensor:
    """Annotations by the older classes."""
    return a + b * c


def maybe(mask: torch.Tensor | None = None, *, ids: torch.LongTensor | None = None) -> Tensor:
    """Annotations with None."""
    return x if mask is None else mask


assert_type(torch.FloatTensor([1.0]).sum(), Tensor)
numbers: list[list[float]] = x.tolist()

if TYPE_CHECKING:
    # What is wrong is said.
    torch.exp("a")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    torch.add(x, "a")  # type: ignore[call-overload] # pyright: ignore[reportArgumentType]
    x.no_such_method()  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]
