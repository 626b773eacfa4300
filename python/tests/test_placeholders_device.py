"""Devices, streams and switches: a machine without accelerator, and one with simulated devices."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import pullback as torch


def test_without_devices_questions_get_no_for_an_answer() -> None:
    cuda, accelerator = torch.cuda, torch.accelerator
    assert not accelerator.is_available()
    assert accelerator.device_count() == 0
    assert accelerator.current_accelerator() is None
    assert accelerator.memory_allocated() == accelerator.max_memory_reserved() == 0
    assert accelerator.memory_stats() == {}
    accelerator.reset_peak_memory_stats()
    accelerator.empty_cache()
    assert (cuda.memory_allocated(), cuda.max_memory_reserved(), cuda.memory_snapshot()) == (
        0,
        0,
        [],
    )
    assert cuda.memory_summary() == "no allocator of CUDA devices: 0 bytes are in use\n"
    assert (cuda.get_rng_state_all(), cuda.get_arch_list(), cuda.default_generators) == ([], [], ())
    assert not cuda.is_bf16_supported()
    assert not cuda.is_tf32_supported()
    assert not cuda.is_current_stream_capturing()
    assert not cuda.tunable.is_enabled()
    cuda.set_rng_state_all([])
    with cuda.stream(None), cuda.caching_allocator_disabled():
        pass


@pytest.mark.parametrize(
    "name",
    [
        "current_stream",
        "default_stream",
        "get_device_capability",
        "get_device_properties",
        "get_rng_state",
        "get_sync_debug_mode",
        "init",
        "initial_seed",
        "ipc_collect",
        "mem_get_info",
        "Stream",
        "CUDAGraph",
        "cudart",
    ],
)
def test_without_devices_what_needs_one_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match="device 'cuda' is not available"):
        getattr(torch.cuda, name)()


def test_without_accelerator_what_needs_one_is_refused() -> None:
    accelerator = torch.accelerator
    for use in (
        accelerator.current_device_index,
        accelerator.current_stream,
        accelerator.synchronize,
        accelerator.get_device_capability,
        lambda: accelerator.set_device_index(0),
        lambda: torch.Stream(),
    ):
        with pytest.raises(RuntimeError, match=r"not available|none is available"):
            use()
    with accelerator.device_index(None):
        pass
    event = torch.cuda.Event(enable_timing=True)
    assert event.query()
    with pytest.raises(RuntimeError, match="not available"):
        event.record()
    with pytest.raises(ValueError, match="must be recorded before"):
        event.elapsed_time(torch.cuda.Event(enable_timing=True))
    with pytest.raises(ValueError, match="created with argument 'enable_timing=True'"):
        event.elapsed_time(torch.cuda.Event())


SIMULATED = """
import pullback as torch
cuda, accelerator = torch.cuda, torch.accelerator
cuda.simulate(2)
assert accelerator.current_accelerator() == torch.device("cuda")
assert (accelerator.device_count(), accelerator.current_device_index()) == (2, 0)
outer = cuda.current_stream()
assert outer == cuda.default_stream(0) and isinstance(outer, torch.Stream)
with cuda.stream(cuda.Stream(1, priority=-1)) as nothing:
    assert cuda.current_device() == 1
    assert cuda.current_stream() != cuda.default_stream(1)
assert (cuda.current_device(), cuda.current_stream(1)) == (0, cuda.default_stream(1))
stream = cuda.Stream()
begin = stream.record_event(cuda.Event(enable_timing=True))
end = cuda.Event(enable_timing=True)
end.record()
assert begin.elapsed_time(end) >= 0 and stream.query()
stream.wait_stream(outer); stream.wait_event(end); stream.synchronize()
with accelerator.device_index(1):
    assert cuda.current_device() == 1
assert cuda.current_device() == 0
accelerator.set_device_index("cuda:1")
assert cuda.current_device() == 1
assert cuda.get_device_capability() == (0, 0) and cuda.get_device_properties(1).total_memory > 0
assert cuda.mem_get_info()[0] <= cuda.mem_get_info()[1]
assert torch.equal(cuda.get_rng_state(), torch.get_rng_state())
cuda.set_rng_state_all(cuda.get_rng_state_all())
cuda.manual_seed_all(3)
drawn = torch.randn(3, device="cuda")
cuda.manual_seed(3)
assert torch.equal(drawn, torch.randn(3, device="cuda")) and cuda.initial_seed() == 3
cuda.set_sync_debug_mode("warn")
assert cuda.get_sync_debug_mode() == 1 and cuda.can_device_access_peer(0, 1)
assert torch.get_device_module() is cuda and torch.float32 in (
    accelerator.get_device_capability()["supported_dtypes"])
for use, error in (
    (lambda: cuda.memory_allocated(5), RuntimeError),
    (lambda: cuda.Stream(5), RuntimeError),
    (lambda: torch.Stream("cpu"), RuntimeError),
    (lambda: accelerator.set_device_index("cpu"), ValueError),
    (lambda: cuda.set_sync_debug_mode("x"), RuntimeError),
    (lambda: cuda.can_device_access_peer(0, 7), AssertionError),
):
    try:
        use()
    except error:
        continue
    raise AssertionError("not refused")
