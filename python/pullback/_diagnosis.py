"""Tools that find where numbers went wrong; each is loaded when it is first called."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from ._budget.region import MemoryBudget
    from ._memory_report import MemoryReport
    from ._tensor import Tensor


def memory_report(
    of: Tensor | Sequence[Tensor] | Callable[[], Tensor | Sequence[Tensor]],
) -> MemoryReport:
    """Reports which bytes a graph keeps for its backward pass: by op, by line and by module.

    Each storage counts once, for the op that saved it first. Apart from activations are named
    parameters (leaves that require grad) and inputs (tensors without history that the program holds
    itself): these are there anyway. What hooks on saved tensors packed, checkpoints among them, and
    what a backward has freed is counted as nodes, not as bytes.

    Tensors of the meta device have sizes as others do: a model that runs there is reported before
    it takes any memory.

    Args:
        of: a loss, several, or a function without arguments that computes them. If it is a
            function, the module of each op is known; of a graph that is there already only ops
            that use a parameter are placed.

    Returns:
        The report: ``print`` shows a table, ``to_dict()`` gives numbers, ``to_html()`` a page with
        a flame graph, ``total()``, ``by_op()``, ``by_line()``, ``by_module()`` parts of it.

    Raises:
        TypeError: for what is neither, or a function that gives no tensors.

    Example::

        print(torch.memory_report(lambda: model(x).square().mean()))
    """
    from ._memory_report import report

    return report(of)


def memory_budget(
    limit: int | float | str, *, offload: str | os.PathLike[str] | None = None
) -> MemoryBudget:
    """A context in which the memory of tensors stays below a limit, forward and backward.

    When an op would take more, values that the graph keeps for backward are given up: those first
    that cost least time per byte to compute again and have not been used for longest. They are
    computed again when backward asks for them, to the same bits, random masks included. Parameters,
    inputs and what the program holds itself are never given up. The region must be entered before
    the forward; for the backward pass to be within the limit, it must run in the region, too.

    The limit is on all that the allocator holds for the process (:func:`pullback.memory.live_bytes`
    , which counts whole blocks), parameters and states of optimizers included. Entering resets
    :func:`pullback.memory.peak_bytes`. Of nested regions the least limit holds. Ops of other
    threads count, but make no room.

    Args:
        limit: bytes, or a text: ``"300MB"`` (decimal), ``"1.5 GiB"`` (binary).
        offload: None computes again only, which is exact. ``"bf16"`` may also keep float32 values
            as bfloat16, which rounds them; a folder may take their bytes in files, which is exact,
            and removes these when they are no longer wanted. Both help also where values cannot be
            computed again.

    Returns:
        The context, an object that says what was done: ``print`` shows a table by op and line,
        ``to_dict()`` the same as numbers, ``peak`` and ``estimated_peak`` the bytes with and
        without the budget, ``seconds`` the time that computing again took.

    Raises:
        TypeError: for a limit, or a place, of another type.
        ValueError: for a text that is no size, a limit that is not positive, a folder that is not
            there.
        pullback.memory.MemoryBudgetError: inside of the region, by the op for which there is no
            room even when all that can be given up is; it says how much would be enough there, and
            what holds the most. It is an ``OutOfMemoryError``.

    Example::

        with torch.memory_budget("300MB") as budget:
            loss = model(x).square().mean()
            loss.backward()
        print(budget)
    """
    from ._budget.region import MemoryBudget

    return MemoryBudget(limit, offload=offload)


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
    """Names the op, and its line, that gave the first value that is not finite, after the fact.

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
