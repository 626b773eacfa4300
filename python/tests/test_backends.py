"""Switches of libraries that are not there: they can be set, and are put back."""

from __future__ import annotations

import pytest

import pullback as torch


def test_no_other_library_is_there() -> None:
    backends = torch.backends
    for library in (backends.mkl, backends.mkldnn, backends.openmp, backends.mps, backends.cudnn):
        assert not library.is_available()
    assert not backends.mps.is_built()
    assert not backends.cuda.is_built()
    assert backends.cudnn.version() is None
    assert not torch.xpu.is_available()
    assert torch.xpu.device_count() == 0
    assert not backends.cudnn.is_acceptable(torch.ones(3))


def test_switches_keep_what_they_are_set_to() -> None:
    cudnn = torch.backends.cudnn
    before = (cudnn.enabled, cudnn.benchmark, cudnn.deterministic)

    def fails() -> None:
        with cudnn.flags(enabled=False, deterministic=True):
            assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (False, before[1], True)
            raise KeyError("anything")

    with pytest.raises(KeyError, match="anything"):
        fails()
    assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == before
    with torch.backends.mkldnn.flags(enabled=False):
        assert not torch.backends.mkldnn.enabled
    assert torch.backends.mkldnn.enabled
    matmul = torch.backends.cuda.matmul
    matmul.allow_tf32 = True
    assert torch.backends.cuda.matmul.allow_tf32
    matmul.allow_tf32 = False
