"""What helps to find where numbers went wrong; what does it is loaded when it is first called."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._tensor import Tensor


def record(path: Any) -> Any:
    """A context in which what every op computes goes to a file, for ``python -m pullback diff``.

    Written down are, for each op of this thread, forward and in backwards: its name, the line of
    the program (in a backward the line that made the node), and of each tensor that it gave or
    wrote to shape, dtype, a digest of 64 bits over the elements in row-major order, and least,
    largest and mean value. Digests depend neither on threads nor on how tensors lie in memory: two
    runs that compute the same have the same records. A program on PyTorch itself is recorded by a
    module that needs nothing else (``python -m pullback recorder``).

    Args:
        path: the file, which is written anew.

    Example::

        with torch.record("run.pbt"):
            loss = model(x).square().mean()
            loss.backward()
    """
    from ._record.recorder import record as begin

    return begin(path, sys.modules[__name__.rpartition(".")[0]])


def trace_nan(loss: Tensor) -> Any:
    """Says which op, on which line, gave the first value that is not finite, after the fact.

    Values are looked for first, in the order in which the ops ran, then gradients: those are
    computed again, with a look at each node. No ``.grad`` changes, and the graph is kept; hooks on
    tensors and nodes, and backwards of custom functions, do run again.

    A graph does not keep every value. Known are leaves (as they are now: an optimizer's step may
    have changed them since), what nodes saved for their derivatives, tensors in variables of the
    calling functions, and what can be computed again from these. So the answer names one op if all
    its arguments are known to be finite (``is_certain``), and otherwise also the lines that made
    those that are not known. Infinities that the program put in itself, as masks do
    (``masked_fill``, a tensor without history that holds them), count only once a NaN comes of
    them.

    Args:
        loss: the tensor, before ``backward()`` or after ``backward(retain_graph=True)``. After a
            backward that has freed the graph only gradients of leaves can be looked at.

    Returns:
        ``None`` if everything is finite, else what was found: ``kind`` (``"value"`` or
        ``"gradient"``), ``op``, ``file``, ``line``, ``is_certain``, and as text all of it.

    Raises:
        RuntimeError: if the graph was freed and no gradient of a leaf tells anything.
        TypeError: for what is no tensor.
    """
    from ._trace_nan import trace

    return trace(loss)
