# SPDX-License-Identifier: Apache-2.0
"""What holds of every view: of any layout, rank, dtype, USM kind, empty or not, read-only or not.

Expected values come from NumPy's own stride arithmetic over the bits of the same memory, in which
elements of every dtype are alike: ``width`` neighbouring bits.
"""

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from capsules import (
    FLOAT8,
    IS_COPIED,
    IS_SUBBYTE_TYPE_PADDED,
    READ_ONLY,
    ForeignArray,
    ForeignTensor,
    OldArray,
    compact_strides,
    content_of,
    integers,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_sources import KINDS, UNPOOLED, TypedArray, address_of
from refusals import refused
from usm_dlpack import from_dlpack, to_dlpack_tensor, validate

SIZE = UNPOOLED - 48  # bytes of each allocation; its end, and what is before it, are no USM
# What to_dlpack_tensor is asked for, and the (code, bits, lanes) that this is.
DTYPES: list[tuple[Any, tuple[int, int, int]]] = [
    *((f"i{size}", (0, 8 * size, 1)) for size in (1, 2, 4, 8)),
    *((f"u{size}", (1, 8 * size, 1)) for size in (1, 2, 4, 8)),
    *((f"f{size}", (2, 8 * size, 1)) for size in (2, 4, 8)),
    *((f"c{size}", (5, 8 * size, 1)) for size in (8, 16)),
    ("?", (6, 8, 1)),
    ("bfloat16", (4, 16, 1)),
    *((name, (code, 8, 1)) for name, code in FLOAT8.items()),
    ("float6_e2m3fn", (15, 6, 1)),
    ("float6_e3m2fn", (16, 6, 1)),
    ("float4_e2m1fn", (17, 4, 1)),
    *(
        ((code, bits, lanes), (code, bits, lanes))
        for lanes, kinds in {
            1: [(0, 4), (1, 1), (1, 2), (0, 128), (1, 128), (2, 128), (5, 32)],
            2: [(2, 16), (17, 4)],
            3: [(0, 8), (1, 2)],
            4: [(2, 32)],
        }.items()
        for code, bits in kinds
    ),
]
# Elements of these have a byte each.
PADDED: list[tuple[Any, tuple[int, int, int]]] = [
    (ml_dtypes.int2, (0, 2, 1)),
    (ml_dtypes.uint4, (1, 4, 1)),
    (ml_dtypes.float4_e2m1fn, (17, 4, 1)),
]
LAYOUTS = ["null", "permuted", "negative", "gaps", "broadcast", "one"]


def width_of(dtype: Any) -> int:
    """Return the bits of an element of ``DTYPES`` or ``PADDED``."""
    _, bits, lanes = dtype[1]
    return 8 if dtype in PADDED else bits * lanes


@dataclass(frozen=True)
class View:
    """Shape and strides in elements; null strides are None. ``layout`` says how they were made."""

    layout: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None

    @property
    def compact(self) -> tuple[int, ...]:
        """What null strides stand for."""
        return compact_strides([max(1, extent) for extent in self.shape])

    @property
    def steps(self) -> tuple[int, ...]:
        """The strides, null ones written out."""
        return self.compact if self.strides is None else self.strides

    @property
    def is_c(self) -> bool:
        """Whether the elements are compact in C order."""
        wanted = zip(self.shape, self.steps, self.compact, strict=True)
        return 0 in self.shape or all(n == 1 or step == own for n, step, own in wanted)

    def is_kept(self, width: int) -> bool:
        """Whether a copy has these strides: no negative ones, no gaps, no shared elements."""
        low, end = self.span(width)
        places = self.indices().ravel()
        dense = end - low == -(-places.size * width // 8) and len(np.unique(places)) == places.size
        return min(self.steps, default=0) >= 0 and (dense or 0 in self.shape)

    def indices(self) -> Any:
        """Return where each element is, in elements from the first, as NumPy counts it."""
        steps = [s if n > 1 else 0 for n, s in zip(self.shape, self.steps, strict=True)]
        grids = np.indices(self.shape, dtype=np.int64)
        return np.tensordot(np.array(steps, np.int64), grids, axes=1)

    def span(self, width: int) -> tuple[int, int]:
        """Return the first byte and the end of the view, relative to its first element."""
        bits = self.indices().ravel() * width
        low, end = (bits.min(), bits.max() + width) if bits.size else (0, 0)
        return int(low) // 8, -(-int(end) // 8)


def strides_of(draw: Any, layout: str, shape: Sequence[int]) -> tuple[int, ...] | None:
    if layout == "null":
        return None
    strides, step = [0] * len(shape), 1
    for r in draw(st.permutations(range(len(shape)))):
        step += draw(st.integers(0, 2)) if layout == "gaps" else 0
        strides[r] = step
        step *= max(1, shape[r])
    factors = st.sampled_from({"negative": [-1, 1], "broadcast": [0, 1]}.get(layout, [1]))
    strides = [draw(factors) * stride for stride in strides]
    if layout == "one":  # the strides of an extent of 1 are free
        free = st.integers(-(2**63), 2**63 - 1)
        strides = [draw(free) if n == 1 else s for n, s in zip(shape, strides, strict=True)]
    return tuple(strides)


@st.composite
def views(draw: Any) -> View:
    """Draw a view of at most a few hundred elements, of any rank up to 8."""
    rank, shape = draw(st.integers(0, 8)), []
    for _ in range(rank):
        most = 4 if math.prod(max(1, extent) for extent in shape) < 64 else 1
        shape.append(draw(st.sampled_from([0, 1, 1, *range(1, most + 1), *range(1, most + 1)])))
    if draw(st.booleans()):
        shape = [max(1, extent) for extent in shape]
    layout = draw(st.sampled_from(LAYOUTS))
    return View(layout, tuple(shape), strides_of(draw, layout, shape))


any_views = views() | st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), max_size=4).map(
    lambda dims: View("any", tuple(n for n, _ in dims), tuple(s for _, s in dims))
)