print("done")
"""


def test_simulated_devices_count() -> None:
    # (There is no way back, so that this is a process of its own.)
    done = subprocess.run([sys.executable, "-c", SIMULATED], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_ranges_for_a_profiler_that_is_not_there_nest() -> None:
    nvtx = torch.cuda.nvtx
    assert nvtx.range_pop() == -2
    assert (nvtx.range_push("a"), nvtx.range_push("b")) == (0, 1)
    assert (nvtx.range_pop(), nvtx.range_pop(), nvtx.range_pop()) == (1, 0, -2)
    with nvtx.range("{} {}", 1, 2):
        assert nvtx.range_push("c") == 1
        nvtx.range_pop()
    nvtx.range_end(nvtx.range_start("d"))
    nvtx.mark("e")


def test_the_cpu_has_streams_too() -> None:
    cpu = torch.cpu
    stream = cpu.Stream()
    with cpu.stream(stream):
        assert cpu.current_stream() is stream
    assert cpu.current_stream() is not stream
    assert stream.record_event().query()
    capabilities = cpu.get_capabilities()
    assert capabilities["architecture"]
    with pytest.raises(TypeError):
        capabilities["x"] = 1
    assert torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")


def capability_with(word: str | None) -> subprocess.CompletedProcess[str]:
    """What a process says of its kernels' instruction set, with a word in PULLBACK_CPU."""
    program = "import pullback; print(pullback.backends.cpu.get_cpu_capability())"
    environment = {name: value for name, value in os.environ.items() if name != "PULLBACK_CPU"}
    if word is not None:
        environment["PULLBACK_CPU"] = word
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_a_variable_lowers_the_instruction_set() -> None:
    order = ["DEFAULT", "AVX2", "AVX512"]
    highest = order.index(capability_with(None).stdout.strip())
    for word, wanted in [("generic", 0), ("avx2", 1), ("AVX512", 2), ("amx", 2), ("", 2)]:
        done = capability_with(word)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == order[min(wanted, highest)], word
    done = capability_with("sse9")
    assert done.returncode != 0
    phrase = "PULLBACK_CPU must be generic, avx2, avx512 or amx, but is 'sse9'"
    assert f"ValueError: {phrase}" in done.stderr


def test_modules_of_devices() -> None:
    assert torch.get_device_module() is torch.cpu
    assert torch.get_device_module("cuda:0") is torch.cuda
    assert torch.get_device(torch.ones(1)) == -1
    with pytest.raises(RuntimeError, match="'meta' does not have a corresponding module"):
        torch.get_device_module(torch.device("meta"))
    with pytest.raises(RuntimeError, match="Invalid value of device '3'"):
        torch.get_device_module(3)


def test_threads_and_builds() -> None:
    assert torch.set_flush_denormal(False)
    assert not torch.set_flush_denormal(True)
    with pytest.raises(RuntimeError, match="expects a positive integer"):
        torch.set_num_interop_threads(0)
    assert torch.get_num_interop_threads() >= 1
    assert (torch.has_mkl, torch.has_lapack) == (False, True)
    assert not torch.is_vulkan_available()
    assert not torch.cudnn_is_acceptable(torch.ones(1))
    assert issubclass(torch.AcceleratorError, RuntimeError)


def test_switches_of_attention_are_kept() -> None:
    cuda = torch.backends.cuda
    with cuda.sdp_kernel(enable_flash=False, enable_math=True):
        assert not cuda.flash_sdp_enabled()
        assert cuda.math_sdp_enabled()
    assert cuda.flash_sdp_enabled()
    cuda.enable_cudnn_sdp(False)
    assert not cuda.cudnn_sdp_enabled()
    cuda.enable_cudnn_sdp(True)
    with pytest.raises(RuntimeError, match="expects a bool"):
        cuda.enable_flash_sdp("x")
    parameters = cuda.SDPAParams(1, 2, 3, None, 0.0, False, False)
    assert not cuda.can_use_flash_attention(parameters)
    with pytest.warns(UserWarning, match="FlashAttention is not part of this build"):
        cuda.can_use_flash_attention(parameters, debug=True)
    assert cuda.preferred_linalg_library("magma") == "magma"
    assert cuda.preferred_linalg_library("default") == "default"
    with pytest.raises(RuntimeError, match="Unknown input value 'x'"):
        cuda.preferred_linalg_library("x")


def test_switches_of_other_libraries() -> None:
    backends = torch.backends
    assert backends.mha.get_fastpath_enabled()
    backends.mha.set_fastpath_enabled(False)
    assert not backends.mha.get_fastpath_enabled()
    backends.mha.set_fastpath_enabled(True)
    with backends.nnpack.flags(enabled=False):
        assert not backends.nnpack.enabled
    assert backends.nnpack.set_flags(True) == (True,)
    assert backends.cusparselt.version() is None
    for library in (backends.cusparselt, backends.kleidiai, backends.nnpack, backends.opt_einsum):
        assert not library.is_available()
    with backends.mkl.verbose(backends.mkl.VERBOSE_ON):
        pass
    with pytest.raises(RuntimeError, match="without MPS backend"):
        backends.mps.get_name()
    assert isinstance(backends.mps.is_macos_or_newer(13, 0), bool)
    with pytest.raises(RuntimeError, match="engine expects one of"):
        backends.quantized.engine = "fbgemm"
