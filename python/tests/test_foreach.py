"""Functions of lists of tensors, conditions, and other names that libraries take from PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback import _jit_internal


def lists() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    torch.manual_seed(0)
    shapes = [(3,), (2, 2), ()]
    return [torch.rand(s) + 0.1 for s in shapes], [torch.rand(s) + 0.2 for s in shapes]


def same(found: Any, expected: list[torch.Tensor]) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    ("check", "error"),
    [
        (torch._check, RuntimeError),
        (torch._check_index, IndexError),
        (torch._check_value, ValueError),
        (torch._check_type, TypeError),
        (torch._check_not_implemented, NotImplementedError),
    ],
)
def test_conditions_raise_errors_of_their_class(check: Any, error: type[Exception]) -> None:
    check(True, lambda: pytest.fail("nobody asks for the text"))
    with pytest.raises(error, match="size 3"):
        check(False, lambda: "size 3")
    with pytest.raises(error, match="size 4"):
        check(False, "size 4")
    with pytest.raises(error, match="Expected cond to be True"):
        check(False)
    for other in (1, torch.tensor(True)):
        with pytest.raises(TypeError, match="cond must be a bool"):
            check(other)


def test_other_conditions() -> None:
    torch._check_is_size(3, max=3)
    for arguments in ((-1,), (4,)):
        with pytest.raises(RuntimeError):
            torch._check_is_size(*arguments, max=3)
    torch._check_tensor_all(torch.tensor([True, True]))
    with pytest.raises(RuntimeError, match="all of them"):
        torch._check_tensor_all(torch.tensor([True, False]), lambda: "all of them")
    with pytest.raises(TypeError, match="cond must be a tensor, but got"):
        torch._check_tensor_all(True)
    with pytest.raises(TypeError, match=r"cond tensor must have dtype torch\.bool"):
        torch._check_tensor_all(torch.ones(2))
    torch._assert(True, "never")
    with pytest.raises(AssertionError, match="odd"):
        torch._assert(False, "odd")
    torch._assert_async(torch.tensor(1))
    with pytest.raises(RuntimeError, match="but got zero"):
        torch._assert_async(torch.tensor(0))


def test_names_of_scripts_leave_functions_as_they_are() -> None:
    def function(x: int) -> int:
        return x

    for decorator in (
        _jit_internal._overload,
        _jit_internal._overload_method,
        _jit_internal._copy_to_script_wrapper,
    ):
        assert decorator(function) is function
    chosen = _jit_internal.boolean_dispatch(
        "flag", 1, False, lambda x, flag=False: "yes", lambda x, flag=False: "no", "mine", "chosen"
    )
    assert [chosen(1), chosen(1, True), chosen(1, flag=True), chosen(1, False)] == [
        "no",
        "yes",
        "yes",
        "no",
    ]
    assert (chosen.__module__, chosen.__name__) == ("mine", "chosen")
    assert _jit_internal.BroadcastingList2[int] is None


def test_what_libraries_ask_of_the_extension() -> None:
    assert torch._C._get_tracing_state() is None
    assert torch._C._get_privateuse1_backend_name() == "privateuseone"
    assert torch._C._cuda_isInBadFork() is False
    torch._C._log_api_usage_once("event")


def test_private_modules_of_what_only_answers_answer_too() -> None:
    from pullback.distributed.checkpoint import state_dict
    from pullback.distributed.fsdp.wrap import transformer_auto_wrap_policy

    with pytest.raises(RuntimeError, match="a process trains alone"):
        transformer_auto_wrap_policy()
    with pytest.raises(RuntimeError, match="a process trains alone"):
        state_dict.StateDictOptions()
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        state_dict.no_such_name  # noqa: B018 (asking is the point)


def test_iterators_of_loaders_by_their_names() -> None:
    from pullback.utils.data import dataloader

    loader = dataloader.DataLoader([1, 2])
    assert isinstance(iter(loader), dataloader._SingleProcessDataLoaderIter)
    assert isinstance(iter(loader), dataloader._BaseDataLoaderIter)
    assert issubclass(dataloader._MultiProcessingDataLoaderIter, dataloader._BaseDataLoaderIter)


def test_the_folder_of_downloads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", "/somewhere")
    assert torch.hub._get_torch_home() == "/somewhere"
    assert torch.hub.HASH_REGEX.search("net-0123abcd.pth")[1] == "0123abcd"


def test_an_index_without_dimensions_is_an_op_within_the_context() -> None:
    from pullback._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    x = torch.arange(12).reshape(3, 4)
    rows, columns = torch.tensor([0, 2]), torch.tensor([1, 3])

    def at(row: torch.Tensor, column: torch.Tensor) -> torch.Tensor:
        return x[row, column]

    with TransformGetItemToIndex():
        table = torch.vmap(torch.vmap(at, (None, 0)), (0, None))(rows, columns)
        assert table.tolist() == [[1, 3], [9, 11]]
        assert torch.vmap(lambda row: x[row])(rows).tolist() == x[rows].tolist()
        assert x[torch.tensor(1)].tolist() == [4, 5, 6, 7]
        assert x[1, 2] == 6
    with pytest.raises(RuntimeError, match=r"calling .item\(\)"):
        torch.vmap(lambda row: x[row])(rows)


def test_words_for_how_tensors_lie_on_processes_are_values() -> None:
    from pullback.distributed.tensor import DTensor, Partial, Replicate, Shard

    assert Shard(0) == Shard(0) != Shard(1)
    assert len({Shard(0), Shard(0), Replicate(), Partial(), Partial("avg")}) == 4
    assert (repr(Shard(0)), repr(Replicate()), repr(Partial())) == (
        "Shard(dim=0)",
        "Replicate()",
        "Partial(sum)",
    )
    assert (str(Shard(1)), str(Replicate()), str(Partial("avg"))) == ("S(1)", "R", "P(avg)")
    assert Shard(1).is_shard(1)
    assert not Shard(1).is_shard(0)
    assert Replicate().is_replicate()
    assert Partial().is_partial("sum")
    with pytest.raises(RuntimeError, match="a process trains alone"):
        DTensor()


def test_norms_copies_and_products_of_lists() -> None:
    a, _ = lists()
    same(torch._foreach_norm(a), [torch.linalg.vector_norm(x) for x in a])
    same(torch._foreach_norm(a, 1), [x.abs().sum() for x in a])
    copied = torch._foreach_clone(a)
    same(copied, a)
    assert all(x.data_ptr() != y.data_ptr() for x, y in zip(copied, a, strict=True))
    matrices = [torch.rand(2, 3), torch.rand(1, 3)]
    same(torch._foreach_mm(matrices, [torch.ones(3, 1)] * 2), [x.sum(1, True) for x in matrices])


def test_the_module_has_them_under_shorter_names() -> None:
    a, b = lists()
    found = torch.foreach.add(a, b, alpha=2)
    assert isinstance(found, tuple)
    same(found, [x + 2 * y for x, y in zip(a, b, strict=True)])
    assert torch.foreach.mul_(a, 3) is a
    assert {"abs_", "norm", "zero_", "lerp"} <= set(torch.foreach.__all__)
    assert len(torch.foreach.__all__) == 90
    for name in torch.foreach.__all__:
        assert getattr(torch.foreach, name) is getattr(torch, f"_foreach_{name}")
