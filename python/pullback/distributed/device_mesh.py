"""Meshes of devices: of one device here, along as many dimensions as are asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _C, _placeholder
from . import _group

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """Processes in rows and columns: one process.

    Args:
        device_type: the devices' type.
        mesh: the processes' numbers, a tensor or lists of lists.
        mesh_dim_names: names for the dimensions.
        backend_override: what carries messages along each dimension, and its options; None for
            what the group of all processes has.
        preserve_rank_order: whether processes keep the order that ``mesh`` has, of which is one.

    Raises:
        TypeError: without ``mesh``.
        RuntimeError: for more than one process, and for another number of names.
        ValueError: for another number of backends.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        backend_override: Sequence[tuple[str | None, Any]] | None = None,
        preserve_rank_order: bool = False,
        _init_backend: bool = True,
    ) -> None:
        from .. import as_tensor

        if mesh is None:
            raise TypeError("DeviceMesh(): mesh must be given")
        self.device_type = device_type
        self.mesh: Tensor = as_tensor(mesh, dtype=_C.int64)
        if self.mesh.numel() != 1 or int(self.mesh) != 0:
            raise RuntimeError(
                f"a mesh of the processes {self.mesh.tolist()} is not available: "
                f"{_placeholder.why('pullback.distributed')}"
            )
        if mesh_dim_names is not None and len(mesh_dim_names) != self.mesh.ndim:
            raise RuntimeError(
                f"mesh_dim_names must have a name for each dimension: {mesh_dim_names} for "
                f"{self.mesh.ndim}"
            )
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        carriers = list(backend_override or [(None, None)] * self.ndim)
        if len(carriers) != self.ndim:
            raise ValueError(
                "backend_override should have the same length as the number of mesh dimensions, "
                f"but got {len(carriers)} and {self.ndim}"
            )
        self._groups: list[Any] = []
        if _init_backend:
            self._groups = [
                _group.new_group([0], backend=carrier, pg_options=options)
                for carrier, options in carriers
            ]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many processes there are along each dimension: 1."""
        return tuple(self.mesh.shape)

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return int(self.mesh.ndim)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many processes there are, along a dimension or in all: 1."""
        return 1 if mesh_dim is None else int(self.mesh.shape[mesh_dim])

    def _dimension(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions, so that a dimension must "
                    "be given"
                )
            return 0
        if isinstance(mesh_dim, str):
            if mesh_dim not in (self.mesh_dim_names or ()):
                raise KeyError(f"Mesh dimension '{mesh_dim}' does not exist")
            return (self.mesh_dim_names or ()).index(mesh_dim)
        return range(self.ndim)[mesh_dim]

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The group along a dimension.

        Raises:
            RuntimeError: without a dimension, where there are several.
            KeyError: for a name that is none.
        """
        return self._groups[self._dimension(mesh_dim)]

    def get_all_groups(self) -> list[Any]:
        """The groups along all dimensions."""
        return list(self._groups)

    def get_rank(self) -> int:
        """The number of this process: 0."""
        return 0

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The number of this process along a dimension: 0.

        Raises:
            RuntimeError: without a dimension, where there are several.
        """
        self._dimension(mesh_dim)
        return 0

    def get_coordinate(self) -> tuple[int, ...]:
        """The numbers of this process along all dimensions."""
        return (0,) * self.ndim

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The mesh of some dimensions only."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        mesh = self.mesh.reshape([1] * len(names))
        groups = [self.get_group(name) for name in names]
        made = DeviceMesh(self.device_type, mesh, mesh_dim_names=names, _init_backend=False)
        made._groups = groups
        return made

    def __enter__(self) -> DeviceMesh:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.device_type, self.shape, self.mesh_dim_names

    def __repr__(self) -> str:
        names = "" if self.mesh_dim_names is None else f", mesh_dim_names={self.mesh_dim_names}"
        return f"DeviceMesh({self.shape}, '{self.device_type}'{names})"


def _overrides(
    given: dict[Any, Any], ndim: int, names: Sequence[str] | None
) -> list[tuple[str | None, Any]]:
    """The backend and its options for each dimension."""
    left = dict(given)
    found: list[tuple[str | None, Any]] = []
    for number in range(ndim):
        name = names[number] if names and number < len(names) else None
        keys = [key for key in (number, name) if key is not None and key in left]
        if len(keys) > 1:
            raise RuntimeError(
                f"Found redundant dim index {number} and name {name} in backend_override"
            )
        value = left.pop(keys[0]) if keys else None
        if isinstance(value, tuple):
            carrier, options = value
        else:
            carrier, options = (value, None) if isinstance(value, str) else (None, value)
        found.append((carrier, options))
    if left:
        raise RuntimeError(
            f"Found invalid keys in backend_override: got {list(left)}, expected integers in "
            f"range [0, {ndim}) or one of {tuple(names or ())}"
        )
    return found


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: dict[int | str, Any] | None = None,
) -> DeviceMesh:
    """A mesh of all processes; makes the group of all of them if there is none.

    Args:
        device_type: the devices' type, without a number.
        mesh_shape: how many processes there are along each dimension: 1.
        mesh_dim_names: names for the dimensions.
        backend_override: what carries messages along dimensions, by number or name: a backend, its
            options, or both as a tuple.

    Raises:
        RuntimeError: for more than one process, names that stand twice, devices with numbers, and
            backends for dimensions that are not there.
    """
    from .. import zeros

    if not device_type.isalpha():
        raise RuntimeError(f"Device type with index is not supported but got {device_type}.")
    if mesh_dim_names is not None and len(set(mesh_dim_names)) != len(mesh_dim_names):
        raise RuntimeError("Each mesh_dim_name must be unique.")
    if math.prod(mesh_shape) != 1:
        raise RuntimeError(
            f"a mesh of {math.prod(mesh_shape)} processes is not available: "
            f"{_placeholder.why('pullback.distributed')}"
        )
    carriers = _overrides(backend_override or {}, len(mesh_shape), mesh_dim_names)
    if not _group.is_initialized():
        _group.start(None, None, None, -1, -1, None)
    mesh = zeros(mesh_shape, dtype=_C.int64)
    return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, backend_override=carriers)