@pytest.fixture(scope="module")
def sources(queue: Any) -> Any:
    """Return memory of each USM kind, and the bytes that are in it."""
    values = np.random.default_rng(1).integers(0, 256, SIZE, dtype=np.uint8)
    made = {kind: of(SIZE, queue=queue) for kind, of in KINDS.items()}
    for owner in made.values():
        owner.copy_from_host(values)
    return made, values


def elements(values: Any, first: int, view: View, width: int) -> Any:
    """Return the bits of each element; ``first`` is in bytes."""
    low, end = view.span(width)
    bits = np.unpackbits(values[first + low : first + end], bitorder="little")
    return bits[view.indices()[..., None] * width - 8 * low + np.arange(width)]


def host_copy(tensor: Any, width: int) -> Any:
    """Return the bits of each element of the copy that a tensor exports for the host."""
    capsule = tensor.__dlpack__(max_version=(1, 3), dl_device=(1, 0))
    content = content_of(capsule)
    described = content.dl_tensor
    # dpctl, dpnp and warp ignore byte_offset of host memory; TensorFlow refuses it.
    assert (described.device_type, described.device_id, described.byte_offset) == (1, 0, 0)
    assert content.flags & IS_COPIED or tensor.usm_type != "device"
    view = View(
        "copy",
        integers(described.shape, described.ndim),
        integers(described.strides, described.ndim),
    )
    low, end = view.span(width)
    values = np.frombuffer(ctypes.string_at((described.data or 0) + low, end - low), np.uint8)
    return elements(values, -low, view, width)


