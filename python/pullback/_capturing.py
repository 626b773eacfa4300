"""``pullback.capture``; what does it is loaded when it is first called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._capture import Captured


@overload
def capture(fn: Callable[..., Any], *, max_signatures: int = ...) -> Captured: ...
@overload
def capture(
    fn: None = ..., *, max_signatures: int = ...
) -> Callable[[Callable[..., Any]], Captured]: ...
def capture(fn: Callable[..., Any] | None = None, *, max_signatures: int = 8) -> Any:
    """A step that is recorded when it is first called, and replayed without Python afterwards.

    Only what the step *computes* is replayed: writes to tensors, ``.grad``s, random numbers,
    results. What else it does (printing, counting, appending to lists) happens when a call is
    recorded and not when it is replayed, as with ``jax.jit`` or a CUDA graph. What changes from
    call to call must be an argument: a batch that the step takes out of a list by a counter of its
    own is recorded as the batch it was.

    A replay gives what the step would give, bit by bit. Before each one it is checked whether the
    step would do the same: the kinds, sizes, strides and dtypes of the arguments, grad mode, and
    what the step uses besides: the parameters, buffers, modes and hooks of modules, options and
    state of optimisers, closures, globals, whether a ``.grad`` is there. If something differs, the
    call runs as it is and is recorded anew. What cannot be replayed runs as it is each time: steps
    that read elements on the host (``item()``, ``if loss > 1``, printing a tensor), whose shapes
    depend on elements, that have hooks, keep tensors elsewhere than in results and ``.grad``s, or
    return results with a graph that was not gone through. ``explain()`` says what was refused, why,
    and where.

    Results of a replay are new tensors, which no later replay overwrites. Intermediates lie in one
    block of memory, planned when the step is recorded, which the recording keeps.

    Args:
        fn: the step, a function or a module; without one, a decorator is returned. Its arguments
        may be
            tensors, numbers and strings in tuples, lists and dicts, and other objects.
        max_signatures: how many recordings are kept, of calls of different kinds; of more, the one
            that was replayed least is given up.

    Returns:
        A function with ``explain()``, what is recorded and refused as text, and ``reset()``, which
        forgets it.

    Raises:
        TypeError: for a step that cannot be called.
        ValueError: if ``max_signatures`` is less than 1.

    Example::

        @torch.capture
        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()
    """
    if not isinstance(max_signatures, int) or isinstance(max_signatures, bool):
        kind = type(max_signatures).__name__
        raise TypeError(f"capture(): max_signatures must be an int, but got {kind}")
    if max_signatures < 1:
        raise ValueError(f"capture(): max_signatures must be at least 1, but got {max_signatures}")
    if fn is None:
        return lambda given: capture(given, max_signatures=max_signatures)
    if not callable(fn):
        raise TypeError(f"capture(): the step must be callable, but got {type(fn).__name__}")
    from ._capture import Captured

    return Captured(fn, max_signatures)
