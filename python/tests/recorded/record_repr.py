"""Records how PyTorch prints tensors, as `repr.json`.

Run with a Python that has PyTorch: `python record_repr.py`. Each record holds the setup, an
expression over `torch`, `inf` and `nan` that gives a tensor, the keyword arguments of
`torch.set_printoptions` in force (over the default profile), and the expected text. The
expressions use only what is exact on every machine: literals, `arange`, views, casts and
products with powers of two.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

SCALARS = """
torch.tensor(0)
torch.tensor(-7)
torch.tensor(3, dtype=torch.uint8)
torch.tensor(3, dtype=torch.int8)
torch.tensor(3, dtype=torch.int16)
torch.tensor(3, dtype=torch.int32)
torch.tensor(9223372036854775807)
torch.tensor(-9223372036854775808)
torch.tensor(True)
torch.tensor(False)
torch.tensor(1.0)
torch.tensor(-0.0)
torch.tensor(1.5)
torch.tensor(3.14159265)
torch.tensor(1e10)
torch.tensor(1e-10)
torch.tensor(123456.0)
torch.tensor(100000000.0)
torch.tensor(99999999.0)
torch.tensor(0.0001)
torch.tensor(0.00001)
torch.tensor(inf)
torch.tensor(-inf)
torch.tensor(nan)
torch.tensor(1.5, dtype=torch.float64)
torch.tensor(1.5, dtype=torch.float16)
torch.tensor(1.5, dtype=torch.bfloat16)
torch.tensor(0.1, dtype=torch.bfloat16)
torch.tensor(1 + 2j)
torch.tensor(1 - 2j)
torch.tensor(complex(nan, inf))
torch.tensor(complex(-0.0, -0.0))
torch.tensor(1 + 2j, dtype=torch.complex128)
torch.tensor(2.0, requires_grad=True)
"""

VECTORS = """
torch.tensor([1])
torch.tensor([1, 2, 3])
torch.tensor([1, -20, 300])
torch.tensor([1, 2, 3], dtype=torch.uint8)
torch.tensor([-128, 127], dtype=torch.int8)
torch.tensor([-32768, 32767], dtype=torch.int16)
torch.tensor([-2147483648, 2147483647], dtype=torch.int32)
torch.tensor([9223372036854775807, 0])
torch.tensor([1, 65535], dtype=torch.uint16)
torch.tensor([1, 4294967295], dtype=torch.uint32)
torch.tensor([1, 2], dtype=torch.uint64)
torch.tensor([True, False, True])
torch.tensor([1.0])
torch.tensor([1.0, 2.0, 3.0])
torch.tensor([1.0, -2.0, 3.0])
torch.tensor([1.0, 20.0, 300.0])
torch.tensor([0.0, -0.0])
torch.tensor([1.5, 2.25, 3.125])
torch.tensor([1.5, -2.25, 100.125])
torch.tensor([0.1, 0.2, 0.3])
torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
torch.tensor([0.1, 0.2, 0.3], dtype=torch.float16)
torch.tensor([0.1, 0.2, 0.3], dtype=torch.bfloat16)
torch.tensor([1.0, 2.0], dtype=torch.float64)
torch.tensor([1.0, 2.0], dtype=torch.float16)
torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
torch.tensor([1e-3, 1.0])
torch.tensor([1e-4, 1.0])
torch.tensor([1e-5, 1.0])
torch.tensor([1e-5, 1e-6])
torch.tensor([1000.5, 1.0])
torch.tensor([1001.5, 1.0])
torch.tensor([0.5, 1000.0])
torch.tensor([0.5, 1001.0])
torch.tensor([1e8, 1.0])
torch.tensor([1e8, 1.5])
torch.tensor([1e9, 1.0])
torch.tensor([99999.0, 1.0])
torch.tensor([100000.0, 1.0])
torch.tensor([100001.0, 1.0])
torch.tensor([1e5, 1.5])
torch.tensor([1e38, 1e-38])
torch.tensor([1e300, 1e-300], dtype=torch.float64)
torch.tensor([1e-40, 1.0])
torch.tensor([1e-45])
torch.tensor([65504.0, 6e-8], dtype=torch.float16)
torch.tensor([3e38, 1e-38], dtype=torch.bfloat16)
torch.tensor([1.0, inf])
torch.tensor([1.0, -inf])
torch.tensor([1.0, nan])
torch.tensor([1.5, inf, nan])
torch.tensor([1e10, inf, nan, -inf])
torch.tensor([1000000.0, nan])
torch.tensor([inf, inf])
torch.tensor([nan, nan])
torch.tensor([inf, -inf, nan])
torch.tensor([0.99999, 1.0])
torch.tensor([0.999999, 1.0])
torch.tensor([9.99995, 0.5])
torch.tensor([-9.99995, 0.5])
torch.tensor([12345.678, 0.001])
torch.tensor([1.0, 2.0], requires_grad=True)
torch.tensor([1.5, 2.0], dtype=torch.float64, requires_grad=True)
torch.tensor([1 + 2j, 3 - 4j])
torch.tensor([1.5 + 2j, 3 - 4.25j])
torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex128)
torch.tensor([1e10 + 1j, 1 - 1e-10j])
torch.tensor([complex(inf, nan), complex(1, -inf)])
torch.tensor([100 + 1j, 1 - 1000.5j])
torch.tensor([1 + 2j, 3 - 4j], requires_grad=True)
torch.tensor([complex(0.0, -0.0), complex(-0.0, 0.0)])
torch.arange(3)
torch.arange(30)
torch.arange(100)
torch.arange(0, 10, 0.5)
torch.arange(30, dtype=torch.float32)
torch.arange(40, dtype=torch.float32) * 0.125
torch.arange(20, dtype=torch.float64) * 0.25
"""

EMPTY = """
torch.tensor([])
torch.tensor([], dtype=torch.float64)
torch.tensor([], dtype=torch.int64)
torch.tensor([], dtype=torch.int32)
torch.tensor([], dtype=torch.bool)
torch.tensor([], requires_grad=True)
torch.tensor([[]])
torch.tensor([[], []])
torch.tensor([], dtype=torch.complex64)
torch.tensor([], dtype=torch.bfloat16).reshape(0, 3)
torch.tensor([]).reshape(2, 0, 3)
torch.arange(0)
torch.arange(0).reshape(0, 2)
"""

NESTED = """
torch.tensor([[1, 2], [3, 4]])
torch.tensor([[1.5], [2.0]])
torch.tensor([[1.0, 2.0, 3.0]])
torch.tensor([[True, False], [False, True]])
torch.tensor([[1.0, nan], [inf, -1.0]])
torch.tensor([[1, 1000000], [-5, 2]])
torch.tensor([[1 + 1j, 2.5 - 1j], [0j, -1 + 10j]])
torch.tensor([[[1.0]]])
torch.arange(24).reshape(2, 3, 4)
torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
torch.arange(16, dtype=torch.float32).reshape(2, 2, 2, 2) * 0.5
torch.arange(6).reshape(3, 2).t()
torch.arange(12).reshape(3, 4)[:, ::2]
torch.arange(6)[2]
torch.arange(6).expand(2, 6)
torch.arange(60, dtype=torch.float32).reshape(2, 30)
torch.arange(60, dtype=torch.int16).reshape(2, 30)
(torch.arange(12) % 2 == 0).reshape(2, 6)
torch.arange(12, dtype=torch.float16).reshape(3, 4)
torch.arange(12, dtype=torch.bfloat16).reshape(3, 4) * 0.25
torch.arange(4, dtype=torch.float64).reshape(2, 2)
torch.arange(4, dtype=torch.float32).reshape(2, 2) * (1 + 2j)
"""

GRAPH = """
torch.tensor(2.0, requires_grad=True) * 2
torch.tensor([1.0, 2.0], requires_grad=True) * 2
torch.tensor([1.0, 2.0], requires_grad=True).sum()
torch.tensor([1.0, 2.0], requires_grad=True).exp().detach() * 0
torch.tensor([1.0, 2.0], requires_grad=True).view(2, 1)
torch.tensor([1.0, 2.0], requires_grad=True)[0]
torch.tensor([1.0, 2.0], requires_grad=True).clone()
torch.tensor([[1.0, 2.0]], requires_grad=True).t()
torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True) + 1
torch.tensor([1.0, 2.0], requires_grad=True) / 2
torch.tensor([1.0, 2.0], requires_grad=True) - 1
-torch.tensor([1.0, 2.0], requires_grad=True)
torch.tensor([1.0, 2.0], requires_grad=True).detach()
torch.tensor([], requires_grad=True) * 2
torch.arange(40, dtype=torch.float32, requires_grad=True) * 2
torch.tensor([[1.0, 2.0]], requires_grad=True) @ torch.tensor([[1.0], [2.0]])
torch.tensor([1.0, 2.0], requires_grad=True).unbind()[1]
torch.tensor([-1.0, 2.0], requires_grad=True).relu()
torch.nn.Parameter(torch.tensor([1.0, 2.0]))
torch.nn.Parameter(torch.tensor([[1.5]]), requires_grad=False)
torch.nn.Parameter(torch.tensor(3.0, dtype=torch.float64))
"""

SUMMARY = """
torch.arange(1000)
torch.arange(1001)
torch.arange(2000, dtype=torch.float32)
torch.arange(2000, dtype=torch.float32) * 0.5
torch.arange(2000, dtype=torch.float64)
torch.arange(2000, dtype=torch.int32)
torch.arange(2000) % 2 == 0
torch.arange(2000, dtype=torch.float32) * (1 - 2j)
torch.arange(2000, dtype=torch.bfloat16)
torch.arange(10000).reshape(100, 100)
torch.arange(10000, dtype=torch.float32).reshape(100, 100)
torch.arange(1200).reshape(2, 600)
torch.arange(1200).reshape(600, 2)
torch.arange(1200).reshape(200, 2, 3)
torch.arange(4096).reshape(8, 8, 8, 8)
torch.arange(1050).reshape(7, 150)
torch.arange(1020).reshape(6, 170)
torch.arange(2000, dtype=torch.float32, requires_grad=True)
torch.arange(2000, dtype=torch.float32, requires_grad=True) * 2
torch.arange(2000).reshape(1, 2000)
torch.tensor([]).reshape(2000, 0)
"""

PLAIN = SCALARS + VECTORS + EMPTY + NESTED + GRAPH + SUMMARY

FLOATS = "torch.tensor([3.14159265, -0.001, 1234.5])"
INTEGRAL = "torch.tensor([1.0, 20.0])"
WIDE = "torch.tensor([1e-5, 1.0, 1e5])"
MATRIX = "torch.arange(12, dtype=torch.float32).reshape(3, 4) * 0.125"
COMPLEX = "torch.tensor([1.5 + 0.25j, -2 + 1000j])"
RANGE = "torch.arange(50)"
LARGE = "torch.arange(10000, dtype=torch.float32).reshape(100, 100)"
SAMPLES = (FLOATS, INTEGRAL, WIDE, MATRIX, COMPLEX)

OPTIONS: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"precision": 2}, SAMPLES),
    ({"precision": 0}, SAMPLES),
    ({"precision": 8}, SAMPLES),
    ({"precision": 10}, ("torch.tensor([0.1, 0.2], dtype=torch.float64)", "torch.tensor(0.1)")),
    ({"sci_mode": True}, (*SAMPLES, "torch.tensor(1.5)", RANGE, "torch.tensor([inf, nan, 1.0])")),
    ({"sci_mode": False}, (*SAMPLES, "torch.tensor(1e-10)", "torch.tensor([1e20, 1.5])")),
    ({"sci_mode": True, "precision": 2}, SAMPLES),
    ({"threshold": 10}, (RANGE, MATRIX, "torch.arange(10)", "torch.arange(11)")),
    ({"threshold": 10, "edgeitems": 1}, (RANGE, MATRIX, "torch.arange(27).reshape(3, 3, 3)")),
    ({"threshold": 10, "edgeitems": 2}, (RANGE, MATRIX, "torch.arange(60).reshape(3, 4, 5)")),
    ({"edgeitems": 1}, (LARGE,)),
    ({"edgeitems": 5}, (LARGE, "torch.arange(2000)")),
    ({"threshold": 100000}, ("torch.arange(1100)",)),
    ({"linewidth": 40}, (RANGE, MATRIX, COMPLEX, "torch.arange(30, dtype=torch.float64) * 0.5")),
    ({"linewidth": 120}, (RANGE, LARGE, "torch.arange(60, dtype=torch.float32)")),
    ({"linewidth": 20}, (RANGE, "torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)")),
    ({"linewidth": 1}, ("torch.arange(5)",)),
    ({"profile": "short"}, (*SAMPLES, RANGE, LARGE)),
    ({"profile": "full"}, (*SAMPLES, RANGE, "torch.arange(1010)")),
    ({"profile": "default"}, SAMPLES),
    ({"profile": "short", "precision": 6}, SAMPLES),
    ({"profile": "full", "linewidth": 60}, ("torch.arange(30)",)),
]


def record(setup: str, options: dict[str, Any]) -> dict[str, Any]:
    """Prints the tensor that `setup` gives under `options`."""
    torch.set_printoptions(profile="default", sci_mode=None)
    torch.set_printoptions(**options)
    scope = {"torch": torch, "inf": float("inf"), "nan": float("nan")}
    text = repr(eval(setup, scope))
    torch.set_printoptions(profile="default", sci_mode=None)
    return {"setup": setup, "printoptions": options, "expected": text}


def main() -> None:
    """Writes all records next to this file."""
    records = [record(line, {}) for line in PLAIN.splitlines() if line]
    records += [record(setup, options) for options, setups in OPTIONS for setup in setups]
    document = {"torch": torch.__version__, "records": records}
    path = Path(__file__).with_name("repr.json")
    path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
