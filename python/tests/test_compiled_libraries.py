"""The ops of torchvision and torchaudio, beside definitions that go point by point."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

import pullback as torch
from pullback import autograd, ops

ops.load_library("/packages/torchvision/_C.so")
ops.load_library("/packages/torchaudio/lib/_torchaudio.abi3.so")
ops.load_library("/packages/torchaudio/lib/libtorchaudio.abi3.so")
vision: Any = torch.ops.torchvision
audio: Any = torch.ops.torchaudio

ROIS = [[0, 1.0, 2, 9, 7], [1, -2, 3, 4, 12], [0, 3, 3, 3.2, 3.1], [1, 0, 0, 11, 9]]


def image(channels: int = 3, dtype: Any = torch.float64) -> Any:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(2, channels, 9, 11, generator=generator).to(dtype)


def rois(dtype: Any = torch.float64) -> Any:
    return torch.tensor(ROIS, dtype=dtype)


def test_libraries_that_are_not_known_are_refused() -> None:
    with pytest.raises(OSError, match=r"libraries that were compiled for PyTorch cannot be loaded"):
        ops.load_library("/packages/mine/_C.so")
    with pytest.raises(OSError, match=r"torchvision/other\.so"):
        ops.load_library("/packages/torchvision/other.so")
    assert "/packages/torchvision/_C.so" in ops.loaded_libraries
    assert vision._cuda_version() == -1
    assert torch.ops._torchaudio.cuda_version() is None


# ---- boxes ----


def overlap(a: list[float], b: list[float]) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    both = max(width, 0.0) * max(height, 0.0)
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return both / (sum(areas) - both)


@pytest.mark.parametrize("count", [0, 1, 200, 1500])
def test_boxes_that_overlap_a_better_one_go(count: int) -> None:
    generator = torch.Generator().manual_seed(0)
    corner = torch.rand(count, 2, generator=generator, dtype=torch.float64) * 60
    size = torch.rand(count, 2, generator=generator, dtype=torch.float64) * 20 + 1
    boxes, scores = torch.cat([corner, corner + size], 1), torch.rand(count, generator=generator)
    kept: list[int] = []
    rows = boxes.tolist()
    for box in scores.argsort(descending=True, stable=True).tolist():
        if all(overlap(rows[box], rows[other]) <= 0.3 for other in kept):
            kept.append(box)
    assert vision.nms(boxes, scores, 0.3).tolist() == kept


def test_boxes_of_other_shapes_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"2d tensor \[N, 4\], got \[2, 3\]"):
        vision.nms(torch.ones(2, 3), torch.ones(2), 0.5)
    with pytest.raises(RuntimeError, match="same number of elements"):
        vision.nms(torch.ones(2, 4), torch.ones(3), 0.5)
    with pytest.raises(NotImplementedError, match="kernels for none"):
        vision.box_iou_rotated(torch.ones(2, 5), torch.ones(2, 5))


# ---- pools ----


def between(plane: Any, y: float, x: float) -> float:
    """The value at a point between pixels."""
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = (min(max(at, 0.0), size - 1.0) for at, size in ((y, height), (x, width)))
    top, left = int(y), int(x)
    total = 0.0
    for row, of_row in ((top, 1 - (y - top)), (min(top + 1, height - 1), y - top)):
        for column, share in ((left, 1 - (x - left)), (min(left + 1, width - 1), x - left)):
            total += of_row * share * float(plane[row, column])
    return total


def aligned(images: Any, scale: float, sampling: int, shift: bool, plane_of: Any) -> Any:
    result = torch.zeros(len(ROIS), 3, 2, 3, dtype=images.dtype)
    for number, (index, *box) in enumerate(ROIS):
        left, top, right, bottom = (edge * scale - (0.5 if shift else 0) for edge in box)
        height, width = bottom - top, right - left
        if not shift:
            height, width = max(height, 1.0), max(width, 1.0)
        points = [sampling or math.ceil(size / n) for size, n in ((height, 2), (width, 3))]
        for c, y, x in itertools.product(range(3), range(2), range(3)):
            plane = plane_of(images[int(index)], c, y, x)
            total = 0.0
            for i, j in itertools.product(range(points[0]), range(points[1])):
                at_y = top + height / 2 * (y + (i + 0.5) / points[0])
                at_x = left + width / 3 * (x + (j + 0.5) / points[1])
                total += between(plane, at_y, at_x)
            result[number, c, y, x] = total / max(points[0] * points[1], 1)
    return result


@pytest.mark.parametrize("shift", [True, False])
@pytest.mark.parametrize("sampling", [0, 2])
def test_regions_are_averaged_over_points_between_pixels(shift: bool, sampling: int) -> None:
    found = vision.roi_align(image(), rois(), 0.8, 2, 3, sampling, shift)
    expected = aligned(image(), 0.8, sampling, shift, lambda image, c, y, x: image[c])
    torch.testing.assert_close(found, expected)


def test_regions_read_the_channels_of_their_bin() -> None:
    found, mapping = vision.ps_roi_align(image(18), rois(), 0.8, 2, 3, 2)
    expected = aligned(image(18), 0.8, 2, True, lambda image, c, y, x: image[6 * c + 3 * y + x])
    torch.testing.assert_close(found, expected)
    assert mapping.shape == (4, 3, 2, 3)
    assert mapping[0, 1, 1, 2] == 11
    with pytest.raises(RuntimeError, match="must be a multiple of pooling height"):
        vision.ps_roi_align(image(4), rois(), 1.0, 2, 3, 2)


def bins(begin: float, end: float, count: int, size: int, add: int) -> list[range]:
    start, stop = (math.floor(edge + 0.5) for edge in (begin, end))
    length = max(stop - start + add, 1) / count
    edges = [(math.floor(i * length), math.ceil((i + 1) * length)) for i in range(count)]
    return [range(min(max(a + start, 0), size), min(max(b + start, 0), size)) for a, b in edges]


def test_the_largest_of_each_bin_and_its_place_are_found() -> None:
    images = image()
    found, places = vision.roi_pool(images, rois(), 0.8, 2, 3)
    for number, (index, left, top, right, bottom) in enumerate(ROIS):
        rows = bins(top * 0.8, bottom * 0.8, 2, 9, 1)
        columns = bins(left * 0.8, right * 0.8, 3, 11, 1)
        for y, x in itertools.product(range(2), range(3)):
            part = images[int(index)][:, list(rows[y])][:, :, list(columns[x])]
            if part.numel() == 0:
                assert torch.equal(found[number, :, y, x], torch.zeros(3, dtype=torch.float64))
                assert places[number, :, y, x].tolist() == [-1] * 3
                continue
            assert torch.equal(found[number, :, y, x], part.flatten(1).amax(1))
            at = images[int(index)].flatten(1).gather(1, places[number, :, y, x].long()[:, None])
            assert torch.equal(at[:, 0], found[number, :, y, x])


def test_each_bin_averages_the_rows_and_columns_that_it_has() -> None:
    images = image(18)
    found, _ = vision.ps_roi_pool(images, rois(), 0.8, 2, 3)
    for number, (index, left, top, right, bottom) in enumerate(ROIS):
        rows = bins(top * 0.8, bottom * 0.8, 2, 8, 0)
        columns = bins(left * 0.8, right * 0.8, 3, 10, 0)
        for c, y, x in itertools.product(range(3), range(2), range(3)):
            part = images[int(index), 6 * c + 3 * y + x][list(rows[y])][:, list(columns[x])]
            mean = float(part.mean()) if part.numel() else 0.0
            assert abs(float(found[number, c, y, x]) - mean) < 1e-12


@pytest.mark.parametrize(
    ("name", "channels", "rest"),
    [
        ("roi_align", 3, (2, True)),
        ("roi_align", 3, (0, False)),
        ("ps_roi_align", 18, (2,)),
        ("ps_roi_pool", 18, ()),
        ("roi_pool", 3, ()),
    ],
)
def test_pools_have_gradients(name: str, channels: int, rest: tuple[Any, ...]) -> None:
    def pool(images: Any) -> Any:
        result = getattr(vision, name)(images, rois(), 0.8, 2, 3, *rest)
        return result[0] if isinstance(result, tuple) else result

    assert autograd.gradcheck(pool, image(channels).requires_grad_())


def test_pools_of_half_precision_add_up_in_more() -> None:
    halves = vision.roi_align(image().half(), rois().half(), 1.0, 2, 3, 2, True)
    assert halves.dtype == torch.float16
    exact = vision.roi_align(image().half().double(), rois().half().double(), 1.0, 2, 3, 2, True)
    torch.testing.assert_close(halves.double(), exact, atol=2e-3, rtol=2e-3)
    with pytest.raises(RuntimeError, match="same type as tensor for rois"):
        vision.roi_align(image(), rois(torch.float32), 1.0, 2, 3, 2, True)
    with pytest.raises(RuntimeError, match=r"Tensor\[K, 5\], got \[4, 4\]"):
        vision.roi_align(image(), rois()[:, 1:], 1.0, 2, 3, 2, True)


# ---- deformable convolution ----


def parts(mask: bool = True) -> list[Any]:
    generator = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    masks = torch.sigmoid(draw(2, 12, 4, 5)) if mask else torch.zeros(2, 1, dtype=torch.float64)
    return [draw(2, 4, 6, 7), draw(6, 2, 2, 3), draw(2, 24, 4, 5), masks, draw(6)]


NUMBERS = (1, 1, 0, 1, 2, 2, 2, 2)


def test_without_offsets_a_deformable_convolution_is_a_convolution() -> None:
    x, weight, offset, mask, bias = parts(mask=False)
    found = vision.deform_conv2d(x, weight, 0 * offset, mask, bias, *NUMBERS, False)
    expected = torch.nn.functional.conv2d(x, weight, bias, 1, (0, 1), 2, 2)
    torch.testing.assert_close(found, expected)


def test_offsets_of_whole_pixels_move_what_is_read() -> None:
    x, weight, offset, mask, bias = parts(mask=False)
    moves = torch.zeros_like(offset).view(2, 2, 6, 2, 4, 5)
    moves[:, :, :, 0] = 1
    found = vision.deform_conv2d(x, weight, moves.view_as(offset), mask, bias, *NUMBERS, False)
    below = torch.nn.functional.pad(x[:, :, 1:], (0, 0, 0, 1))
    expected = torch.nn.functional.conv2d(below, weight, bias, 1, (0, 1), 2, 2)
    torch.testing.assert_close(found, expected)


def test_a_deformable_convolution_has_all_its_gradients() -> None:
    given = [part.requires_grad_() for part in parts()]
    assert autograd.gradcheck(lambda *a: vision.deform_conv2d(*a, *NUMBERS, True), given)


# ---- torchaudio ----


@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("length", [0, 5, 128, 300])
def test_recursive_filters_are_those_of_the_loop(order: int, length: int) -> None:
    generator = torch.Generator().manual_seed(0)
    signal = torch.randn(2, 3, length, generator=generator, dtype=torch.float64)
    coefficients = 0.3 * torch.randn(3, order, generator=generator, dtype=torch.float64)
    coefficients[:, -1] = 1
    padded = torch.zeros(2, 3, length + order - 1, dtype=torch.float64)
    expected = padded.clone()
    for t in range(length):
        before = expected[:, :, t : t + order - 1] * coefficients[:, :-1]
        expected[:, :, t + order - 1] = signal[:, :, t] - before.sum(-1)
    audio._lfilter_core_loop(signal, coefficients, padded)
    torch.testing.assert_close(padded, expected)


def test_overdrive_is_that_of_the_loop() -> None:
    generator = torch.Generator().manual_seed(0)
    wave, temp = torch.randn(2, 2, 200, generator=generator, dtype=torch.float64)
    state_in, state_out = torch.zeros(2, 2, dtype=torch.float64).unbind(0)
    output = torch.zeros_like(wave)
    audio._overdrive_core_loop(wave, temp, state_in, state_out, output)
    before, value = torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    for t in range(200):
        value = temp[:, t] - before + 0.995 * value
        before = temp[:, t]
        torch.testing.assert_close(output[:, t], 0.5 * wave[:, t] + 0.75 * value)
    torch.testing.assert_close(state_out, value)
    assert torch.equal(state_in, before)


def paths(time: int, targets: int) -> Any:
    """All ways through the lattice: at each of ``time`` frames one blank, labels in between."""
    return itertools.combinations_with_replacement(range(time), targets)


def test_the_loss_of_transducers_sums_over_all_paths() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 4, 3, 5, generator=generator, dtype=torch.float64)
    targets = torch.tensor([[1, 2], [3, 0]], dtype=torch.int32)
    lengths, of_targets = torch.tensor([4, 3]), torch.tensor([2, 1])
    costs, gradient = audio.rnnt_loss_forward(logits, targets, lengths, of_targets, 4, -1.0, True)
    scores = logits.log_softmax(-1)
    for example in range(2):
        time, count = int(lengths[example]), int(of_targets[example])
        total = []
        for path in paths(time, count):
            value, done = 0.0, 0
            for t in range(time):
                while done < count and path[done] == t:
                    value += float(scores[example, t, done, targets[example, done]])
                    done += 1
                value += float(scores[example, t, done, 4])
            total.append(value)
        assert abs(float(costs[example]) + float(torch.tensor(total).logsumexp(0))) < 1e-5
    moved = logits.clone()
    moved[0, 1, 1, 2] += 1e-6
    again, _ = audio.rnnt_loss_forward(moved, targets, lengths, of_targets, 4, -1.0, True)
    assert abs(float((again - costs)[0]) / 1e-6 - float(gradient[0, 1, 1, 2])) < 1e-5
    assert not gradient[1, 3].any()
    _, clamped = audio.rnnt_loss_forward(logits, targets, lengths, of_targets, 4, 0.01, True)
    assert torch.equal(clamped, gradient.clamp(-0.01, 0.01))


def spelt(path: tuple[int, ...]) -> list[int]:
    return [label for label, _ in itertools.groupby(path) if label != 0]


@pytest.mark.parametrize("target", [[1], [1, 2], [1, 1], [2, 1, 2]])
def test_the_likeliest_alignment_is_found(target: list[int]) -> None:
    generator = torch.Generator().manual_seed(len(target))
    scores = torch.randn(1, 5, 3, generator=generator).log_softmax(-1)
    lengths = torch.tensor([5]), torch.tensor([len(target)])
    found, _ = audio.forced_align(scores, torch.tensor([target]), *lengths, 0)
    ways = [way for way in itertools.product(range(3), repeat=5) if spelt(way) == target]
    rows = scores[0].tolist()
    best = max(ways, key=lambda way: sum(row[label] for row, label in zip(rows, way, strict=True)))
    assert found[0].tolist() == list(best)
    with pytest.raises(RuntimeError, match="targets length is too long"):
        audio.forced_align(scores, torch.tensor([[1, 1, 1, 1]]), *lengths, 0)
