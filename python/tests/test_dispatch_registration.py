"""What is registered for ops: ``torch._C._dispatch_*`` and the text of ``torch.ops.aten.*``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pullback as torch
from pullback import library, ops

ROOT = Path(__file__).parents[2]


def test_an_ops_dump_names_its_signature_and_where_its_kernels_stand() -> None:
    text = torch._C._dispatch_dump("aten::add.Tensor")
    lines = text.splitlines()
    assert lines[0] == "name: aten::add.Tensor"
    assert lines[1].startswith("schema: aten::add.Tensor(Tensor self, Tensor other")
    rules = {line.split(": ")[0]: line for line in lines[3:]}
    assert {"Autograd", "FuncTorchBatched", "CPU", "SparseCPU", "SparseCsrCPU"} <= set(rules)
    assert "sparse = add(cpu, form, self, other, alpha)" in rules["SparseCPU"]


def test_the_line_of_a_dump_is_where_the_rule_stands() -> None:
    for key, what, place in torch._C._dispatch_registrations("aten::mm"):
        file, line = place.rsplit(":", 1)
        text = (ROOT / file).read_text().splitlines()[int(line) - 1]
        assert what.split("(")[0].split(" = ")[0] in text, (key, what, text)


def test_a_name_without_op_has_no_dump_and_no_kernel() -> None:
    assert torch._C._dispatch_dump("aten::no_such_op") == ""
    assert not torch._C._dispatch_has_kernel("aten::no_such_op")
    with pytest.raises(RuntimeError, match="operator aten::no_such_op does not exist"):
        torch._C._dispatch_has_kernel_for_dispatch_key("aten::no_such_op", "CPU")


@pytest.mark.parametrize("name", ["aten::add.Tensor", "aten::add_.Tensor", "aten::add.out", "erf"])
def test_each_form_has_the_kernels_of_its_op(name: str) -> None:
    assert torch._C._dispatch_has_kernel(name)
    assert torch._C._dispatch_has_kernel_for_dispatch_key(name, "CPU")


@pytest.mark.parametrize(
    ("key", "erf", "mm", "view", "dropout"),
    [
        ("CPU", True, True, True, False),
        ("SparseCPU", True, True, False, False),
        ("Autograd", True, True, True, False),
        ("FuncTorchBatched", True, True, True, False),
        ("AutocastCPU", False, True, False, False),
        ("ADInplaceOrView", False, False, True, False),
        ("CompositeImplicitAutograd", False, False, False, True),
        ("QuantizedCPU", False, False, False, False),
    ],
)
def test_kernels_are_found_by_dispatch_key(
    key: str, erf: bool, mm: bool, view: bool, dropout: bool
) -> None:
    # (The values are those of PyTorch.)
    names = ["aten::erf", "aten::mm", "aten::view", "aten::dropout"]
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    assert [has(name, key) for name in names] == [erf, mm, view, dropout]


def test_a_word_that_is_no_key_is_refused() -> None:
    with pytest.raises(RuntimeError, match="could not parse dispatch key: Nope"):
        torch._C._dispatch_has_kernel_for_dispatch_key("aten::erf", "Nope")


def test_all_names_are_listed_once() -> None:
    names = torch._C._dispatch_get_all_op_names()
    assert len(names) == len(set(names)) > 1000
    assert {"aten::add.Tensor", "aten::add_.Tensor", "aten::add.out", "aten::erf"} <= set(names)
    assert all(torch._C._dispatch_has_kernel(name) for name in names)


def keys(tensor: Any) -> str:
    return repr(torch._C._dispatch_keys(tensor))


def test_the_keys_of_a_tensor_are_its_backend_and_its_layers() -> None:
    # (The texts are those of PyTorch.)
    x = torch.ones(2, 2)
    behind = "ADInplaceOrView, AutogradCPU, AutocastCPU)"
    assert keys(x) == f"DispatchKeySet(CPU, {behind}"
    assert keys(torch.ones(2, requires_grad=True)) == f"DispatchKeySet(CPU, {behind}"
    assert keys(x.to_sparse()) == f"DispatchKeySet(SparseCPU, {behind}"
    assert keys(x.to_sparse_csr()) == f"DispatchKeySet(SparseCsrCPU, {behind}"
    assert keys(torch.ones(2, dtype=torch.complex64).conj()) == (
        f"DispatchKeySet(CPU, Conjugate, {behind}"
    )
    with torch.inference_mode():
        assert keys(torch.ones(2)) == "DispatchKeySet(CPU, AutocastCPU)"
    seen = []

    def see(row: Any) -> Any:
        seen.append(keys(row))
        return row

    torch.func.vmap(see)(x)
    assert seen == [
        "DispatchKeySet(CPU, ADInplaceOrView, AutogradCPU, AutocastCPU, FuncTorchBatched)"
    ]
    assert torch._C._dispatch_keys(x).has("CPU")
    assert not torch._C._dispatch_keys(x).has("CUDA")
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        torch._C._dispatch_keys(1)  # type: ignore[arg-type]


def test_an_overload_shows_its_kernels() -> None:
    text = repr(ops.aten.add.Tensor)
    assert text.splitlines()[0] == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert "\n  SparseCPU: sparse = add(" in text
    assert str(ops.aten.add.Tensor) == "aten.add.Tensor"
    assert ops.aten.erf.default.has_kernel_for_dispatch_key("CPU")


def test_an_op_of_a_program_is_shown_too() -> None:
    with library._scoped_library("shown", "FRAGMENT") as defined:
        defined.define("twice(Tensor x) -> Tensor")

        def twice(x: Any) -> Any:
            return x * 2

        defined.impl("twice", twice, "CPU")
        assert torch._C._dispatch_has_kernel("shown::twice")
        has = torch._C._dispatch_has_kernel_for_dispatch_key
        assert has("shown::twice", "CPU")
        assert not has("shown::twice", "CUDA")
        dump = torch._C._dispatch_dump("shown::twice")
        assert dump.startswith(
            "name: shown::twice\nschema: shown::twice(Tensor x) -> Tensor\nCPU: "
        )
        assert "test_dispatch_registration.py" in dump


def test_an_op_without_kernel_for_a_layout_says_which_it_has() -> None:
    with pytest.raises(
        NotImplementedError,
        match=r"Could not run 'aten::cumsum' with arguments from the 'SparseCPU' backend.*CPU",
    ):
        torch.ones(2, 2).to_sparse().cumsum(0)
    for tensor, backend in [
        (torch.ones(2), "CPU"),
        (torch.ones(2, 2).to_sparse_csr(), "SparseCsrCPU"),
    ]:
        with pytest.raises(
            NotImplementedError, match=f"'aten::_indices' .* from the '{backend}' backend"
        ):
            tensor._indices()
