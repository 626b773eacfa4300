"""Loaders, samplers and splits: recorded draws, workers, and what is refused."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import pullback as torch
from pullback.utils import data

RECORDED = Path(__file__).parents[1] / "recorded"
sys.path.insert(0, str(RECORDED))

import data_program as program  # noqa: E402

DRAWS = json.loads((RECORDED / "data_draws.json").read_text())

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
    # From Python 3.12 on, forking warns in any process that has threads.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.mark.parametrize("case", sorted(program.CASES))
def test_draws_equal_the_recorded_ones(case: str) -> None:
    assert json.loads(json.dumps(program.run(torch, case))) == DRAWS[case]


class Squares(data.Dataset[Any]):
    """Squares, made in a way that no short cut knows."""

    def __init__(self, count: int = 10) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return torch.tensor(float(index * index)), index


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_are_the_same_with_and_without_workers(workers: int) -> None:
    loader = data.DataLoader(Squares(), batch_size=4, num_workers=workers)
    batches = list(loader)
    assert len(loader) == len(batches) == 3
    assert [index.tolist() for _, index in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert batches[2][0].tolist() == [64.0, 81.0]


def test_whole_tensors_are_gathered_as_items_would_be() -> None:
    table = torch.arange(12).reshape(6, 2)
    dataset = data.TensorDataset(table, table[:, 0])
    subset = data.Subset(data.Subset(dataset, [5, 3, 1, 0]), [2, 0, 1])
    fast = list(data.DataLoader(subset, batch_size=2))
    slow = list(data.DataLoader(subset, batch_size=2, collate_fn=lambda b: data.default_collate(b)))
    for batch, expected in zip(fast, slow, strict=True):
        assert type(batch) is type(expected)
        for part, other in zip(batch, expected, strict=True):
            assert torch.equal(part, other)
    fast[0][0].fill_(-1)
    assert table.min().item() == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_of_a_negative_index_or_out_of_range(workers: int) -> None:
    dataset = data.TensorDataset(torch.arange(4))
    taken = list(data.DataLoader(dataset, batch_sampler=[[-1, 0]], num_workers=workers))
    assert taken[0][0].tolist() == [3, 0]
    with pytest.raises(IndexError):
        list(data.DataLoader(dataset, batch_sampler=[[4]], num_workers=workers))


class Stream(data.IterableDataset[int]):
    def __init__(self, count: int, is_shared: bool = True) -> None:
        self.count = count
        self.is_shared = is_shared

    def __iter__(self) -> Any:
        worker = data.get_worker_info()
        if worker is None or not self.is_shared:
            return iter(range(self.count))
        return iter(range(worker.id, self.count, worker.num_workers))

    def __len__(self) -> int:
        return self.count


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_stream_shared_by_workers_gives_each_item_once(workers: int, persistent: bool) -> None:
    loader = data.DataLoader(
        Stream(17), batch_size=3, num_workers=workers, persistent_workers=persistent
    )
    for _ in range(2):
        items = [item for batch in loader for item in batch.tolist()]
        assert sorted(items) == list(range(17))


def test_a_stream_drops_a_short_last_batch_and_counts_its_promise() -> None:
    loader = data.DataLoader(Stream(7), batch_size=3, drop_last=True)
    assert len(loader) == 2
    assert [batch.tolist() for batch in loader] == [[0, 1, 2], [3, 4, 5]]
    copied = data.DataLoader(Stream(4, is_shared=False), batch_size=None, num_workers=2)
    assert len(copied) == 4
    with pytest.warns(UserWarning, match="was reported to be 4"):
        assert len(list(copied)) == 8


class Failing(Squares):
    def __init__(self, how: str) -> None:
        super().__init__(8)
        self.how = how

    def __getitem__(self, index: int) -> Any:
        if index == 5:
            if self.how == "exit":
                os._exit(3)
            if self.how == "sleep":
                time.sleep(60)
            if self.how == "unpicklable":
                return lambda: index
            if self.how == "two arguments":
                raise UnicodeDecodeError("ascii", b"x", 0, 1, "reason")
            raise {"key": KeyError, "value": ValueError}[self.how](f"item {index}")
        return index


def fail(how: str, **options: Any) -> pytest.ExceptionInfo[BaseException]:
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        list(data.DataLoader(Failing(how), batch_size=2, num_workers=2, **options))
    return caught


def test_an_exception_in_a_worker_is_raised_again_with_its_traceback() -> None:
    caught = fail("value")
    assert caught.type is ValueError
    assert "Caught ValueError in DataLoader worker process 0." in str(caught.value)
    assert "in __getitem__" in str(caught.value)
    assert "item 5" in str(caught.value)
    caught = fail("key")
    assert caught.type is KeyError
    assert "\nOriginal Traceback" in str(caught.value)
    assert fail("two arguments").type is RuntimeError


def test_what_cannot_be_sent_is_an_error_and_not_a_hang() -> None:
    caught = fail("unpicklable", collate_fn=list)
    assert "in DataLoader worker process 0" in str(caught.value)


def test_a_worker_that_dies_is_an_error() -> None:
    caught = fail("exit")
    assert caught.type is RuntimeError
    assert "exited unexpectedly with exit code 3" in str(caught.value)


def test_a_late_worker_is_an_error_after_the_timeout() -> None:
    started = time.monotonic()
    caught = fail("sleep", timeout=0.5)
    assert caught.type is RuntimeError
    assert "DataLoader timed out after 0.5 seconds" in str(caught.value)
    assert time.monotonic() - started < 10


def test_an_error_ends_one_batch_and_the_others_still_come() -> None:
    batches = iter(data.DataLoader(Failing("value"), batch_size=2, num_workers=2))
    assert next(batches).tolist() == [0, 1]
    assert next(batches).tolist() == [2, 3]
    with pytest.raises(ValueError, match="item 5"):
        next(batches)
    assert next(batches).tolist() == [6, 7]


def refuse(worker_id: int) -> None:
    raise RuntimeError(f"worker {worker_id} does not start")


def test_an_exception_in_worker_init_fn_is_raised() -> None:
    with pytest.raises(RuntimeError, match="worker 0 does not start"):
        list(data.DataLoader(Squares(), num_workers=1, worker_init_fn=refuse))


class Seeds(Squares):
    def __getitem__(self, index: int) -> Any:
        worker = data.get_worker_info()
        assert worker is not None
        return worker.seed, torch.initial_seed(), worker.num_workers, worker.dataset is self


def test_workers_have_neighbouring_seeds_and_know_who_they_are() -> None:
    seeds, initial, count, is_own = zip(
        *data.DataLoader(Seeds(2), batch_size=None, num_workers=2), strict=True
    )
    assert seeds[1] == seeds[0] + 1
    assert initial == seeds
    assert count == (2, 2)
    assert all(is_own)
    assert data.get_worker_info() is None


def test_persistent_workers_survive_a_pass_that_was_given_up() -> None:
    loader = data.DataLoader(Squares(40), batch_size=2, num_workers=2, persistent_workers=True)
    for _ in range(3):
        for number, _ in enumerate(loader):
            if number == 2:
                break
    assert sum(len(index) for _, index in loader) == 40


def test_batches_may_come_in_any_order_on_request() -> None:
    loader = data.DataLoader(Squares(20), batch_size=None, num_workers=3, in_order=False)
    assert sorted(index for _, index in loader) == list(range(20))


def test_a_spawned_worker_gives_the_same_batches() -> None:
    loader = data.DataLoader(
        data.TensorDataset(torch.arange(4)), 2, num_workers=1, multiprocessing_context="spawn"
    )
    assert [batch[0].tolist() for batch in loader] == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified"),
        ({"prefetch_factor": -1, "num_workers": 1}, "prefetch_factor option should be non-neg"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"shuffle": True, "sampler": [1]}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching"),
        ({"batch_size": 0}, "batch_size should be a positive integer value, but got batch_size=0"),
        ({"multiprocessing_context": "fork"}, "can only be used with multi-process loading"),
        ({"multiprocessing_context": "x", "num_workers": 1}, "a valid start method"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        data.DataLoader(Squares(), **options)
    assert text in str(caught.value)


def test_a_stream_takes_no_order() -> None:
    for options in ({"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}):
        with pytest.raises(ValueError, match="IterableDataset: expected unspecified"):
            data.DataLoader(Stream(3), **options)


def test_what_decides_the_batches_cannot_change() -> None:
    loader = data.DataLoader(Squares())
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader"):
        loader.batch_size = 3


def test_samplers_refuse_what_is_no_count() -> None:
    with pytest.raises(ValueError, match="num_samples=0"):
        data.RandomSampler(range(0))
    with pytest.raises(TypeError, match="replacement=1"):
        data.RandomSampler(range(3), replacement=1)
    with pytest.raises(ValueError, match="num_samples=True"):
        data.WeightedRandomSampler([1.0], True)
    with pytest.raises(ValueError, match=r"weights have shape \(1, 2\)"):
        data.WeightedRandomSampler([[1.0, 2.0]], 1)
    with pytest.raises(ValueError, match="drop_last=1"):
        data.BatchSampler([1], 1, 1)


def test_pipes_can_be_imported_and_say_that_there_are_none() -> None:
    from pullback.utils.data.datapipes.iter import IterableWrapper

    with pytest.raises(NotImplementedError, match="there are no data pipes"):
        IterableWrapper([1, 2])


def test_words_for_other_generators_differ_by_worker_and_seed() -> None:
    numpy = pytest.importorskip("numpy")
    from pullback.utils.data._utils.worker import _generate_state

    seed = 3 * 2**40 + 5
    expected = numpy.random.SeedSequence([1, 5, 3 * 2**8, 0]).generate_state(4)
    assert _generate_state(seed, 1) == expected.tolist()
    assert _generate_state(seed, 2) != _generate_state(seed, 1)


def test_too_many_workers_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="excessive worker creation might get DataLoader running"):
        data.DataLoader([1, 2], num_workers=10_000)
