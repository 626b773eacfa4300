"""Sequences of points that fill a cube more evenly than random ones: :class:`SobolEngine`.

Point ``k`` of Sobol's sequence is, in each dimension, the exclusive or of those direction numbers
whose bits are set in the Gray code ``k ^ (k >> 1)`` (I. A. Antonov and V. M. Saleev, 1979). The
direction numbers are those of Joe and Kuo (2008), packed in ``_sobol.bin`` by ``_gen/sobol.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import _C
from ._tensor import Tensor

__all__ = ["SobolEngine"]

_F: Any = _C._VariableFunctions
_BITS = 30
_DIMENSIONS = 21201
_SCALE = 2.0**-_BITS


def _listed(dimension: int) -> list[tuple[int, list[int]]]:
    """The polynomial and the first direction numbers of each dimension from the second on."""
    data = Path(__file__).with_name("_sobol.bin").read_bytes()
    at, records = 4, 4 + int.from_bytes(data[:4], "little")
    found: list[tuple[int, list[int]]] = []
    polynomial = 0
    while len(found) < dimension - 1:
        step = shift = 0
        while data[at] & 128:
            step |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
        polynomial += step | data[at] << shift
        at += 1
        degree = polynomial.bit_length() - 1
        end = records + (degree * (degree - 1) // 2 + 7) // 8
        bits = int.from_bytes(data[records:end], "little")
        records = end
        numbers = []
        for i in range(degree):
            numbers.append((bits & ((1 << i) - 1)) << 1 | 1)
            bits >>= i
        found.append((polynomial, numbers))
    return found


def _directions(dimension: int) -> Tensor:
    """The direction numbers, (dimension, 30): the first one's highest bit counts one half."""
    # (The first dimension is van der Corput's sequence.)
    rows = [[1] * _BITS]
    for polynomial, numbers in _listed(dimension):
        degree = len(numbers)
        taps = [i for i in range(1, degree) if polynomial >> (degree - i) & 1]
        row = numbers[:_BITS]
        for j in range(degree, _BITS):
            value = row[j - degree] ^ row[j - degree] << degree
            for i in taps:
                value ^= row[j - i] << i
            row.append(value)
        rows.append(row)
    places = [_BITS - 1 - j for j in range(_BITS)]
    return _C.tensor([[v << p for v, p in zip(row, places, strict=True)] for row in rows])


class SobolEngine:
    """Draws points of a scrambled or plain Sobol sequence in the unit cube.

    Args:
        dimension: of the cube, 1 to 21201.
        scramble: whether to scramble by random lower triangular matrices and a random shift, of
            bits (J. Matousek, 1998).
        seed: of the scrambling; None uses the default generator.

    Raises:
        ValueError: for another dimension.

    Example:
        >>> import pullback as torch
        >>> engine = torch.quasirandom.SobolEngine(dimension=2)
        >>> engine.draw(3)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500]])
    """

    MAXBIT = _BITS
    MAXDIM = _DIMENSIONS

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], got "
                f"{dimension}"
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = _directions(dimension)
        self.shift: Tensor = _F.zeros(dimension, dtype=_C.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self.num_generated = 0

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = _C.Generator()
            generator.manual_seed(self.seed)
        powers = 1 << _F.arange(_BITS)
        shift = _F.randint(2, (self.dimension, _BITS), generator=generator)
        self.shift = (shift * powers).sum(1)
        shape = (self.dimension, _BITS, _BITS)
        matrices = _F.randint(2, shape, generator=generator).tril()
        matrices.diagonal(dim1=1, dim2=2).fill_(1)
        # Row and column 0 are for the highest bit.
        falling = powers.flip(0)
        bits = (self.sobolstate.unsqueeze(1) & falling.unsqueeze(1) != 0).to(_C.int64)
        turned = _F.bmm(matrices, bits) % 2
        self.sobolstate = (turned * falling.unsqueeze(1)).sum(1)

    def _points(self, first: int, n: int) -> Tensor:
        """Points number ``first`` to ``first + n``, as whole numbers."""
        if first + n > 1 << _BITS:
            raise ValueError(f"a sequence has 2^{_BITS} points, number {first + n} is asked for")
        places: Any = _F.arange(first, first + n)
        gray = places ^ (places >> 1)
        points = self.shift.expand(n, -1).clone()
        for bit in range((first + n - 1).bit_length() if n else 0):
            points ^= (gray >> bit & 1).unsqueeze(1) * self.sobolstate[:, bit]
        return points

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next ``n`` points, (n, dimension).

        Args:
            n: how many.
            out: what to write them to.
            dtype: of the result; by default the default dtype.

        Raises:
            ValueError: for a negative number, and beyond the end of the sequence.
        """
        if n < 0:
            raise ValueError(f"n must be non-negative, but got {n}")
        points = self._points(self.num_generated, n)
        if n:
            self.quasi = points[-1].clone()
            self.num_generated += n
        dtype = _C.get_default_dtype() if dtype is None else dtype
        wide = dtype if dtype.is_floating_point else _C.float64
        result: Tensor = points.to(wide).mul_(_SCALE).to(dtype)
        if out is None:
            return result
        return out.resize_(result.shape).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next ``2^m`` points; all points drawn so far must be a power of two afterwards.

        Args:
            m: the exponent.
            out: as for :meth:`draw`.
            dtype: as for :meth:`draw`.

        Raises:
            ValueError: if they are not.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Restarts the sequence; the scrambling is kept."""
        self.quasi = self.shift.clone()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leaves out the next ``n`` points.

        Raises:
            ValueError: for a negative number, and beyond the end of the sequence.
        """
        if n < 0:
            raise ValueError(f"n must be non-negative, but got {n}")
        if n:
            self.quasi = self._points(self.num_generated + n - 1, 1)[0]
            self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"
