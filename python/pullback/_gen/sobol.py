"""Packs the direction numbers of Joe and Kuo for :mod:`pullback.quasirandom`.

Run as ``python -m pullback._gen.sobol new-joe-kuo-6.21201``: reads the list that S. Joe and F. Y.
Kuo publish (https://web.maths.unsw.edu.au/~fkuo/sobol/; *Constructing Sobol sequences with better
two-dimensional projections*, SIAM J. Sci. Comput. 30, 2008), a line for each dimension from the
second on: its number, the degree of its polynomial, the polynomial's inner coefficients, and the
first direction numbers. Writes ``_sobol.bin`` beside the module.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

__all__ = ["packed", "read"]


def read(lines: Iterable[str]) -> list[tuple[int, list[int]]]:
    """The polynomial, a bit for each coefficient, and the numbers of each dimension in the list."""
    found = []
    for line in lines:
        fields = line.split()
        if not fields or not fields[0].isdigit():
            continue
        _, degree, inner, *numbers = map(int, fields)
        if len(numbers) != degree:
            raise ValueError(f"a polynomial of degree {degree} has {len(numbers)} numbers: {line}")
        found.append((1 << degree | inner << 1 | 1, numbers))
    return found


def packed(dimensions: list[tuple[int, list[int]]]) -> bytes:
    """The file: how many bytes the polynomials take, these, and a record for each dimension.

    Polynomials grow from each dimension to the next, and what is kept is by how much, seven bits a
    byte. Number ``i`` of a record is odd and below ``2^i``, so that ``i - 1`` bits are kept of it.
    """
    steps, records, before = bytearray(), bytearray(), 0
    for polynomial, numbers in dimensions:
        step, before = polynomial - before, polynomial
        while step >= 128:
            steps.append(step & 127 | 128)
            step >>= 7
        steps.append(step)
        bits = at = 0
        for i, number in enumerate(numbers):
            if not (number & 1 and number < 2 << i):
                raise ValueError(f"direction number {i + 1} is {number}")
            bits |= number >> 1 << at
            at += i
        records += bits.to_bytes((at + 7) // 8, "little")
    return len(steps).to_bytes(4, "little") + bytes(steps + records)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="ascii") as file:
        data = packed(read(file))
    Path(__file__).parents[1].joinpath("_sobol.bin").write_bytes(data)