@settings(max_examples=100)
@given(
    view=views(),
    dtype=st.sampled_from(DTYPES + PADDED),
    kind=st.sampled_from(list(KINDS)),
    readonly=st.booleans(),
    data=st.data(),
)
def test_a_view_comes_back_as_the_same_bits_in_the_same_place(
    sources, view, dtype, kind, readonly, data
):
    made, values = sources
    width = width_of(dtype)
    low, end = view.span(width)
    first = 16 * data.draw(st.integers(-(low // 16), (SIZE - end) // 16), "first")
    owner = TypedArray(made[kind], data=(address_of(made[kind]), readonly))
    tensor = to_dlpack_tensor(
        owner, shape=view.shape, strides=view.strides, dtype=dtype[0], byte_offset=first
    )
    versioned = tensor.__dlpack__(max_version=(1, 3))
    content = content_of(versioned)
    described = content.dl_tensor
    padding = IS_SUBBYTE_TYPE_PADDED if dtype in PADDED else 0
    assert content.flags == (READ_ONLY if readonly else 0) | padding
    assert described.data + described.byte_offset == address_of(made[kind]) + first
    assert (described.code, described.bits, described.lanes) == dtype[1]
    assert integers(described.shape, described.ndim) == view.shape
    assert integers(described.strides, described.ndim) == view.steps
    came_back = [from_dlpack(OldArray(versioned)), from_dlpack(tensor)]
    if content.flags:
        with refused("read_only" if readonly else "dtype_unsupported", "flags"):
            tensor.__dlpack__()
    else:
        came_back.append(from_dlpack(OldArray(tensor.__dlpack__())))
    expected = elements(values, first, view, width)
    for back in (tensor, *came_back):
        assert (back.shape, back.strides) == (view.shape, view.steps)
        assert (back.ndim, back.size) == (len(view.shape), math.prod(view.shape))
        assert back.nbytes == -(-back.size * width // 8)
        assert back.data == address_of(made[kind]) + first
        assert back.usm_type == ("unknown" if back.size == 0 and first == SIZE else kind)
        assert (back.readonly, back.device) == (readonly, (14, 0))
        assert back.dtype == tensor.dtype
        for x in (back, OldArray(back.__dlpack__(max_version=(1, 3)))):
            if view.is_c:
                in_order = from_dlpack(x, order="C", copy=False)
                assert (in_order.data, in_order.strides) == (back.data, view.compact)
            elif width % 8 == 0:
                with refused("copy_needed", "strides", expected="C order", remedy="copy=None"):
                    from_dlpack(x, order="C", copy=False)
            else:  # no copy can be made
                with refused("dtype_unsupported", "dtype", found="packed"):
                    from_dlpack(x, order="C", copy=False)
    if kind != "device" or width % 8 == 0 or view.is_c or view.is_kept(width):
        assert np.array_equal(host_copy(came_back[0], width), expected)
    else:
        with refused("dtype_unsupported", "dtype", expected="whole bytes", found="packed"):
            host_copy(came_back[0], width)
    if kind != "device" and hasattr(tensor.host_view(), "__array_interface__"):
        for seen in (np.asarray(tensor.host_view()), np.from_dlpack(tensor.host_view())):
            assert (seen.dtype, seen.shape) == (tensor.dtype, view.shape)
            assert seen.tobytes() == tensor.numpy().tobytes()
            assert seen.flags.writeable is not readonly


def foreign_view(view: View, data: int, dtype: Any, legacy: bool, offset: int) -> ForeignTensor:
    """Return a tensor of another library, part of whose address is ``byte_offset``."""
    legacy = legacy and dtype not in PADDED  # which it cannot say
    foreign = ForeignTensor(
        data - offset, shape=view.shape, strides=view.strides, dtype=dtype[1], legacy=legacy
    )
    foreign.tensor.byte_offset = offset
    if dtype in PADDED:
        foreign.managed.flags = IS_SUBBYTE_TYPE_PADDED
    if view.strides is None:
        foreign.tensor.strides = None
    if not view.shape:
        foreign.tensor.shape = None
    return foreign


@settings(max_examples=100)
@given(
    view=any_views,
    dtype=st.sampled_from(DTYPES + PADDED),
    start=st.sampled_from([*KINDS, "malloc"]),
    kind=st.sampled_from(list(KINDS)),
    order=st.sampled_from([None, "C"]),
    data=st.data(),
)
def test_a_copy_has_the_same_bits_in_an_element_for_each_index(
    sources, view, dtype, start, kind, order, data
):
    made, values = sources
    width = width_of(dtype)
    low, end = view.span(width)
    first = 16 * data.draw(st.integers(-(low // 16), (SIZE - end) // 16), "first")
    address = values.ctypes.data if start == "malloc" else address_of(made[start])
    foreign = foreign_view(view, address + first, dtype, False, first % 48)
    foreign.tensor.device_type = 1 if start == "malloc" else 14
    array = ForeignArray(foreign, (foreign.tensor.device_type, 0))
    kept = order is None and view.is_kept(width)
    if width % 8 != 0 and not view.is_c and not kept:
        with refused("dtype_unsupported", "dtype", expected="whole bytes", found="packed"):
            from_dlpack(array, device=(14, 0), copy=True, usm_type=kind, order=order)
        return
    copied = from_dlpack(array, device=(14, 0), copy=True, usm_type=kind, order=order)
    expected = elements(values, first, view, width)
    assert (copied.shape, copied.usm_type) == (view.shape, kind)
    assert copied.byte_extent == copied.nbytes == -(-math.prod(view.shape) * width // 8)
    assert copied.strides == (view.steps if kept else view.compact)
    assert np.array_equal(host_copy(copied, width), expected)
    if not isinstance(copied.dtype, str):
        assert copied.numpy().shape == view.shape
        bits = np.unpackbits(np.frombuffer(copied.numpy().tobytes(), "u1"), bitorder="little")
        assert np.array_equal(bits, expected.ravel())


@settings(max_examples=80)
@given(
    view=views().filter(lambda view: view.layout != "broadcast"),
    dtype=st.sampled_from([dtype for dtype in DTYPES + PADDED if width_of(dtype) % 8 == 0]),
    kind=st.sampled_from(list(KINDS)),
    layout=st.sampled_from(LAYOUTS),
    place=st.sampled_from(["memory of the host", *KINDS]),
    data=st.data(),
)
def test_copy_from_writes_each_element_and_nothing_else(
    sources, view, dtype, kind, layout, place, data
):
    owner, values = sources[0][kind], sources[1]
    source = View(layout, view.shape, strides_of(data.draw, layout, view.shape))
    width = width_of(dtype)
    most = data.draw(st.sampled_from([1, SIZE]))  # with 1, views of the same memory overlap
    first, start = (
        16 * (data.draw(st.integers(0, min(most, (SIZE - end) // 16 + low // 16))) - low // 16)
        for low, end in (view.span(width), source.span(width))
    )
    tensor = to_dlpack_tensor(
        owner, shape=view.shape, strides=view.strides, dtype=dtype[0], byte_offset=first
    )
    on_host = place not in KINDS
    begin = values.ctypes.data if on_host else address_of(sources[0][place])
    foreign = foreign_view(source, begin + start, dtype, False, 0)
    foreign.tensor.device_type = 1 if on_host else 14
    tensor.copy_from(ForeignArray(foreign, (1, 0) if on_host else (14, 0)))
    found = to_dlpack_tensor(owner).numpy()
    owner.copy_from_host(values)
    low, end = view.span(width)
    bits = np.unpackbits(values[first + low : first + end], bitorder="little")
    places = view.indices()[..., None] * width - 8 * low + np.arange(width)
    bits[places] = elements(values, start, source, width)
    expected = values.copy()
    expected[first + low : first + end] = np.packbits(bits, bitorder="little")
    assert np.array_equal(found, expected)


@settings(max_examples=200)
@given(
    view=any_views.filter(lambda view: 0 not in view.shape),
    dtype=st.sampled_from(DTYPES + PADDED),
    kind=st.sampled_from(list(KINDS)),
    legacy=st.booleans(),
    offset=st.integers(0, 64),
    upwards=st.booleans(),
)
def test_a_view_is_proved_up_to_either_end_and_one_step_beyond_is_refused(
    sources, view, dtype, kind, legacy, offset, upwards
):
    code, bits, _ = dtype[1]
    scalar = bits // 2 if code == 5 else bits
    step = math.gcd(scalar, 128) // 8 or 1  # the alignment of the element
    low, end = view.span(width_of(dtype))
    base = address_of(sources[0][kind])
    last = base + (SIZE - end) // step * step if upwards else base - low // step * step
    capsule = foreign_view(view, last, dtype, legacy, offset).capsule()
    proof = validate(capsule)
    assert (proof.data, proof.nbytes) == (last, end - low)
    assert (proof.usm_type, proof.base, proof.size) == (kind, base, SIZE)
    assert proof.bounds in ("allocation", "block")
    taken = from_dlpack(OldArray(capsule))
    inside = content_of(taken.__dlpack__(max_version=(1, 3))).dl_tensor
    assert inside.data + inside.byte_offset == taken.data == last
    assert (taken.shape, taken.strides) == (view.shape, view.steps)
    assert (taken.usm_type, taken.byte_extent) == (kind, proof.nbytes)
    places = view.indices().ravel()
    shared = len(np.unique(places)) < len(places)
    if shared or view.layout != "any":  # there, what is not proved may still be so
        assert proof.overlapping is shared
    beyond = last + (step if upwards else -step)
    inside = base <= beyond < base + SIZE
    rule = ("out_of_bounds", "shape") if inside else ("pointer_unknown", "data")
    capsule = foreign_view(view, beyond, dtype, legacy, offset).capsule()
    for act in (validate, lambda capsule: from_dlpack(OldArray(capsule))):
        with refused(*rule):
            act(capsule)
