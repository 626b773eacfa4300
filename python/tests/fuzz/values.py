"""Arguments as Python expressions: what a schema's kinds ask for, valid more often than not."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

FLOATING = ["float32", "float32", "float64", "float16", "bfloat16"]
OTHER = ["int64", "int32", "uint8", "int8", "int16", "bool", "complex64", "complex128"]
DTYPES = FLOATING + OTHER
SHAPES: list[tuple[int, ...]] = [
    (),
    (0,),
    (1,),
    (3,),
    (7,),
    (2, 3),
    (3, 3),
    (1, 3),
    (3, 1),
    (2, 0, 3),
    (2, 3, 4),
    (1, 2, 4, 4),
    (2, 2, 3, 3),
    (1, 2, 3, 4, 4),
    (1,) * 9,
    (33,),
    (5, 17),
]
EXTREME = [2**31, -(2**31), 2**40, 2**62, -(2**62), 2**63 - 1, -(2**63), 2**63, -(2**64)]
REAL = ["0.0", "0.5", "1.0", "-1.0", "3.7", "1e30", "-1e-45", "1e-3"]
NOT_FINITE = ['float("inf")', 'float("nan")', '-float("inf")']
TEXTS = ["mean", "sum", "none", "prod", "amax", "reflect", "constant", "ij,jk->ik", "floor"]
ODD_TEXTS = ["", "\u00e9", "\x00", "trunc", "fro", "nuc", "linear", "valid", "left", "x" * 300, "L"]
BROKEN = [
    "None",
    "object()",
    "[]",
    "{}",
    '"mean"',
    "torch.float64",
    "(2**62, 2**62)",
    "torch.empty(0, 2**40)",
    "torch.ones(2, 3, device='meta')",
    "torch.eye(3).to_sparse()",
    "torch.tensor(1.5, requires_grad=True)",
    "torch.ones(3).expand(2, 3)",
    "torch.ones(2, 3, dtype=torch.complex64).conj()",
    "-2j",
    "True",
    "[None]",
    "[torch.ones(2), 1]",
    "range(3)",
    "b'x'",
    "lambda *_: 1",
    "torch.Tensor",
    "type",
    "10**30",
    "slice(None)",
    "torch.arange(6.0).reshape(2, 3).as_strided((2, 2), (1, 1))",
]
"""Of another kind than most parameters are."""


class Values:
    """Draws the arguments of one call: tensors of shapes that often fit together."""

    def __init__(self, choose: Random) -> None:
        self.choose = choose
        self.shape = choose.choice(SHAPES)
        self.dtype = choose.choice(DTYPES if choose.random() < 0.5 else FLOATING[:3])

    def tensor(self) -> str:
        """A tensor: small, of any layout, now and then with a history or with odd numbers."""
        choose = self.choose
        shape = list(self.shape if choose.random() < 0.6 else choose.choice(SHAPES))
        if shape and choose.random() < 0.1:
            shape[choose.randrange(len(shape))] = choose.choice([0, 1, 2, 3, 5])
        dtype = self.dtype if choose.random() < 0.75 else choose.choice(DTYPES)
        count = 1
        for size in shape:
            count *= size
        text = self._elements(count, tuple(shape), dtype)
        text = self._layout(text, shape)
        if (dtype in FLOATING or dtype.startswith("complex")) and choose.random() < 0.3:
            text += ".requires_grad_()"
            if choose.random() < 0.3:
                text += ".clone()"
        return text

    def _elements(self, count: int, shape: tuple[int, ...], dtype: str) -> str:
        choose, way = self.choose, self.choose.random()
        if way < 0.12:
            return f"torch.ones({shape}, dtype=torch.{dtype})"
        if way < 0.2:
            return f"torch.zeros({shape}, dtype=torch.{dtype})"
        if way < 0.3:
            odd = choose.choice([*NOT_FINITE, "1e38", "-1e-40", "2**62", "-1", "127"])
            if dtype not in FLOATING:
                odd = choose.choice(["2**31", "-1", "127", "1", "0"])
            made = f"torch.full({shape}, {odd}, dtype=torch.float64)"
            return made if dtype == "float64" else f"{made}.to(torch.{dtype})"
        start = choose.choice([0, 0, -2, 1, -count])
        step = choose.choice([1, 1, 1, 2])
        whole = f"torch.arange({start}, {start + step * count}, {step})"
        scale = choose.choice(["", "", " / 4"]) if dtype in FLOATING else ""
        return f"({whole}{scale}).to(torch.{dtype}).reshape({shape})"

    def _layout(self, text: str, shape: Sequence[int]) -> str:
        choose = self.choose
        way = choose.random()
        if not shape or way < 0.6:
            return text
        if way < 0.75 and len(shape) > 1:
            return f"{text}.transpose(0, -1).contiguous().transpose(0, -1)"
        if way < 0.85:
            return f"{text}.repeat_interleave(2, -1)[..., ::2]"
        if way < 0.9:
            return f"{text}[..., :1].expand({tuple(shape)})" if shape[-1] else text
        if way < 0.95:
            return f"{text}.flip(0)"
        return f"torch.cat([{text}, {text}])[{shape[0]}:]"

    def of_kind(self, kind: str) -> str:
        """An expression for a schema's kind, of another kind now and then."""
        choose = self.choose
        if choose.random() < 0.02:
            return choose.choice(BROKEN)
        if kind.endswith("?"):
            return "None" if choose.random() < 0.3 else self.of_kind(kind[:-1])
        if kind.endswith("]"):
            element, _, size = kind[:-1].rpartition("[")
            return self._list(element, size)
        return self._single(kind)

    def _list(self, element: str, size: str) -> str:
        choose = self.choose
        if size and choose.random() < 0.2:
            return self.of_kind(element)
        fits = int(size) if size else len(self.shape)
        count = fits if choose.random() < 0.6 else choose.randrange(5)
        items = ", ".join(self.of_kind(element) for _ in range(count))
        if choose.random() < 0.01:
            return f"[{items}] * 1000"
        return f"[{items}]"

    def _single(self, kind: str) -> str:
        choose = self.choose
        if kind.startswith("Tensor"):
            return self.tensor()
        if kind in ("int", "SymInt", "Layout_int"):
            return str(self._whole())
        if kind == "Scalar":
            way = choose.random()
            return str(self._whole()) if way < 0.4 else self._real() if way < 0.9 else "2j"
        if kind == "float":
            return self._real()
        if kind == "bool":
            return choose.choice(["True", "False"])
        if kind == "str":
            return repr(choose.choice(TEXTS if choose.random() < 0.7 else ODD_TEXTS))
        if kind == "ScalarType":
            return f"torch.{choose.choice(DTYPES)}"
        if kind == "Device":
            return repr(choose.choice(["cpu", "cpu", "meta", "cuda", "no such", "cpu:99999999999"]))
        named = {
            "Generator": ["torch.Generator().manual_seed(1)"],
            "Layout": ["torch.strided", "torch.sparse_coo"],
            "MemoryFormat": ["torch.contiguous_format", "torch.channels_last"],
        }
        return choose.choice(named.get(kind, BROKEN))

    def _whole(self) -> int:
        choose, way = self.choose, self.choose.random()
        if way < 0.75:
            return choose.choice([0, 1, 1, 2, 3, -1])
        if way < 0.92:
            return choose.choice([-2, -3, 4, 5, 7, 16, -7, 64, 100])
        return choose.choice(EXTREME)

    def _real(self) -> str:
        return self.choose.choice(REAL if self.choose.random() < 0.8 else NOT_FINITE)
