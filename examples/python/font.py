"""A dot font for printable ASCII, 5 wide and 7 high plus tails, and strokes made from its dots.

`columns` gives a character's columns, lowest bit on top; `strokes` turns neighbouring dots
into line segments, which `canvas` draws with round ends, so that text comes out smooth at
any size. Characters that are not in the font show as a question mark.
"""

from __future__ import annotations

HEIGHT = 7

# Five columns of two hexadecimal digits for each character from space to tilde.
_HEX = """
0000000000 00005f0000 0007000700 147f147f14 242a7f2a12 2313086462 3649552250 0005030000
001c224100 0041221c00 082a1c2a08 08083e0808 0050300000 0808080808 0060600000 2010080402
3e4141413e 00427f4000 4261514946 2141454b31 1814127f10 2745454539 3c4a494930 0171090503
3649494936 064949291e 0036360000 0056360000 0008142241 1414141414 4122140800 0201510906
324979413e 7e1111117e 7f49494936 3e41414122 7f4141221c 7f49494941 7f09090101 3e41415132
7f0808087f 00417f4100 2040413f01 7f08142241 7f40404040 7f0204027f 7f0408107f 3e4141413e
7f09090906 3e4151215e 7f09192946 4649494931 01017f0101 3f4040403f 1f2040201f 7f2018207f
6314081463 0304780403 6151494543 00007f4141 0204081020 41417f0000 0402010204 4040404040
0001020400 2054545478 7f48444438 3844444420 384444487f 3854545418 087e090102 081454543c
7f08040478 00447d4000 2040443d00 007f102844 00417f4000 7c04180478 7c08040478 3844444438
7c14141408 081414187c 7c08040408 4854545420 043f444020 3c4040407c 1c2040201c 3c4030403c
4428102844 0c5050503c 4464544c44 0008364100 00007f0000 0041360800 0804081008
"""
_DOTS = _HEX.split()

# With tails of two dots below the line, which the seven rows above have no room for.
_TAILED = {
    "g": [0x38, 0x144, 0x144, 0x144, 0xFC],
    "j": [0x100, 0x100, 0xFD],
    "p": [0x1FC, 0x44, 0x44, 0x44, 0x38],
    "q": [0x38, 0x44, 0x44, 0x44, 0x1FC],
    "y": [0x3C, 0x140, 0x140, 0x140, 0xFC],
}
_ROWS = HEIGHT + 2

Segment = tuple[float, float, float, float]


def columns(character: str) -> list[int]:
    """The columns of a character without the empty ones at its sides; a blank for a space."""
    if character in _TAILED:
        return _TAILED[character]
    code = ord(character) - 32
    dots = _DOTS[code] if 0 <= code < len(_DOTS) else _DOTS[ord("?") - 32]
    result = [int(dots[at : at + 2], 16) for at in range(0, 10, 2)]
    while result and not result[0]:
        result.pop(0)
    while result and not result[-1]:
        result.pop()
    return result or [0, 0]


def strokes(character: str) -> list[Segment]:
    """Segments (x1, y1, x2, y2) in units of dots; a dot on its own is a segment of length 0."""
    bits = columns(character)
    dots = {(x, y) for x, bit in enumerate(bits) for y in range(_ROWS) if bit >> y & 1}
    segments: list[Segment] = []
    for x, y in sorted(dots):
        joined = False
        for dx, dy in ((1, 0), (0, 1), (1, 1), (1, -1), (-1, 0), (0, -1), (-1, -1), (-1, 1)):
            other = (x + dx, y + dy)
            if other not in dots:
                continue
            # A diagonal only where no straight way around exists, or corners would fill up.
            if dx and dy and ((x + dx, y) in dots or (x, y + dy) in dots):
                continue
            joined = True
            if (dx, dy) in ((1, 0), (0, 1), (1, 1), (1, -1)):
                segments.append((x, y, *other))
        if not joined:
            segments.append((x, y, x, y))
    return segments
