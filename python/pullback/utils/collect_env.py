"""What a report about an error should say of the machine: ``python -m pullback.utils.collect_env``.

Other programs are run only for their versions; values that are unknown are None.
"""

from __future__ import annotations

import locale
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main", "pretty_str"]


class SystemEnv(NamedTuple):
    """The facts about the machine; None for those that are unknown."""

    torch_version: str | None
    is_debug_build: str | None
    cuda_compiled_version: str | None
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str | None
    libc_version: str | None
    python_version: str | None
    python_platform: str | None
    is_cuda_available: str | None
    cuda_runtime_version: str | None
    cuda_module_loading: str | None
    nvidia_driver_version: str | None
    nvidia_gpu_models: str | None
    cudnn_version: str | None
    is_xpu_available: str | None
    pip_version: str | None
    pip_packages: str | None
    conda_packages: str | None
    hip_compiled_version: str | None
    hip_runtime_version: str | None
    miopen_runtime_version: str | None
    caching_allocator_config: str | None
    is_xnnpack_available: str | None
    cpu_info: str | None
    rocm_compiled_version: str | None


_BITS = sys.maxsize.bit_length() + 1
Run = Callable[[Any], tuple[int, str, str]]


def run(command: Any) -> tuple[int, str, str]:
    """Runs a command: its status, output and errors; 127 for one that is not there."""
    words = command.split() if isinstance(command, str) else list(command)
    if shutil.which(words[0]) is None:
        return 127, "", f"{words[0]}: not found"
    try:
        done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, "", str(error)
    encoding = locale.getpreferredencoding()
    out, err = (part.decode(encoding, "replace").strip() for part in (done.stdout, done.stderr))
    return done.returncode, out, err


def run_and_read_all(run_lambda: Run, command: Any) -> str | None:
    """The output of a command; None if it fails."""
    status, out, _ = run_lambda(command)
    return None if status else out


def run_and_parse_first_match(run_lambda: Run, command: Any, regex: str) -> str | None:
    """The match of the first group of an expression in the output; None if there is none."""
    status, out, _ = run_lambda(command)
    found = None if status else re.search(regex, out)
    return None if found is None else found.group(1)


def run_and_return_first_line(run_lambda: Run, command: Any) -> str | None:
    """The first line of the output; None if the command fails."""
    status, out, _ = run_lambda(command)
    return None if status else out.split("\n", maxsplit=1)[0]


def get_platform() -> str:
    """The system: ``linux``, ``darwin``, ``win32`` ..."""
    return "linux" if sys.platform.startswith("linux") else sys.platform


def get_gcc_version(run_lambda: Run) -> str | None:
    """The version of GCC."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: Run) -> str | None:
    """The version of Clang."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Run) -> str | None:
    """The version of CMake."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_linux_pkg_version(run_lambda: Run, pkg_name: str) -> str:
    """The version of a package of Debian's; ``"N/A"`` where there is none."""
    line = run_and_read_all(run_lambda, f"dpkg-query -W -f=${{Version}} {pkg_name}")
    return line or "N/A"


def get_nvidia_smi() -> str:
    """The name of NVIDIA's program that knows GPUs."""
    return "nvidia-smi"


def get_nvidia_driver_version(run_lambda: Run) -> str | None:
    """The version of NVIDIA's driver."""
    query = [get_nvidia_smi(), "--query-gpu=driver_version", "--format=csv,noheader"]
    return run_and_return_first_line(run_lambda, query)


def get_gpu_info(run_lambda: Run) -> str | None:
    """The GPUs of NVIDIA's that the driver knows."""
    return run_and_read_all(run_lambda, f"{get_nvidia_smi()} -L")


def get_running_cuda_version(run_lambda: Run) -> str | None:
    """The version of CUDA's compiler."""
    return run_and_parse_first_match(run_lambda, "nvcc --version", r"release .+ V(.*)")


def get_cudnn_version(run_lambda: Run) -> str | None:
    """The version of cuDNN, which is not looked for: no build uses it."""
    return None


def get_cuda_module_loading_config() -> str:
    """When CUDA would load kernels: None, because there are none."""
    return "N/A"


def get_cachingallocator_config() -> str:
    """The variable that PyTorch's allocator for CUDA would read."""
    return os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")


def is_xnnpack_available() -> str:
    """Whether XNNPACK is part of the build, as a word: no."""
    return "False"


def get_intel_gpu_onboard(run_lambda: Run) -> str | None:
    """Intel's GPUs that the system lists; None where it lists no devices."""
    listed = run_and_read_all(run_lambda, "lspci")
    found = [line for line in (listed or "").splitlines() if "VGA" in line and "Intel" in line]
    return "\n".join(found) or None


def get_intel_gpu_driver_version(run_lambda: Run) -> str:
    """The version of Intel's driver for computing."""
    return get_linux_pkg_version(run_lambda, "intel-opencl-icd")


