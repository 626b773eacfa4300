"""The custom function by which an op that a program defines is recorded, and seen by vmap."""

from __future__ import annotations

from typing import Any

from ..autograd.function import Function, FunctionMeta
from ._overload import CustomOverload, list_lengths, unflattened


def function_of(op: CustomOverload) -> type:
    """A class whose ``forward`` is the op below autograd and whose ``backward`` is its rule."""
    schema = op._parsed

    def forward(*flat: Any) -> Any:
        result = op._below(unflattened(schema, flat, list_lengths(schema, flat)))
        return tuple(result) if isinstance(result, list) else result

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx._list_lengths = list_lengths(schema, inputs)
        if op.setup_context is None:
            return
        args, kwargs = op._split(unflattened(schema, inputs, ctx._list_lengths))
        named = {"keyword_only_inputs": kwargs} if kwargs else {}
        op.setup_context(ctx=ctx, inputs=args, output=output, **named)

    def backward(ctx: Any, *grads: Any) -> Any:
        if op.backward is None:
            raise RuntimeError(
                f"Trying to backward through {op.name()} but no autograd formula was registered: "
                "torch.library.register_autograd() registers one"
            )
        given = [list(grads)] if schema.returns == ("Tensor[]",) else list(grads)
        result = op.backward(ctx, *given)
        return _flat_gradients(op, result if isinstance(result, tuple) else (result,), ctx)

    def vmap(info: Any, in_dims: Any, *flat: Any) -> Any:
        lengths = list_lengths(schema, flat)
        values, dims = unflattened(schema, flat, lengths), unflattened(schema, in_dims, lengths)
        if op.vmap is None:
            return _one_by_one(op, info.batch_size, dims, values)
        args, kwargs = op._split(values)
        return op.vmap(info, tuple(dims[: len(args)]), *args, **kwargs)

    members = {
        "forward": staticmethod(forward),
        "setup_context": staticmethod(setup_context),
        "backward": staticmethod(backward),
        "vmap": staticmethod(vmap),
    }
    name = "".join(part.capitalize() for part in f"{op.namespace}_{op._opname}".split("_"))
    return FunctionMeta(f"Generated{name}", (Function,), members)


def _flat_gradients(op: CustomOverload, result: tuple[Any, ...], ctx: Any) -> tuple[Any, ...]:
    """The gradients of the rule, one for each argument of the custom function."""
    by_position = [argument for argument in op._parsed.arguments if not argument.is_kwarg_only]
    if len(result) != len(by_position):
        raise RuntimeError(
            f"the backward of {op.name()} gave {len(result)} gradients for "
            f"{len(by_position)} arguments"
        )
    flat: list[Any] = []
    lengths = iter(ctx._list_lengths)
    for argument, grad in zip(by_position, result, strict=True):
        length = next(lengths) if argument.is_list_of_tensors else None
        if length is None:
            flat.append(grad)
            continue
        grads = [None] * length if grad is None else list(grad)
        if len(grads) != length:
            raise RuntimeError(
                f"the backward of {op.name()} gave {len(grads)} gradients for the {length} tensors "
                f"of '{argument.name}'"
            )
        flat.extend([None, *grads])
    # (Arguments that can be given by name only have no gradient.)
    return (*flat, *[None] * (len(ctx.needs_input_grad) - len(flat)))


def _one_by_one(op: CustomOverload, count: int, dims: list[Any], values: list[Any]) -> Any:
    """A batch by one call for each example."""
    from .. import stack

    results = []
    for number in range(count):
        example = [_selected(value, dim, number) for value, dim in zip(values, dims, strict=True)]
        args, kwargs = op._split(example)
        results.append(op(*args, **kwargs))
    if isinstance(results[0], tuple | list):
        columns = tuple(stack(list(column)) for column in zip(*results, strict=True))
        return columns, tuple(0 for _ in columns)
    return stack(results), 0


def _selected(value: Any, dim: Any, number: int) -> Any:
    if isinstance(dim, list):
        return [_selected(item, own, number) for item, own in zip(value, dim, strict=True)]
    return value if dim is None else value.select(dim, number)
