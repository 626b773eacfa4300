"""Short-time Fourier transforms: pieces by the definition, back again, errors, derivatives."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import pullback as torch

F64, C128 = torch.float64, torch.complex128
Tensor = torch.Tensor


def signal(*shape: int, seed: int = 0) -> Tensor:
    count = math.prod(shape)
    values = [math.sin(0.37 * i * i + seed) + 0.1 * i % 1 for i in range(count)]
    return torch.tensor(values, dtype=F64).reshape(shape)


def spectra(x: Tensor, n_fft: int, hop: int, window: Tensor, half: bool = True) -> Tensor:
    """The transforms of the pieces of a signal, one after the other."""
    count = (len(x) - n_fft) // hop + 1
    pieces = [torch.fft.fft(x[i * hop : i * hop + n_fft] * window) for i in range(count)]
    whole = torch.stack(pieces, 1)
    return whole[: n_fft // 2 + 1] if half else whole


def close(a: Tensor, b: Tensor, tolerance: float = 1e-12) -> None:
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    assert (a - b).abs().max().item() <= tolerance * max(1.0, b.abs().max().item())


@pytest.mark.parametrize("n_fft", [8, 7])
@pytest.mark.parametrize("hop", [1, 2, 3])
def test_pieces_are_transformed(n_fft: int, hop: int) -> None:
    x, window = signal(40), torch.hann_window(n_fft, dtype=F64) + 0.1
    got = torch.stft(x, n_fft, hop, window=window, center=False, return_complex=True)
    close(got, spectra(x, n_fft, hop, window))
    both = torch.stft(
        x, n_fft, hop, window=window, center=False, onesided=False, return_complex=True
    )
    close(both, spectra(x, n_fft, hop, window, half=False))
    scaled = torch.stft(
        x, n_fft, hop, window=window, center=False, normalized=True, return_complex=True
    )
    close(scaled, got / math.sqrt(n_fft))
    complex_ = torch.complex(x, signal(40, seed=1))
    got = torch.stft(complex_, n_fft, hop, window=window, center=False)
    close(got, spectra(complex_, n_fft, hop, window, half=False))


def test_the_signal_is_padded_where_the_first_piece_is_centred() -> None:
    x, window = signal(20), torch.hann_window(6, dtype=F64)
    for mode in ("reflect", "constant", "replicate", "circular"):
        wide = torch.nn.functional.pad(x[None, None], [3, 3], mode)[0, 0]
        got = torch.stft(x, 6, 2, window=window, pad_mode=mode, return_complex=True)
        close(got, spectra(wide, 6, 2, window))


@pytest.fixture
def every_warning() -> Iterator[None]:
    """Warnings are given each time, whatever another test of the process has seen."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


@pytest.mark.usefixtures("every_warning")
def test_a_short_window_is_in_the_middle() -> None:
    x, window = signal(20), torch.hann_window(4, dtype=F64) + 0.2
    wide = torch.cat([torch.zeros(2, dtype=F64), window, torch.zeros(2, dtype=F64)])
    got = torch.stft(x, 8, 2, 4, window, center=False, return_complex=True)
    close(got, spectra(x, 8, 2, wide))
    with pytest.warns(UserWarning, match="A window was not provided"):
        ones = torch.stft(x, 8, 2, 4, center=False, return_complex=True)
    close(ones, spectra(x, 8, 2, torch.tensor([0.0, 0, 1, 1, 1, 1, 0, 0], dtype=F64)))
    aligned = torch.stft(
        x, 8, 2, 4, window, center=False, align_to_window=True, return_complex=True
    )
    padded = torch.cat([torch.zeros(2, dtype=F64), x, torch.zeros(2, dtype=F64)])
    close(aligned, spectra(padded, 8, 2, wide))


def test_batches_strides_and_dtypes() -> None:
    x, window = signal(2, 20), torch.hann_window(8, dtype=F64)
    got = torch.stft(x, 8, window=window, return_complex=True)
    assert got.shape == (2, 5, 11)
    assert got.stride() == (55, 1, 5)
    for one, line in zip(got, x, strict=True):
        close(one, torch.stft(line, 8, window=window, return_complex=True))
    assert got[0].stride() == (1, 5)
    close(torch.vmap(lambda a: torch.stft(a, 8, window=window, return_complex=True))(x), got)
    close(x.stft(8, window=window, return_complex=True), got)
    single = x.float()
    assert torch.stft(single, 8, window=window, return_complex=True).dtype == C128
    whole = torch.ones(8, dtype=torch.int64)
    assert torch.stft(single, 8, window=whole, return_complex=True).dtype == torch.complex64
    assert torch.stft(x, 8, window=window.to(C128)).shape == (2, 8, 11)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = torch.stft(x, 8, window=window, return_complex=False)
    assert torch.equal(pairs, torch.view_as_real(got))
    assert pairs.stride() == (110, 2, 10, 1)


