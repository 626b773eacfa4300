"""Fourier transforms, of whole signals and of pieces, and the windows of `torch.signal`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from op_table.call import DTYPES, OWN, Call, Late, Op, as_dtype, call, matrix, of, with_, x

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
TURNED = x(4, 3, layout="transposed")
REAL = ("f64", "f32")
NUMBERS = (*REAL, "c64", "c128")


def along_one() -> tuple[Call, ...]:
    """Calls of the functions of one dimension."""
    return (
        call(x(2, 6)),
        call(x(5)),
        call(x(1), 1),
        call(x(4), n=7, norm="ortho"),
        call(x(2, 6), 3, 1, "forward"),
        call(TURNED, dim=0),
        call(x(2, 6, layout="strided"), norm="backward"),
        call(x(2, 3, 2), None, -2),
        call(x(16)),
        call(x(0, 3)),
        call(x(3, 0)),
        call(x()),
        call(x(4), 0),
        call(x(4), -1),
        call(x(4), dim=1),
        call(x(4), norm="no"),
        with_(call(of(1.0, 2.0, float("nan"), 4.0)), only=REAL),
    )


def along_many(name: str) -> tuple[Call, ...]:
    """Calls of the functions of several dimensions."""
    calls: tuple[Call, ...] = (
        call(x(2, 3)),
        call(TURNED, norm="ortho"),
        call(x(2, 3, 4), (4, 3)) if name.endswith("n") else call(x(2, 3, 4), (4, 3), (0, 2)),
        call(x(2, 3, 4), dim=(2, 0), norm="forward"),
        call(x(3, 4), s=(-1, 2), dim=(1, 0)),
        call(x(3, 4), dim=(1,)),
        call(x(3, 4), dim=0),
        call(x(0, 3)),
        call(x(3, 4), dim=(0, 0)),
        call(x(3, 4), dim=(0, 2)),
        call(x(3, 4), dim=()),
        call(x(3, 4), (1, 2), (0,)),
        call(x(3, 4), (0, 2)),
        call(x(3, 4), norm="no"),
        call(x()),
        call(x(5)),
    )
    if name.endswith("n"):
        calls += (call(x(2, 2, 3)), call(x(3, 4), 5), call(x(3, 4), (1, 2, 3)))
    return calls


def transforms() -> Iterator[Op]:
    """The functions of `torch.fft`."""
    for name in ONE:
        yield Op(f"fft.{name}", along_one(), scaled=lambda n: call(x(*matrix(n))), tolerance=4)
        for end in ("2", "n"):
            full = name + end
            calls = along_many(full)
            yield Op(f"fft.{full}", calls, scaled=lambda n: call(x(*matrix(n))), tolerance=4)
    for name in ("fftshift", "ifftshift"):
        calls = (
            call(x(5)),
            call(x(3, 4)),
            call(TURNED, 1),
            call(x(3, 4), dim=(0, 0)),
            call(x(2, 3, 4), (-1, 0)),
            call(x(0, 3)),
            call(x()),
            call(x(), -1),
            call(x(3), ()),
            call(x(3, 4), 2),
        )
        yield Op(f"fft.{name}", calls, scaled=lambda n: call(x(*matrix(n))))


def pieces() -> Iterator[Op]:
    """`stft` and `istft`."""
    window = x(4, gradient=True)
    base = (
        call(x(12), 4, window=window, return_complex=True),
        call(x(2, 12), 4, 2, window=window, center=False, return_complex=True),
        call(x(12), 5, 1, 4, window, pad_mode="constant", return_complex=True),
        call(x(12), 4, 2, 4, window, normalized=True, onesided=False, return_complex=True),
        call(x(12), 6, 2, 4, window, False, align_to_window=True, return_complex=True),
        with_(call(x(12), 4, window=window), only=("c64", "c128")),
        call(x(12), 0, window=window, return_complex=True),
        call(x(12), 4, 0, window=window, return_complex=True),
        call(x(12), 4, 1, 5, window=window, return_complex=True),
        call(x(12), 5, window=window, return_complex=True),
        call(x(2, 2, 12), 4, window=window, return_complex=True),
        call(x(12), 4, window=window),
        call(x(12), 4, window=window, onesided=True, return_complex=True),
    )
    calls = tuple(with_(made, only=NUMBERS) for made in base)
    yield Op(
        "stft", calls, scaled=lambda n: call(x(max(n, 8)), 8, return_complex=True), tolerance=4
    )
    ones = of(1.0, 0.75, 0.5, 1.25, dtype="f64")
    # Beside this window, single precision gives results in double precision that are not.
    beside_ones = tuple(dtype for dtype in DTYPES if dtype != "c64")
    back = (
        call(x(3, 7), 4, window=ones),
        call(x(2, 3, 7), 4, 2, window=ones, center=False),
        call(x(4, 7), 4, 1, 4, ones, normalized=True, onesided=False),
        call(x(4, 7), 4, 1, 4, ones, return_complex=True),
        call(x(3, 7), 4, window=ones, length=5),
        with_(call(x(3, 7), 5, 2, 4, ones), only=beside_ones),
        with_(call(x(3, 7), 5, 2, 4, of(1.0, 0.75, 0.5, 1.25, dtype="f32")), only=("c64",)),
        call(x(3, 7), 6, window=ones),
        call(x(3, 7), 4, 5, window=ones),
        call(x(3, 7), 4, 0, window=ones),
        call(x(3, 7), 4, window=of(1.0, dtype="f64")),
        call(x(3, 7), 4, window=of(0.0, 0.0, 0.0, 0.0, dtype="f64")),
        call(x(3, 0), 4, window=ones),
        call(x(1, 2, 3, 7), 4, window=ones),
        call(x(3), 4, window=ones),
    )
    yield Op(
        "istft", back, scaled=lambda n: call(x(3, max(n // 3, 2), dtype="c64"), 4), tolerance=4
    )


WINDOWS = """bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming
    hann kaiser nuttall"""


def windows() -> Iterator[Op]:
    """The windows of `torch.signal`."""
    strided = Late(lambda lib, _: lib.strided)
    sparse = Late(lambda lib, _: lib.sparse_coo)
    base = (
        call(5, dtype=OWN),
        call(6, sym=False, dtype=OWN),
        call(0, dtype=OWN),
        call(1, dtype=OWN),
        call(2, sym=False),
        call(4, requires_grad=True, layout=strided),
        call(-1),
        call(3, layout=sparse),
        call(3, dtype=as_dtype("i64")),
    )
    further = {
        "exponential": (call(5, tau=2.5), call(5, center=1.0, sym=False), call(5, tau=0.0)),
        "gaussian": (call(5, std=2.5), call(5, std=0.0)),
        "general_hamming": (call(5, alpha=0.3),),
        "kaiser": (call(5, beta=3.0), call(5, beta=0.0), call(5, beta=-1.0)),
    }
    for name in WINDOWS.split():
        calls = (*base, *further.get(name, ()))
        if name == "general_cosine":
            given = {"a": [0.46, 0.23, 0.31]}
            calls = tuple(replace(made, kwargs=made.kwargs | given) for made in calls)
            calls += (call(5, a=[]), call(5, a=3))
        yield Op(f"signal.windows.{name}", calls, tolerance=4)


def ops() -> Iterator[Op]:
    """All ops of this module."""
    yield from transforms()
    yield from pieces()
    yield from windows()
