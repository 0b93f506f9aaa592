# SPDX-License-Identifier: Apache-2.0
"""`explain`: the export or the import protocol of an array, step by step."""

import inspect
from collections.abc import Sequence
from typing import Any, Literal

from usm_dlpack._arguments import check_name, refuse
from usm_dlpack._arrays import SyclDevice, SyclQueue
from usm_dlpack._errors import type_name
from usm_dlpack._explain._explanation import Explanation
from usm_dlpack._explain._steps import Observed, is_capsule

__all__ = ["Explanation", "explain"]

Direction = Literal["import", "export"]


def _given(**keywords: Any) -> dict[str, Any]:
    return {name: value for name, value in keywords.items() if value is not None}


def _has(x: object, name: str) -> bool:
    """Return whether an object has an attribute, without running its code."""
    missing = object()
    return inspect.getattr_static(x, name, missing) is not missing


def _directions(
    x: object, direction: object, imports: dict[str, Any], exports: dict[str, Any]
) -> list[str]:
    check_name("direction", direction, ["import", "export"])
    given = {"import": imports, "export": exports}
    implied = {way for way, keywords in given.items() if keywords or way == direction}
    if len(implied) > 1:
        expected, found = "keywords of validate or of to_dlpack_tensor", [*imports, *exports]
        remedy = "explain one direction at a time"
        refuse(ValueError, "direction", expected, ", ".join(found), remedy)
    if implied:
        return list(implied)
    if is_capsule(x) or not _has(x, "__sycl_usm_array_interface__"):
        return ["import"]
    return ["export", "import"] if _has(x, "__dlpack__") else ["export"]


def explain(
    x: Any,
    /,
    *,
    direction: Direction | None = None,
    dtype: Any = None,
    usm_types: Sequence[str] | str | None = None,
    backends: Sequence[str] | str | None = None,
    ndim: int | None = None,
    readonly: bool | None = None,
    overlapping: bool | None = None,
    device: SyclDevice | tuple[int, int] | str | None = None,
    shape: Sequence[int] | int | None = None,
    strides: Sequence[int] | None = None,
    byte_offset: int | None = None,
    queue: SyclQueue | None = None,
) -> Explanation:
    """Say step by step whether an array can be exchanged, and where that stops.

    Calls `validate` or `to_dlpack_tensor`, which report their steps. Nothing is consumed or waited
    for: an array is asked for one capsule, and a capsule that is passed stays as it is.

    Parameters
    ----------
    x
        An array with ``__dlpack__`` or a DLPack capsule, whose import is explained; an object with
        ``__sycl_usm_array_interface__``, whose export is; or an array with both.
    direction
        "import" or "export"; None goes by the other keywords, else by what `x` has, maybe both.
    dtype
        As in `validate` or in `to_dlpack_tensor`, whichever is called.
    usm_types, backends, ndim, readonly, overlapping, device
        As in `validate`; None asks nothing.
    shape, strides, byte_offset, queue
        As in `to_dlpack_tensor`.

    Returns
    -------
    :
        The steps. Its ``error`` is the exception of the function that was called, or None.

    Raises
    ------
    ValueError
        If the keywords are not of one direction.

    Examples
    --------
    >>> import dpctl.memory, usm_dlpack
    >>> why = usm_dlpack.explain(dpctl.memory.MemoryUSMDevice(48), shape=(5, 4), dtype="f4")
    >>> why.walks[0].stop.title
    'every byte of the view lies within the bytes of the object'
    >>> print(why.error)  # doctest: +ELLIPSIS
    shape: expected a view within the 48 bytes of the object, found one of bytes 0 to 79; ...
    >>> usm_dlpack.explain(why, direction="both")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: direction: expected None, "import" or "export", found 'both'; ...
    """
    imports = _given(
        usm_types=usm_types, backends=backends, ndim=ndim, readonly=readonly,
        overlapping=overlapping, device=device,
    )  # fmt: skip
    exports = _given(shape=shape, strides=strides, byte_offset=byte_offset, queue=queue)
    chosen = _directions(x, direction, imports, exports)
    both = _given(dtype=dtype)
    given = {"import": imports | both, "export": exports | both}
    walks = [Observed(way, x, given[way]).walk() for way in chosen]
    return Explanation(f"an object of type {type_name(x)}", tuple(walks))
