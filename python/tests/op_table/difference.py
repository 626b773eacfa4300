"""Compares two observations of one call, and says the first difference in a few words."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator
from typing import Any

from op_table.call import Call, Op
from op_table.observe import Observation, is_meant
from op_table.row import Row

# How far rounding may carry a result, relative to it and to the largest element beside it.
RELATIVE = {
    "f64": 2e-10,
    "c128": 2e-10,
    "f32": 4e-6,
    "c64": 4e-6,
    "f16": 2e-3,
    "bf16": 1.6e-2,
    "c32": 2e-3,
}
# Where all that is expected is zero but for rounding, this is what is rounded.
FLOOR = 1e-5


def is_close(found: Any, expected: Any, relative: float, scale: float) -> bool:
    """Whether two numbers agree; nan agrees with nan, infinity with itself."""
    if found == expected:
        return True
    if isinstance(found, int | float) and isinstance(expected, int | float):
        if math.isnan(found) or math.isnan(expected):
            return math.isnan(found) and math.isnan(expected)
        if math.isinf(found) or math.isinf(expected):
            return False
        return abs(found - expected) <= relative * max(abs(expected), scale)
    return False


def values_differ(found: list[Any], expected: list[Any], dtype: str, slack: float) -> str | None:
    """The first element of two lists that is off by more than rounding."""
    if len(found) != len(expected):
        return f"{len(found)} elements for {len(expected)}"
    if dtype.startswith("c"):
        found, expected = joined_nans(found), joined_nans(expected)
    relative = RELATIVE.get(dtype, 0.0) * slack
    finite = [abs(e) for e in expected if isinstance(e, float) and math.isfinite(e)]
    scale = max(finite, default=0.0) + FLOOR
    for place, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if not is_close(ours, theirs, relative, scale):
            return f"element {place} is {ours!r} for {theirs!r}"
    return None


def joined_nans(parts: list[Any]) -> list[Any]:
    """Complex numbers in parts, both of them nan where one is: which of them is, is no rule."""
    joined = []
    for real, imaginary in zip(parts[::2], parts[1::2], strict=True):
        lost = math.isnan(real) or math.isnan(imaginary)
        joined += [math.nan, math.nan] if lost else [real, imaginary]
    return joined


def tensors_differ(found: Any, expected: Any, slack: float) -> str | None:
    """What differs between two tensors, or two numbers, shown as data."""
    if expected is None or found is None:
        return None if found is expected else f"{brief(found)} for {brief(expected)}"
    if "number" in expected or "number" in found:
        ours, theirs = found.get("number", "a tensor"), expected.get("number", "a tensor")
        close = is_close(ours, theirs, 1e-6, 0.0) and type(ours) is type(theirs)
        return None if close else f"{ours!r} for {theirs!r}"
    for key in ("dtype", "shape", "layout"):
        if found.get(key) != expected.get(key):
            return f"{key} {found.get(key)} for {expected.get(key)}"
    if "values" not in expected:
        return None
    return values_differ(found["values"], expected["values"], expected["dtype"], slack)


def memory_differs(found: Any, expected: Any) -> str | None:
    """Whether one of two results is a view of an input and the other is none, or another one."""
    for ours, theirs in zip(found, expected, strict=True):
        if ours.get("strides") != theirs.get("strides"):
            if "strides" not in theirs:
                return "shares memory with an input"
            if "strides" not in ours:
                return "shares no memory with its input"
            return f"a view of strides {ours['strides']} for {theirs['strides']}"
    return None


def brief(tensor: Any) -> str:
    """A gradient in one word: there is one or not."""
    return "no gradient" if tensor is None else "a gradient"


def lists_differ(found: list[Any], expected: list[Any], slack: float) -> str | None:
    """The first difference of two lists of tensors."""
    if len(found) != len(expected):
        return f"{len(found)} results for {len(expected)}"
    for ours, theirs in zip(found, expected, strict=True):
        reason = tensors_differ(ours, theirs, slack)
        if reason:
            return reason
    return None


def is_error(observation: Any) -> bool:
    """Whether an observation is an error."""
    return isinstance(observation, dict) and "error" in observation


def errors_differ(found: Observation, expected: Observation) -> str | None:
    """What differs between two observations of which one is an error at least.

    A subclass serves where programs catch its base: NotImplementedError for RuntimeError.
    """
    if is_error(found) and is_error(expected):
        ours, theirs = (getattr(builtins, seen["error"], None) for seen in (found, expected))
        if ours and theirs and issubclass(ours, theirs):
            return None
    message = found.get("message", "") if is_error(found) else ""
    ours, theirs = (seen["error"] if is_error(seen) else "a result" for seen in (found, expected))
    return f"{ours} for {theirs}{': ' if message else ''}{message}"


def differences(
    found: Observation, expected: Observation, slack: float = 1.0
) -> Iterator[tuple[str, str]]:
    """What differs between ours and what was expected: the aspect and the difference."""
    if is_error(found) or is_error(expected):
        reason = errors_differ(found, expected)
        if reason:
            yield (
                "class of error"
                if is_error(expected) and is_error(found)
                else "accepted"
                if is_error(expected)
                else "refused",
                reason,
            )
        return
    if found["kind"] != expected["kind"]:
        yield "kind", f"{found['kind']} for {expected['kind']}"
    reason = lists_differ(found["results"], expected["results"], slack)
    if reason:
        yield "values", reason
    else:
        reason = memory_differs(found["results"], expected["results"])
        if reason:
            yield "memory", reason
    yield from gradients_differ(found, expected, slack * 4)


def gradients_differ(
    found: Observation, expected: Observation, slack: float
) -> Iterator[tuple[str, str]]:
    """What differs between the gradients, first and second."""
    ours, theirs = found.get("gradients"), expected.get("gradients")
    if ours is None and theirs is None:
        return
    if ours is None or theirs is None:
        yield "autograd", "no gradient" if ours is None else "a gradient where none is expected"
    elif is_error(theirs) and not is_error(ours):
        # To have a derivative that the reference lacks is no fault.
        return
    elif is_error(ours):
        reason = errors_differ(ours, theirs if is_error(theirs) else {})
        if reason:
            yield "autograd", reason
    else:
        # A gradient that came through a coarser dtype is as coarse.
        through = [seen["dtype"] for seen in expected["results"] if seen.get("dtype") in RELATIVE]
        coarsest = max((RELATIVE[dtype] for dtype in through), default=0.0)
        slack *= max(coarsest / RELATIVE[theirs[0]["dtype"]], 1.0) if theirs and theirs[0] else 1.0
        reason = lists_differ(ours, theirs, slack)
        if reason:
            yield "autograd", reason
        yield from seconds_differ(found.get("second"), expected.get("second"), slack)


def seconds_differ(found: Any, expected: Any, slack: float) -> Iterator[tuple[str, str]]:
    """What differs between second gradients; none at all is one of zeros."""
    if expected is None or is_error(expected):
        return
    if found is None or is_error(found):
        yield "double_backward", errors_differ(found or {}, {}) if found else "no second gradient"
        return
    for place in range(max(len(found), len(expected))):
        ours, theirs = (seen[place] if place < len(seen) else None for seen in (found, expected))
        if ours is None or theirs is None:
            given = ours or theirs
            if given and not all(abs(value) < 1e-9 for value in given["values"]):
                yield "double_backward", f"{brief(ours)} for {brief(theirs)}"
                return
        else:
            reason = tensors_differ(ours, theirs, slack)
            if reason:
                yield "double_backward", reason
                return


def leading(op: Op, dtype: str) -> Call:
    """The call that says whether a dtype is supported."""
    return next(made for made in op.calls if is_meant(made, dtype))


def is_comparable(op: Op, row: Row, made: Call, dtype: str) -> bool:
    """Whether what a call gives in a dtype is a rule, and no accident of the order of checks.

    In a dtype outside of the row the first call says what happens; other calls may pass by the
    refusal, as those of empty tensors do.
    """
    return dtype in row.dtypes or made is leading(op, dtype)


def form_differs(found: Observation, expected: Observation, determined: bool) -> str | None:
    """What differs between the result of a form and the function's.

    Written in place, a result has the dtype of the tensor that holds it: only its elements are
    compared then.
    """
    ours, theirs = found["results"], expected["results"]
    if len(ours) != len(theirs):
        return f"{len(ours)} results for {len(theirs)}"
    for left, right in zip(ours, theirs, strict=True):
        if left.get("shape") != right.get("shape"):
            return f"shape {left.get('shape')} for {right.get('shape')}"
        if determined and "values" in right:
            reason = values_differ(left["values"], [*right["values"]], left["dtype"], 1.0)
            if reason:
                return reason
    return None
