"""Arrays of NumPy from tensors, as type checkers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy
import numpy.typing
from typing_extensions import assert_type

import pullback as torch

x = torch.ones(2, 3)
assert_type(x.numpy(), numpy.typing.NDArray[Any])
assert_type(x.detach().numpy(force=True), numpy.typing.NDArray[Any])
assert_type(x.numpy().shape, tuple[int, ...])
assert_type(torch.from_numpy(numpy.zeros(3)), torch.Tensor)
if TYPE_CHECKING:
    # What is wrong is said.
    x.numpy().no_such_method()  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]
