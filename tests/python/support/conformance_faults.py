# SPDX-License-Identifier: Apache-2.0
"""Adapters of a library with one fault each, such as real libraries have.

Each is named for its fault, and says the cases that find it.
"""

from collections.abc import Callable
from typing import Any

import dpctl
import usm_dlpack
from conformance_adapters import Ours, memory_of
from usm_dlpack_conformance.dlpack import (
    IS_COPIED,
    READ_ONLY,
    USED,
    Foreign,
    OldProducer,
    Producer,
    call_deleter,
    content_of,
    integers,
    name_of,
)


class Array:
    """An array of a library: a tensor, which it exports with a fault."""

    def __init__(self, tensor: Any, adapter: "Library") -> None:
        self.tensor = tensor
        self._adapter = adapter

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._adapter.export(self.tensor, **keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._adapter.device(self.tensor)


class Library(Ours):
    """A library without a fault."""

    found_by: frozenset[str] = frozenset()

    def make(self, *arguments: Any, **keywords: Any) -> Any:
        return Array(super().make(*arguments, **keywords), self)

    def make_readonly(self, array: Any) -> Any:
        return Array(super().make_readonly(array.tensor), self)

    def write_pending(self, array: Any, data: bytes) -> Callable[[], None]:
        return Ours().write_pending(array.tensor, data)

    def consume(self, x: Any, **keywords: Any) -> Any:
        return Array(self.take(x, **keywords), self)

    def to_bytes(self, array: Any) -> bytes:
        return super().to_bytes(array.tensor)

    def address(self, array: Any) -> int:
        return super().address(array.tensor)

    def is_readonly(self, array: Any) -> bool:
        return super().is_readonly(array.tensor)

    def export(self, tensor: Any, **keywords: Any) -> Any:
        return tensor.__dlpack__(**keywords)

    def device(self, tensor: Any) -> tuple[int, int]:
        return tensor.__dlpack_device__()  # type: ignore[no-any-return]

    def take(self, x: Any, **keywords: Any) -> Any:
        return super().consume(x, **keywords)


FAULTS: dict[str, type[Library]] = {}


def fault(*found_by: str) -> Callable[[type[Library]], type[Library]]:
    def register(library: type[Library]) -> type[Library]:
        library.found_by = frozenset(found_by)
        FAULTS[library.__name__] = library
        return library

    return register


def spoiling(*found_by: str) -> Callable[[Callable[[Any, Any], None]], type[Library]]:
    """Make an adapter of a function that spoils each managed tensor which goes out."""

    def register(spoil: Callable[[Any, Any], None]) -> type[Library]:
        class Spoiling(Library):
            def export(self, tensor: Any, **keywords: Any) -> Any:
                capsule = super().export(tensor, **keywords)
                content = content_of(capsule)
                spoil(content, tensor)
                del content.capsule
                return capsule

        Spoiling.__name__ = spoil.__name__
        return fault(*found_by)(Spoiling)

    return register


# What stands in the struct.


@spoiling("device.agrees", "device.position", "keywords.host", "order.import")
def names_the_next_device(content: Any, tensor: Any) -> None:
    content.dl_tensor.device_id += 1


@spoiling("device.kinds")
def calls_host_usm_memory_of_the_host(content: Any, tensor: Any) -> None:
    if tensor.usm_type == "host":
        content.dl_tensor.device_type = 1


@spoiling(
    *(f"tensor.{name}" for name in ("strides", "strided", "transposed", "reversed", "broadcast")),
    *("keywords.host-views", "order.import"),
)
def gives_strides_in_bytes(content: Any, tensor: Any) -> None:
    for r in range(content.dl_tensor.ndim):
        content.dl_tensor.strides[r] *= content.dl_tensor.bits // 8


@spoiling(
    *(f"tensor.{name}" for name in ("strides", "strided", "transposed", "reversed", "broadcast")),
    "keywords.host-views",
)
def leaves_strides_null(content: Any, tensor: Any) -> None:
    content.dl_tensor.strides = None


@spoiling("tensor.reversed")
def begins_a_reversed_view_at_its_lowest_element(content: Any, tensor: Any) -> None:
    inside = content.dl_tensor
    shape, strides = (integers(part, inside.ndim) for part in (inside.shape, inside.strides))
    for extent, stride in zip(shape, strides, strict=True):
        if stride < 0:
            inside.data += (extent - 1) * stride * inside.bits // 8


@spoiling("tensor.dtype")
def counts_the_bits_of_one_part_of_a_complex_number(content: Any, tensor: Any) -> None:
    if content.dl_tensor.code == 5:
        content.dl_tensor.bits //= 2


@spoiling("tensor.dtype")
def calls_a_bool_an_unsigned_integer(content: Any, tensor: Any) -> None:
    if content.dl_tensor.code == 6:
        content.dl_tensor.code = 1


@spoiling("tensor.lanes", "refuse.lanes", "order.import")
def gives_no_lanes(content: Any, tensor: Any) -> None:
    content.dl_tensor.lanes = 0


@spoiling("tensor.rank-0")
def calls_a_scalar_a_vector(content: Any, tensor: Any) -> None:
    content.dl_tensor.ndim = max(1, content.dl_tensor.ndim)


@spoiling("capsule.newer-minor", "capsule.newer-major", "order.import")
def says_major_version_2(content: Any, tensor: Any) -> None:
    if hasattr(content, "major"):
        content.major = 2


@spoiling("capsule.flags", "order.import")
def sets_a_reserved_flag(content: Any, tensor: Any) -> None:
    if hasattr(content, "flags"):
        content.flags |= 1 << 40


@spoiling("capsule.read-only")
def loses_read_only(content: Any, tensor: Any) -> None:
    if hasattr(content, "flags"):
        content.flags &= ~READ_ONLY


@spoiling("capsule.writable")
def calls_everything_read_only(content: Any, tensor: Any) -> None:
    if hasattr(content, "flags"):
        content.flags |= READ_ONLY


@spoiling("keywords.host-flag", "keywords.copy")
def calls_a_copy_the_memory_itself(content: Any, tensor: Any) -> None:
    if hasattr(content, "flags"):
        content.flags &= ~IS_COPIED


# What comes for which keywords.


@fault("capsule.legacy", "capsule.old-version", "capsule.read-only-legacy")
class GivesOnlyVersionedCapsules(Library):
    def export(self, tensor: Any, **keywords: Any) -> Any:
        return super().export(tensor, **{**keywords, "max_version": (1, 1)})


@fault(
    *("capsule.fresh", "owner.abandoned", "owner.abandoned-legacy", "owner.deleter"),
    "release.passed-on",
)
class GivesOneCapsuleAgainAndAgain(Library):
    def export(self, tensor: Any, **keywords: Any) -> Any:
        known = self.__dict__.setdefault("known", {})
        key = (id(tensor), *map(str, keywords.items()))
        if key not in known or name_of(known[key][1]) not in USED:
            known[key] = tensor, super().export(tensor, **keywords)
        return known[key][1]


@fault("keywords.copy", "keywords.copy-values")
class IgnoresCopy(Library):
    def export(self, tensor: Any, copy: Any = None, **keywords: Any) -> Any:
        return super().export(tensor, copy=False if copy is False else None, **keywords)


@fault(
    *("keywords.host", "keywords.other-device", "keywords.host-no-copy", "keywords.host-views"),
    *("keywords.copy-values", "order.copy", "order.host"),
)
class IgnoresTheDevice(Library):
    def export(self, tensor: Any, dl_device: Any = None, **keywords: Any) -> Any:
        return super().export(tensor, **keywords)


@fault("stream.minus-one", "order.minus-one")
class RefusesMinusOne(Library):
    def export(self, tensor: Any, stream: Any = None, **keywords: Any) -> Any:
        if stream == -1:
            raise ValueError("stream: expected a queue")
        return super().export(tensor, stream=stream, **keywords)


@fault("stream.queue", "order.queue")
class RefusesQueues(Library):
    def export(self, tensor: Any, stream: Any = None, **keywords: Any) -> Any:
        if isinstance(stream, dpctl.SyclQueue):
            raise BufferError("stream: expected an int")
        return super().export(tensor, stream=stream, **keywords)


@fault("stream.nonsense", "order.queue", "order.none")
class IgnoresTheStream(Library):
    def export(self, tensor: Any, stream: Any = None, **keywords: Any) -> Any:
        host = "dl_device" in keywords or keywords.get("copy")
        return super().export(tensor, stream=None if host else -1, **keywords)


@fault("order.minus-one")
class WaitsThoughMinusOneForbidsIt(Library):
    def export(self, tensor: Any, stream: Any = None, **keywords: Any) -> Any:
        return super().export(tensor, stream=None if stream == -1 else stream, **keywords)


@fault("order.none", "order.host")
class WaitsForNobody(Library):
    def export(self, tensor: Any, stream: Any = None, **keywords: Any) -> Any:
        if keywords.get("dl_device") == (1, 0) and not keywords.get("copy"):
            if tensor.usm_type != "device":
                return Foreign(tensor.data, tensor.shape, device=(1, 0), owner=tensor).capsule()
            return super().export(tensor, **keywords)
        if stream is None and not keywords.get("copy"):
            stream = -1
        return super().export(tensor, stream=stream, **keywords)


# What a consumer takes.


class Changing(Library):
    """A consumer to which each managed tensor looks other than it is."""

    def change(self, content: Any) -> None:
        raise NotImplementedError

    def take(self, x: Any, **keywords: Any) -> Any:
        if not isinstance(x, Producer):
            return super().take(x, **keywords)
        adapter, export = self, x.__dlpack__

        class Changed:
            __dlpack_device__ = staticmethod(x.__dlpack_device__)

            def __dlpack__(self, **keywords: Any) -> Any:
                capsule = export(**keywords)
                if name_of(capsule) in USED:
                    content = content_of(capsule)
                    adapter.change(content)
                    del content.capsule
                return capsule

        return super().take(Changed(), **keywords)


def changing(*found_by: str) -> Callable[[Callable[[Any], None]], type[Library]]:
    """Make an adapter of a function that changes each managed tensor which comes in."""

    def register(change: Callable[[Any], None]) -> type[Library]:
        members = {"change": lambda self, content: change(content)}
        return fault(*found_by)(type(change.__name__, (Changing,), members))

    return register


@changing("take.byte-offset", "take.reversed", "refuse.misaligned")
def ignores_the_byte_offset(content: Any) -> None:
    content.dl_tensor.byte_offset = 0


@changing("take.read-only")
def forgets_read_only(content: Any) -> None:
    if hasattr(content, "flags"):
        content.flags = 0


@changing("refuse.major")
def takes_any_version(content: Any) -> None:
    if hasattr(content, "major") and content.major != 1:
        content.major, content.dl_tensor.ndim = 1, 2


@changing("refuse.device-id", "refuse.negative-device-id")
def takes_any_device_id(content: Any) -> None:
    content.dl_tensor.device_id = 0


@changing("refuse.negative-extent")
def takes_the_absolute_value_of_extents(content: Any) -> None:
    for r in range(min(content.dl_tensor.ndim, 2) if content.dl_tensor.shape else 0):
        content.dl_tensor.shape[r] = abs(content.dl_tensor.shape[r])


@fault("take.copy")
class SharesThoughACopyWasAskedFor(Library):
    def take(self, x: Any, copy: Any = None, **keywords: Any) -> Any:
        return super().take(x, **keywords)


@fault("take.old-producer")
class RefusesOldProducers(Library):
    def take(self, x: Any, **keywords: Any) -> Any:
        if isinstance(x, OldProducer):
            raise TypeError("__dlpack__: expected keywords")
        return super().take(x, **keywords)


@fault("take.max-version")
class NamesNoVersion(Library):
    def take(self, x: Any, **keywords: Any) -> Any:
        class Old:
            def __dlpack__(self) -> Any:
                return x.__dlpack__()

        return super().take(Old(), **keywords)


@fault(
    *("release.once", "release.passed-on", "release.threads", "release.struct", "release.copy"),
)
class NeverRunsTheDeleter(Library):
    def take(self, x: Any, **keywords: Any) -> Any:
        tensor = super().take(x, **keywords)
        self.__dict__.setdefault("kept", []).append(tensor)
        return tensor


@fault(
    *("release.once", "release.passed-on", "release.threads", "release.refused", "refuse.major"),
)
class RunsTheDeleterTwice(Library):
    def take(self, x: Any, **keywords: Any) -> Any:
        if isinstance(x, Producer):
            export = x.__dlpack__

            def twice(**keywords: Any) -> Any:
                capsule = export(**keywords)
                if name_of(capsule) in USED:
                    call_deleter(content_of(capsule))
                return capsule

            x.__dlpack__ = twice  # type: ignore[method-assign]
        return super().take(x, **keywords)


@fault("release.name", "release.once", "release.passed-on", "release.threads")
class DoesNotRenameTheCapsule(Library):
    def take(self, x: Any, **keywords: Any) -> Any:
        tensor = super().take(x, **keywords)
        if isinstance(x, Producer) and x.capsule is not None:
            x.capsule = x.foreign.capsule()
        return tensor


@fault("refuse.used")
class TakesUsedCapsules(Library):
    def take(self, x: Any, **keywords: Any) -> Any:
        try:
            return super().take(x, **keywords)
        except usm_dlpack.ConversionError as error:
            if "used_" in str(error.found):
                return usm_dlpack.empty(3)
            raise


@fault("refuse.producers-error")
class HidesTheErrorOfAProducer(Library):
    def take(self, x: Any, **keywords: Any) -> Any:
        try:
            return super().take(x, **keywords)
        except BufferError as error:
            raise RuntimeError("no array") from error


@fault("refuse.not-usm", "refuse.context")
class TakesEveryPointer(Library):
    def take(self, x: Any, **keywords: Any) -> Any:
        try:
            return super().take(x, **keywords)
        except usm_dlpack.ConversionError as error:
            if error.code == "pointer_unknown" and error.field == "data":
                return usm_dlpack.to_dlpack_tensor(memory_of(bytes(48), "device", None))
            raise
