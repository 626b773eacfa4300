"""Small functions that PyTorch keeps in ``nn.functional`` for its own functions there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "assert_int_or_pair",
    "boolean_dispatch",
]


class _Lists:
    """Stands in annotations for one value or a list of some; ``BroadcastingList2[int]``."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _Lists()


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Refuses what is neither a number nor two.

    Raises:
        AssertionError: ``message``, with ``arg_name`` in it.
    """
    if not isinstance(arg, int) and len(arg) != 2:
        raise AssertionError(message.format(arg_name))


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """A function that is one of two, by an argument that is true or false.

    Args:
        arg_name: the argument's name.
        arg_index: its place.
        default: what it is unless given.
        if_true: what is called when it is true.
        if_false: what is called when it is false.
        module_name: where the function says that it is.
        func_name: its name.
    """

    def choose(*args: Any, **kwargs: Any) -> Any:
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    choose.__name__, choose.__module__ = func_name, module_name
    choose.__doc__ = if_true.__doc__ or if_false.__doc__
    return choose
