"""The kind of this machine's processor: a short name, the same on all machines that have it.

`amd-zen4-avx512`: the vendor, the microarchitecture, the widest registers for arithmetic. A
processor that the tables do not know is called by the numbers that it gives itself.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Microarchitectures by family, the first and the last of their models.
AMD = [
    (0x17, 0x00, 0x2F, "zen"),
    (0x17, 0x30, 0xFF, "zen2"),
    (0x19, 0x00, 0x0F, "zen3"),
    (0x19, 0x10, 0x1F, "zen4"),
    (0x19, 0x20, 0x5F, "zen3"),
    (0x19, 0x60, 0xAF, "zen4"),
    (0x1A, 0x00, 0xFF, "zen5"),
]
# By model, all of family 6.
INTEL = {
    "haswell": (0x3C, 0x3F, 0x45, 0x46),
    "broadwell": (0x3D, 0x47, 0x4F, 0x56),
    "skylake": (0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6),
    "icelake": (0x7D, 0x7E),
    "icelake-server": (0x6A, 0x6C),
    "tigerlake": (0x8C, 0x8D),
    "alderlake": (0x97, 0x9A),
    "raptorlake": (0xB7, 0xBA, 0xBF),
    "sapphirerapids": (0x8F,),
    "emeraldrapids": (0xCF,),
    "graniterapids": (0xAD, 0xAE),
}
# Model 0x55 is three of them, by stepping.
SKYLAKE_SERVER = 0x55
ARM = {
    0xD08: "cortex-a72",
    0xD0B: "cortex-a76",
    0xD0C: "neoverse-n1",
    0xD40: "neoverse-v1",
    0xD49: "neoverse-n2",
    0xD4F: "neoverse-v2",
    0xD83: "neoverse-v3",
    0xD84: "neoverse-v3",
    0xD8E: "neoverse-n3",
}
VENDORS = {"AuthenticAMD": "amd", "GenuineIntel": "intel", "0x41": "arm", "0x61": "apple"}
# The features that tell kinds apart, widest first, and what the kernel calls them.
FEATURES = {
    "amx": "amx_tile",
    "avx512": "avx512f",
    "avx2": "avx2",
    "sve2": "sve2",
    "sve": "sve",
    "neon": "asimd",
}


@dataclass(frozen=True)
class Processor:
    """The kind, and what one calls such a machine in a sentence."""

    kind: str
    words: str


def this_processor() -> Processor:
    """The processor that this runs on."""
    text = description()
    lines = fields(text)
    model = lines.get("model name") or kind_of(text)
    system = f"{platform.system()} {platform.machine()}"
    return Processor(kind_of(text), f"{model}, {os.cpu_count()} processors, {system}")


def description() -> str:
    """What the system says of its first processor, as lines of `name : value`."""
    try:
        return Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    except OSError:
        return f"model name : {brand()}"


def brand() -> str:
    """The processor's name where there is no /proc: on macOS, else what Python knows."""
    try:
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return platform.processor() or platform.machine()


def fields(text: str) -> dict[str, str]:
    """The lines of a description by name."""
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def kind_of(text: str) -> str:
    """The kind that a description is of."""
    lines = fields(text)
    given = lines.get("vendor_id") or lines.get("CPU implementer") or ""
    features = (lines.get("flags") or lines.get("Features") or "").split()
    widest = next((name for name, flag in FEATURES.items() if flag in features), "")
    vendor = VENDORS.get(given, given)
    named: dict[str, Callable[[dict[str, str]], str]] = {
        "amd": amd_name,
        "intel": intel_name,
        "arm": arm_name,
    }
    name = named[vendor](lines) if vendor in named else ""
    return sanitized(vendor, name or numbers(lines), widest) or "unknown"


def number(lines: dict[str, str], name: str) -> int:
    """A number of the description, in either notation; -1 where it has none."""
    try:
        return int(lines.get(name, "-1"), 0)
    except ValueError:
        return -1


def amd_name(lines: dict[str, str]) -> str:
    """AMD's microarchitecture, or nothing."""
    family, model = number(lines, "cpu family"), number(lines, "model")
    for of_family, first, last, name in AMD:
        if family == of_family and first <= model <= last:
            return name
    return ""


def intel_name(lines: dict[str, str]) -> str:
    """Intel's microarchitecture, or nothing."""
    model, stepping = number(lines, "model"), number(lines, "stepping")
    if number(lines, "cpu family") != 6:
        return ""
    if model == SKYLAKE_SERVER:
        return (
            "skylake-server" if stepping < 5 else "cascadelake" if stepping < 10 else "cooperlake"
        )
    return next((name for name, models in INTEL.items() if model in models), "")


def arm_name(lines: dict[str, str]) -> str:
    """The name of a design of Arm's, or nothing."""
    return ARM.get(number(lines, "CPU part"), "")


def numbers(lines: dict[str, str]) -> str:
    """What an unknown processor calls itself: a part, a family and model, or a name."""
    if "CPU part" in lines:
        return f"part{lines['CPU part']}"
    if "cpu family" not in lines:
        return lines.get("model name", "")
    return f"family{number(lines, 'cpu family')}-model{number(lines, 'model')}"


def sanitized(*words: str) -> str:
    """Words as one that can be a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(word for word in words if word).lower()).strip("-")