STFT: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"n_fft": 4, "return_complex": None}, RuntimeError, "requires the return_complex parameter"),
    ({"n_fft": 0}, RuntimeError, "expected 0 < n_fft < 20, but got n_fft=0"),
    ({"n_fft": 21, "center": False}, RuntimeError, "expected 0 < n_fft < 20, but got n_fft=21"),
    ({"n_fft": 4, "hop_length": 0}, RuntimeError, "expected hop_length > 0, but got hop_length=0"),
    ({"n_fft": 4, "hop_length": -1}, RuntimeError, "expected hop_length > 0"),
    ({"n_fft": 4, "win_length": 0}, RuntimeError, "expected 0 < win_length <= n_fft, but got"),
    ({"n_fft": 4, "win_length": 5}, RuntimeError, "expected 0 < win_length <= n_fft, but got"),
    ({"n_fft": 4, "align_to_window": True}, RuntimeError, "should only be set when center = false"),
    ({"n_fft": 4, "pad_mode": "bad"}, NotImplementedError, "Unrecognised padding mode bad"),
    ({"n_fft": 60}, RuntimeError, "Padding size should be less than the corresponding input"),
    ({"n_fft": 4, "hop_length": 2.0}, TypeError, "stft"),
]


@pytest.mark.parametrize(("given", "kind", "text"), STFT)
def test_bad_arguments_of_stft(given: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        torch.stft(signal(20), **{"return_complex": True, **given})


def test_bad_inputs_of_stft() -> None:
    x, window = signal(20), torch.ones(4, dtype=F64)
    with pytest.raises(RuntimeError, match=r"expected a 1D window tensor of size equal to win"):
        torch.stft(x, 8, window=window, return_complex=True)
    with pytest.raises(RuntimeError, match=r"but got window with size \[1, 4\]"):
        torch.stft(x, 4, window=window[None], return_complex=True)
    with pytest.raises(RuntimeError, match="expected a 1D or 2D tensor"):
        torch.stft(x[None, None], 4, return_complex=True)
    with pytest.raises(NotImplementedError, match="expected a tensor of floating point or complex"):
        torch.stft(x.long(), 4, return_complex=True)
    with pytest.raises(RuntimeError, match="Cannot have onesided output if window or input is"):
        torch.stft(x.to(C128), 4, onesided=True)
    with pytest.raises(RuntimeError, match="Cannot have onesided output if window or input is"):
        torch.stft(x, 4, window=window.to(C128), onesided=True)
    prefix = r"stft\(torch.DoubleTensor\[20\], n_fft=4, hop_length=0, win_length=4, window=torch"
    with pytest.raises(RuntimeError, match=prefix + r".DoubleTensor\{\[4\]\}, normalized=1, one"):
        torch.stft(x, 4, 0, window=window, center=False, normalized=True, return_complex=True)


@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("n_fft", [8, 7])
def test_the_signal_comes_back(n_fft: int, normalized: bool, onesided: bool) -> None:
    x, window = signal(2, 40), torch.hann_window(n_fft, dtype=F64) + 0.1
    options = {"window": window, "normalized": normalized, "onesided": onesided}
    there = torch.stft(x, n_fft, 2, return_complex=True, **options)
    close(torch.istft(there, n_fft, 2, length=40, **options), x)
    close(torch.istft(there[0], n_fft, 2, length=40, **options), x[0])
    close(there.istft(n_fft, 2, length=33, **options), x[:, :33])
    flat = torch.stft(x, n_fft, 2, center=False, return_complex=True, **options)
    back = torch.istft(flat, n_fft, 2, center=False, **options)
    close(back, x[:, : back.shape[1]])
    assert back.shape[1] == 2 * (flat.shape[2] - 1) + n_fft
    complex_ = torch.complex(x, signal(2, 40, seed=2))
    both = torch.stft(complex_, n_fft, 2, window=window, normalized=normalized)
    options["onesided"] = False
    close(torch.istft(both, n_fft, 2, length=40, return_complex=True, **options), complex_)


def test_lengths_of_istft() -> None:
    x, window = signal(40), torch.hann_window(8, dtype=F64)
    there = torch.stft(x, 8, window=window, return_complex=True)
    assert torch.istft(there, 8, window=window).shape == (40,)
    with pytest.warns(UserWarning, match="The length of signal is shorter than the length para"):
        long = torch.istft(there, 8, window=window, length=50)
    assert long.shape == (50,)
    assert long[44:].tolist() == [0] * 6
    close(long[:40], x)
    short = torch.stft(x, 8, 2, 6, window[:6] + 0.1, return_complex=True)
    close(torch.istft(short, 8, 2, 6, window[:6] + 0.1), x)
    for length in (0, -4):
        with pytest.raises(RuntimeError, match=r"min\(\)"):
            torch.istft(there, 8, window=window, length=length)
    double = torch.istft(there.to(torch.complex64), 8, window=window)
    assert double.dtype == F64
    each = torch.vmap(lambda s: torch.istft(s, 8, window=window + 0.1))(torch.stack([there] * 2))
    close(each[1], torch.istft(there, 8, window=window + 0.1))


ISTFT: list[tuple[dict[str, Any], str]] = [
    ({"n_fft": 10}, r"to match n_fft / 2 \+ 1 when onesided=True, but got 5"),
    ({"n_fft": 8, "onesided": False}, "to match n_fft when onesided=False, but got 5"),
    ({"n_fft": 8, "hop_length": 0}, "expected 0 < hop_length <= win_length"),
    ({"n_fft": 8, "hop_length": 9}, "expected 0 < hop_length <= win_length"),
    ({"n_fft": 8, "win_length": 9}, "expected 0 < win_length <= n_fft"),
    ({"n_fft": 8, "return_complex": True}, "Cannot have onesided output if window or input"),
    ({"n_fft": 8, "window": torch.ones(6)}, "Invalid window shape. window has to be 1D and"),
    ({"n_fft": 8, "window": torch.ones(8, dtype=C128)}, "Complex windows are incompatible with"),
    ({"n_fft": 8, "window": torch.zeros(8)}, "window overlap add min: 1"),
]


@pytest.mark.parametrize(("given", "text"), ISTFT)
def test_bad_arguments_of_istft(given: dict[str, Any], text: str) -> None:
    there = torch.complex(signal(5, 21), signal(5, 21, seed=1))
    with pytest.raises(RuntimeError, match=text):
        torch.istft(there, **given)


def test_bad_inputs_of_istft() -> None:
    there = torch.complex(signal(5, 21), signal(5, 21, seed=1))
    with pytest.raises(TypeError, match="istft requires a complex-valued input tensor"):
        torch.istft(there.real, 8)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.istft(there[0], 8)
    for empty in (there[:0], there[:, :0], there[None][:0]):
        with pytest.raises(RuntimeError, match="input tensor cannot be empty"):
            torch.istft(empty, 8)
    with pytest.raises(RuntimeError, match="expected a tensor with 3 or 4 dimensions, but got 5"):
        torch.istft(there[None, None], 8)
    prefix = r"istft\(CPUComplexDoubleType\[5, 21\], n_fft=8, hop_length=9, win_length=8, window=N"
    with pytest.raises(RuntimeError, match=prefix + "one, center=1, normalized=0, onesided=None"):
        torch.istft(there, 8, 9)


def test_gradients() -> None:
    x, window = signal(2, 12).requires_grad_(), (torch.hann_window(4, dtype=F64) + 0.3)
    window.requires_grad_()

    def there(x: Tensor, window: Tensor) -> Tensor:
        return torch.stft(x, 4, 2, window=window, return_complex=True)

    assert torch.autograd.gradcheck(there, (x, window), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(there, (x, window))
    spectrum = torch.complex(signal(3, 5), signal(3, 5, seed=1)).requires_grad_()

    def back(spectrum: Tensor, window: Tensor) -> Tensor:
        return torch.istft(spectrum, 4, 2, window=window)

    assert torch.autograd.gradcheck(back, (spectrum, window), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(back, (spectrum, window))


def test_a_call_without_a_window_is_warned_of_once() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.stft(signal(9), 4, return_complex=True)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        torch.stft(signal(9), 4, return_complex=True)
    assert not given