def get_intel_gpu_detected(run_lambda: Run) -> str:
    """Intel's GPUs that tensors could live on: none."""
    return "N/A"


def get_mac_version(run_lambda: Run) -> str | None:
    """The version of macOS."""
    return run_and_parse_first_match(run_lambda, "sw_vers -productVersion", r"(.*)")


def get_windows_version(run_lambda: Run) -> str | None:
    """The version of Windows."""
    return platform.platform() if sys.platform == "win32" else None


def check_release_file(run_lambda: Run) -> str | None:
    """The name that the system gives itself in ``/etc/*-release``."""
    return run_and_parse_first_match(run_lambda, "cat /etc/os-release", r'PRETTY_NAME="(.*)"')


def get_lsb_version(run_lambda: Run) -> str | None:
    """The name that ``lsb_release`` gives the system."""
    return run_and_parse_first_match(run_lambda, "lsb_release -a", r"Description:\t(.*)")


def get_os(run_lambda: Run) -> str | None:
    """The system, its version and the machine's architecture."""
    machine = platform.machine()
    if sys.platform == "darwin":
        return f"macOS {get_mac_version(run_lambda)} ({machine})"
    if sys.platform == "win32":
        return get_windows_version(run_lambda)
    name = check_release_file(run_lambda) or get_lsb_version(run_lambda) or platform.system()
    return f"{name} ({machine})"


def get_python_platform() -> str:
    """The system as Python calls it."""
    return platform.platform()


def get_libc_version() -> str:
    """The C library and its version."""
    return "-".join(platform.libc_ver()) if get_platform() == "linux" else "N/A"


def get_cpu_info(run_lambda: Run) -> str:
    """The description of the processor by ``lscpu``, or by Python."""
    return run_and_read_all(run_lambda, "lscpu") or platform.processor()


_PATTERNS = ("torch", "numpy", "mypy", "flake8", "onnx", "pullback", "triton", "optree")


def get_pip_packages(run_lambda: Run, patterns: Any = None) -> tuple[str, str]:
    """The name of pip, and the installed packages whose names have one of some words in them."""
    from importlib.metadata import distributions

    wanted = _PATTERNS if patterns is None else tuple(patterns)
    named = {(one.metadata["Name"], one.version) for one in distributions()}
    lines = sorted(f"{n}=={v}" for n, v in named if n and any(word in n.lower() for word in wanted))
    return "pip3", "\n".join(lines)


def get_conda_packages(run_lambda: Run, patterns: Any = None) -> str | None:
    """The packages of conda whose lines have one of some words in them."""
    wanted = _PATTERNS if patterns is None else tuple(patterns)
    out = run_and_read_all(run_lambda, [os.environ.get("CONDA_EXE", "conda"), "list"])
    if out is None:
        return None
    lines = [line for line in out.splitlines() if not line.startswith("#")]
    return "\n".join(line for line in lines if any(word in line for word in wanted))


def get_env_info() -> SystemEnv:
    """All facts about the environment."""
    from .. import cuda, version

    pip, packages = get_pip_packages(run)
    return SystemEnv(
        torch_version=version.__version__,
        is_debug_build=str(version.debug),
        cuda_compiled_version=version.cuda or "None",
        gcc_version=get_gcc_version(run),
        clang_version=get_clang_version(run),
        cmake_version=get_cmake_version(run),
        os=get_os(run),
        libc_version=get_libc_version(),
        python_version=f"{sys.version.splitlines()[0]} ({_BITS}-bit runtime)",
        python_platform=get_python_platform(),
        is_cuda_available=str(cuda.is_available()),
        cuda_runtime_version=get_running_cuda_version(run),
        cuda_module_loading=get_cuda_module_loading_config(),
        nvidia_driver_version=get_nvidia_driver_version(run),
        nvidia_gpu_models=get_gpu_info(run),
        cudnn_version=get_cudnn_version(run),
        is_xpu_available="False",
        pip_version=pip,
        pip_packages=packages,
        conda_packages=get_conda_packages(run),
        hip_compiled_version=version.hip or "N/A",
        hip_runtime_version="N/A",
        miopen_runtime_version="N/A",
        caching_allocator_config=get_cachingallocator_config(),
        is_xnnpack_available=is_xnnpack_available(),
        cpu_info=get_cpu_info(run),
        rocm_compiled_version="N/A",
    )


def pretty_str(envinfo: SystemEnv) -> str:
    """The facts as lines of text."""
    lines = []
    for name, value in envinfo._asdict().items():
        words = name.replace("_", " ").capitalize()
        text = "Could not collect" if value is None else str(value)
        lines.append(f"{words}:\n{text}\n" if "\n" in text else f"{words}: {text}")
    return "\n".join(lines)


def get_pretty_env_info() -> str:
    """All facts about the environment as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Prints it."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
