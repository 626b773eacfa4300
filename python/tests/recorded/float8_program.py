"""Calls on the floating dtypes of one byte, which PyTorch and pullback run alike.

``facts(torch)`` gives what can be compared: the bytes of results, hashes of many, and the class and
the phrase of what is refused. `record_float8.py` keeps PyTorch's, `test_float8.py` compares.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any

NAMES = (
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn_x2",
)


def _bytes(torch: Any, tensor: Any) -> list[int]:
    tensor = tensor.detach().contiguous()
    if tensor.dim() == 0:
        tensor = tensor.reshape(1)
    return list(tensor.view(torch.uint8).flatten().tolist())


def _digest(torch: Any, tensor: Any) -> str:
    return hashlib.sha256(bytes(_bytes(torch, tensor))).hexdigest()[:32]


def singles(torch: Any, dtype: Any) -> list[float]:
    """The values of all codes, the middles of neighbours, and the singles beside each of these."""
    values = torch.arange(256, dtype=torch.uint8).view(dtype).to(torch.float32).tolist()
    finite = sorted({value for value in values if math.isfinite(value)})
    finite += [2 * finite[-1], 1e38, 3.4e38]
    below = [
        1e-45,
        1e-40,
        4e-39,
        5.877471754111438e-39,
        6e-39,
        8.8e-39,
        8.816207631167156e-39,
        9e-39,
    ]
    found = []
    for value in [
        *below,
        *finite,
        *((a + b) / 2 for a, b in itertools.pairwise(finite)),
    ]:
        try:
            (bits,) = struct.unpack("<I", struct.pack("<f", value))
        except OverflowError:
            continue
        for step in (-1, 0, 1):
            (near,) = struct.unpack("<f", struct.pack("<I", (bits + step) & 0xFFFFFFFF))
            if math.isfinite(near):
                found += [near, -near]
    return [*found, math.inf, -math.inf, math.nan, 0.0, -0.0]


def conversions(torch: Any, dtype: Any) -> dict[str, Any]:
    """Every code read, and numbers of other dtypes written."""
    codes = torch.arange(256, dtype=torch.uint8).view(dtype)
    halves = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    near = torch.tensor(singles(torch, dtype), dtype=torch.float32)
    wide = torch.tensor([1.0625 + 1e-12, 17 + 1e-9, 1e300, -1e300, 1e-300], dtype=torch.float64)
    whole = torch.tensor([17, 2**40, -3, 0, 2**24 + 1, 2**62], dtype=torch.int64)
    few = torch.tensor([0, 1, 2, 63, 64, 126, 127, 128, 192, 254, 255]).to(torch.uint8).view(dtype)
    return {
        "to float32": _digest(torch, codes.to(torch.float32)),
        "to float16": _digest(torch, codes.to(torch.float16).nan_to_num(1.5)),
        "to float64": _digest(torch, codes.to(torch.float64).nan_to_num(1.5)),
        "to bool": _digest(torch, codes.to(torch.bool)),
        "to complex64": _digest(torch, codes.to(torch.complex64)),
        **{
            f"to {name}": few.to(getattr(torch, name)).tolist()
            for name in ("int64", "uint8", "int16")
        },
        "from float16": _digest(torch, halves.view(torch.float16).to(dtype)),
        "from bfloat16": _digest(torch, halves.view(torch.bfloat16).to(dtype)),
        "from float32": _digest(torch, near.to(dtype)),
        "from strided": _digest(torch, near[::3].to(dtype)),
        "from float64": _bytes(torch, wide.to(dtype)),
        "from int64": _bytes(torch, whole.to(dtype)),
        "from bool": _bytes(torch, (whole > 0).to(dtype)),
        "from complex64": _bytes(
            torch, torch.tensor([1 + 2j, -3j], dtype=torch.complex64).to(dtype)
        ),
        "to e5m2": _digest(torch, codes.to(torch.float8_e5m2)),
        "to e8m0fnu": _digest(torch, codes.to(torch.float8_e8m0fnu)),
    }


def numbers(torch: Any, dtype: Any) -> dict[str, Callable[[], Any]]:
    """Numbers written and read one by one."""
    x = torch.tensor([[1, 2], [64, 130]], dtype=torch.uint8).view(dtype)
    found: dict[str, Callable[[], Any]] = {
        "item": lambda: x[1, 0].item(),
        "tolist": lambda: x[:, :1].tolist(),
        "repr": lambda: repr(x),
        "finfo": lambda: repr(torch.finfo(dtype)),
        "iinfo": lambda: repr(torch.iinfo(dtype)),
        "to_complex": lambda: dtype.to_complex(),
        "kinds": lambda: (
            dtype.is_floating_point,
            dtype.is_complex,
            dtype.is_signed,
            dtype.itemsize,
        ),
        "kinds of tensors": lambda: (x.is_floating_point(), x.is_complex(), x.is_signed()),
        "set_default_dtype": lambda: torch.set_default_dtype(dtype),
        "type": lambda: x.type(),
        "is_nonzero": lambda: x[0, 0].is_nonzero(),
        "can_cast": lambda: [
            torch.can_cast(*pair)
            for other in (torch.float32, torch.int64)
            for pair in ((dtype, other), (other, dtype))
        ],
    }
    for value in (0, 1, -3, 0.5, 300.0, 449, 1e6, math.inf, math.nan, 1e39, 1j):
        found[f"tensor {value}"] = lambda value=value: torch.tensor([value, value], dtype=dtype)
        found[f"fill {value}"] = lambda value=value: torch.zeros(3, dtype=dtype).fill_(value)
        found[f"full {value}"] = lambda value=value: torch.full((2,), value, dtype=dtype)
        found[f"fill one {value}"] = lambda value=value: torch.zeros(1, dtype=dtype).fill_(value)
    return found


def moves(torch: Any, dtype: Any) -> dict[str, Callable[[], Any]]:
    """Calls that move elements."""
    x = torch.tensor([[1, 2, 3], [64, 130, 7]], dtype=torch.uint8).view(dtype)
    mask = torch.tensor([[True, False, True], [False, True, True]])
    at = torch.tensor([1, 0])
    functional = torch.nn.functional
    return {
        "clone": x.clone,
        "contiguous": lambda: x.t().contiguous(),
        "cat": lambda: torch.cat([x, x.flip(0)], 1),
        "stack": lambda: torch.stack([x, x]),
        "index": lambda: x[at],
        "index mask": lambda: x[mask],
        "index_put": lambda: x.clone().index_put_((at,), x),
        "index_put accumulate": lambda: x.clone().index_put_((at,), x, accumulate=True),
        "setitem": lambda: x.clone().index_put_((at[:1],), x[0]),
        "index_select": lambda: x.index_select(1, at),
        "masked_select": lambda: x.masked_select(mask),
        "where": lambda: torch.where(mask, x, x.flip(0)),
        "flip": lambda: x.flip(0),
        "roll": lambda: x.roll(1, 1),
        "repeat": lambda: x.repeat(2, 2),
        "repeat_interleave": lambda: x.repeat_interleave(2, 0),
        "tile": lambda: x.tile(2),
        "expand": lambda: x[:1].expand(3, 3).contiguous(),
        "diag": lambda: x[0].diag(),
        "diag_embed": lambda: x.diag_embed(),
        "diagonal_scatter": lambda: x.diagonal_scatter(x[0, :2]),
        "select_scatter": lambda: x.select_scatter(x[1], 0, 0),
        "slice_scatter": lambda: x.slice_scatter(x[:1], 0, 1),
        "pad circular": lambda: functional.pad(x[None], (1, 1), mode="circular"),
        "pad": lambda: functional.pad(x, (1, 1), value=1.0),
        "meshgrid": lambda: torch.meshgrid(x[0], x[1], indexing="ij")[0].contiguous(),
        "block_diag": lambda: torch.block_diag(x, x),
        "embedding": lambda: functional.embedding(at, x),
        "zeros": lambda: torch.zeros(2, dtype=dtype),
        "zeros_like": lambda: torch.zeros_like(x),
        "zero_": lambda: x.clone().zero_(),
        "ones": lambda: torch.ones(2, dtype=dtype),
        "new_ones": lambda: x.new_ones(2),
        "full_like": lambda: torch.full_like(x, 2),
        "eye": lambda: torch.eye(2, dtype=dtype),
        "copy_ to": lambda: torch.zeros(2, 3).copy_(x),
        "copy_ from": lambda: x.clone().copy_(torch.tensor([1.0, -2.5, 3.3])),
        "view": lambda: x.view(torch.uint8),
        "view wide": lambda: x[:, :2].contiguous().view(torch.int16),
        "view narrow": lambda: torch.ones(2, 2).view(dtype),
        "list of numbers": lambda: torch.tensor([x[0, 0], x[1, 0]]),
        "out": lambda: torch.add(torch.ones(2, 3), torch.ones(3), out=x.clone()),
    }


def ops(torch: Any, dtype: Any) -> dict[str, Callable[[], Any]]:
    """Calls that compute, of which PyTorch refuses most."""
    x = torch.tensor([[1, 2], [64, 130]], dtype=torch.uint8).view(dtype)
    f = torch.tensor([[1.0, 2.0], [3.0, -4.0]])
    codes = torch.arange(256, dtype=torch.uint8).view(dtype)
    a = torch.arange(24, dtype=torch.uint8).mul(9).view(dtype).reshape(4, 6)
    b = torch.arange(30, dtype=torch.uint8).mul(7).add(2).view(dtype).reshape(6, 5)
    functional = torch.nn.functional
    found: dict[str, Callable[[], Any]] = {
        "abs": codes.abs,
        "mul": lambda: codes[:, None] * codes,
        "mul number": lambda: x * 2,
        "mul 0-dim": lambda: x * torch.tensor(2.0),
        "mul float32": lambda: x * f,
        "eq": lambda: codes[:, None] == codes,
        "eq number": lambda: x == 2.0,
        "ne": lambda: codes[:, None] != codes,
        "isnan": codes.isnan,
        "isinf": codes.isinf,
        "isfinite": codes.isfinite,
        "any": lambda: codes.reshape(16, 16).any(1),
        "all": lambda: codes.reshape(16, 16).all(1),
        "mm": lambda: a @ b,
        "addmm": lambda: torch.addmm(b[:4], a, b, beta=0.5, alpha=2.0),
        "linear": lambda: functional.linear(a, b.t()),
        "bmm": lambda: a[None].bmm(b[None]),
        "mv": lambda: a.mv(b[:, 0]),
        "dot": lambda: a[0].dot(b[:, 0]),
        "sum float32": lambda: x.sum(dtype=torch.float32),
        "mean float32": lambda: x.mean(dtype=torch.float32),
        "softmax float32": lambda: x.softmax(0, dtype=torch.float32),
        "cumsum float32": lambda: x.cumsum(0, dtype=torch.float32),
        "result_type": lambda: torch.result_type(x, x),
        "result_type number": lambda: torch.result_type(x, 1.0),
        "result_type complex": lambda: torch.result_type(x, 1j),
        "result_type float32": lambda: torch.result_type(x, f),
        "promote float32": lambda: torch.promote_types(dtype, torch.float32),
        "promote uint8": lambda: torch.promote_types(torch.uint8, dtype),
        "promote bool": lambda: torch.promote_types(dtype, torch.bool),
        "promote itself": lambda: torch.promote_types(dtype, dtype),
        "cat mixed": lambda: torch.cat([x, f]),
        "masked_fill": lambda: x.masked_fill(f > 0, 1.0),
        "add out": lambda: torch.add(x, x, out=x.clone()),
        "dropout": lambda: torch.dropout(x, 0.5, True),
        "arange": lambda: torch.arange(3, dtype=dtype),
        "linspace": lambda: torch.linspace(0, 1, 3, dtype=dtype),
        "rand": lambda: torch.rand(2, dtype=dtype),
        "randn": lambda: torch.randn(2, dtype=dtype),
        "randint": lambda: torch.randint(3, (2,), dtype=dtype),
        "randperm": lambda: torch.randperm(3, dtype=dtype),
        "numpy": x.numpy,
        "gather": lambda: x.gather(0, torch.tensor([[0, 1]])),
        "scatter": lambda: x.scatter(0, torch.tensor([[0, 1]]), x),
        "index_add": lambda: x.index_add(0, torch.tensor([0]), x[:1]),
        "index_fill": lambda: x.index_fill(0, torch.tensor([0]), 1.0),
        "index_copy": lambda: x.index_copy(0, torch.tensor([0]), x[:1]),
        "layer_norm": lambda: functional.layer_norm(x, (2,)),
        "conv1d": lambda: functional.conv1d(x[None], x[None]),
        "isin": lambda: torch.isin(x, x),
    }
    unary = (
        "neg exp sqrt relu sigmoid round floor reciprocal nan_to_num sign signbit sgn logical_not "
        "angle frac square isposinf isneginf sum mean max amax min argmax prod norm nonzero "
        "count_nonzero aminmax median nansum trace sort argsort msort unique histc tril triu "
        "normal_ uniform_ random_ exponential_ bernoulli_"
    )
    for name in unary.split():
        found[name] = lambda name=name: getattr(x.clone(), name)()
    for name in ("cumsum", "logsumexp", "softmax", "topk", "kthvalue"):
        found[name] = lambda name=name: getattr(x, name)(1)
    for name in (
        "add",
        "sub",
        "div",
        "lt",
        "ge",
        "maximum",
        "fmod",
        "remainder",
        "logical_and",
        "equal",
        "dist",
    ):
        found[name] = lambda name=name: getattr(x, name)(x)
    return found


def scaled(torch: Any, dtype: Any) -> dict[str, Callable[[], Any]]:
    """Products of scaled matrices."""
    a = torch.arange(24, dtype=torch.uint8).mul(9).view(dtype).reshape(4, 6)
    b = torch.arange(30, dtype=torch.uint8).mul(7).add(2).view(dtype).reshape(6, 5)
    one, other = torch.tensor(0.25), torch.tensor([2.0])
    rows, columns = torch.arange(1.0, 5.0)[:, None], torch.arange(1.0, 6.0)[None]
    bias = torch.tensor([1.0, -2.0, 0.5, 100.0, 0.0])
    functional = torch.nn.functional
    kinds = functional.ScalingType
    product = torch._scaled_mm
    found: dict[str, Callable[[], Any]] = {
        "plain": lambda: product(a, b, scale_a=one, scale_b=other),
        "rows": lambda: product(a, b, scale_a=rows, scale_b=columns),
        "bias": lambda: product(a, b, scale_a=one, scale_b=other, bias=bias),
        "result": lambda: product(a, b, one, other, bias, torch.tensor(2.0)),
        "mixed scales": lambda: product(a, b, scale_a=rows, scale_b=other),
        "double scales": lambda: product(a, b, scale_a=one.double(), scale_b=other),
        "vector scales": lambda: product(a, b, scale_a=rows[:, 0], scale_b=columns),
        "other dtype": lambda: product(a.to(torch.float32), b, scale_a=one, scale_b=other),
        "shapes": lambda: product(a, b[:5], scale_a=one, scale_b=other),
        "vector": lambda: product(a[0], b, scale_a=one, scale_b=other),
        "bias shape": lambda: product(a, b, scale_a=one, scale_b=other, bias=bias[:3]),
        "functional": lambda: functional.scaled_mm(
            a, b, one, kinds.TensorWise, other, kinds.TensorWise
        ),
        "functional rows": lambda: functional.scaled_mm(
            a, b, rows, kinds.RowWise, columns, kinds.RowWise, output_dtype=torch.float32
        ),
        "functional bias": lambda: functional.scaled_mm(
            a, b, [one], [kinds.TensorWise], [other], [kinds.TensorWise], bias=bias
        ),
        "functional mixed": lambda: functional.scaled_mm(
            a, b, rows, kinds.RowWise, other, kinds.TensorWise
        ),
    }
    for name in ("float32", "bfloat16", "float16", "float8_e5m2"):
        found[f"out {name}"] = lambda name=name: product(
            a, b, scale_a=one, scale_b=other, out_dtype=getattr(torch, name)
        )
    return found


def gradients(torch: Any, dtype: Any) -> dict[str, Callable[[], Any]]:
    """What autograd does with conversions."""

    def to_and_back() -> Any:
        w = torch.tensor([1.0, 2.0, 300.7], requires_grad=True)
        (w.to(dtype).to(torch.float32) * torch.tensor([300.7, 1.0, -3.3])).sum().backward()
        return w.grad

    def of_a_leaf() -> Any:
        w = torch.tensor([1.0, 2.0]).to(dtype).requires_grad_()
        (w.to(torch.float32) * torch.tensor([1.07, 1000.0])).sum().backward()
        return w.grad

    def added() -> Any:
        w = torch.tensor([1.0, 2.0]).to(dtype).requires_grad_()
        (w.to(torch.float32) + w.to(torch.float32)).sum().backward()
        return w.grad

    def of_a_product() -> Any:
        w = torch.tensor([1.0, 2.0]).to(dtype).requires_grad_()
        other = torch.tensor([3.0, 0.5]).to(dtype)
        (w * other).to(torch.float32).sum().backward()
        return w.grad

    def name() -> Any:
        w = torch.tensor([1.0], requires_grad=True)
        return type(w.to(dtype).grad_fn).__name__

    return {
        "to and back": to_and_back,
        "of a leaf": of_a_leaf,
        "added": added,
        "of a product": of_a_product,
        "name": name,
    }


def outcome(torch: Any, call: Callable[[], Any]) -> Any:
    """What came of a call, as JSON has it."""
    try:
        result = call()
    except Exception as error:
        text = str(error).split("\n")[0]
        kind = type(error).__name__
        return {
            "error": "AssertionError" if "INTERNAL ASSERT" in text else kind,
            "text": text[:160],
        }
    if isinstance(result, torch.Tensor):
        if result.numel() > 64:
            content: Any = _digest(torch, result)
        else:
            content = _bytes(torch, result)
        return {"dtype": str(result.dtype), "shape": list(result.shape), "bytes": content}
    if isinstance(result, tuple) and any(isinstance(part, torch.Tensor) for part in result):
        return [outcome(torch, lambda part=part: part) for part in result]
    return {"value": repr(result)}


def facts(torch: Any) -> Iterator[tuple[str, str, Any]]:
    """The dtype, the name of the call, and what came of it."""
    for name in NAMES:
        dtype = getattr(torch, name)
        if name != NAMES[-1]:
            for call, found in conversions(torch, dtype).items():
                yield name, f"conversion {call}", found
        for family in (numbers, moves, ops, scaled, gradients):
            for call, run in family(torch, dtype).items():
                yield name, f"{family.__name__} {call}", outcome(torch, run)
