# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack explain MODULE:EXPR``."""

import importlib
import json
import os
import runpy
import sys
import traceback
from argparse import Namespace
from contextlib import redirect_stdout
from pathlib import Path
from types import FunctionType
from typing import Any

from usm_dlpack import ConversionError, explain
from usm_dlpack._cli import _doctor
from usm_dlpack._errors import error_text, type_name
from usm_dlpack._terminal import say_error, wants_colour

_MAIN = '`if __name__ == "__main__":`'


class _UnusableError(Exception):
    """An argument that gives no object; the text is the error sentence."""


def _load(name: str) -> dict[str, Any]:
    """Return the names that a module or a file defines."""
    sys.argv = [name]
    if not name.endswith(".py") and os.sep not in name and not Path(name).is_file():
        return vars(importlib.import_module(name))
    if not Path(name).is_file():
        raise _UnusableError(f"target: expected a file, found none at {name!a}; correct the path")
    sys.path.insert(0, str(Path(name).parent.resolve()))
    return runpy.run_path(name, run_name=Path(name).stem)


def _line_of(module: str, error: BaseException) -> int | None:
    """Return the line of a module or a file that raised an error."""
    names = (module, Path(module).stem)
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        # The expression has the globals of the module.
        if frame.f_globals.get("__name__") in names and frame.f_code.co_filename != "<string>"
    ]
    return lines[-1] if lines else None


def _refused(
    expected: str, found: str, module: str, error: BaseException, also: str = ""
) -> _UnusableError:
    text = error_text(error) if isinstance(error, Exception) else ""
    said = f"{type_name(error)}: {text}" if text else type_name(error)
    if not isinstance(error, ConversionError):  # which says what to do
        said += "; correct it, or run `python -m usm_dlpack doctor` if a device is missing"
    said += also
    if isinstance(error, ConversionError):
        said += f"\n{error.code}: {error.page}"
    line = _line_of(module, error)
    if line is None:
        return _UnusableError(f"target: expected {expected}, found {found}, which raises {said}")
    return _UnusableError(f"{module}, line {line}: {said}")


def _block_left_out(names: dict[str, Any], error: BaseException) -> str:
    """Return the remedy if a name may be missing because a block of the file did not run."""
    file = names.get("__file__")
    if not isinstance(error, NameError) or not file or not str(file).endswith(".py"):
        return ""
    has_block = "__main__" in Path(file).read_text(errors="replace")
    return f", or move it out of the block {_MAIN}, which does not run here" if has_block else ""


def find_object(target: str) -> Any:
    module, colon, expression = target.partition(":")
    if not colon or not module or not expression.strip():
        raise _UnusableError(
            f"target: expected MODULE:EXPR, found {target!a}; "
            "name a module or a .py file, and an expression in it"
        )
    try:
        names = _load(module)
    except _UnusableError:
        raise
    except (Exception, SystemExit) as error:
        also = f", or put what follows the array under {_MAIN}"
        raise _refused("a module that can be imported", module, module, error, also) from error
    try:
        found = eval(expression, dict(names))
    except (Exception, SystemExit) as error:
        shown, also = ascii(expression)[1:-1], _block_left_out(names, error)
        raise _refused("an expression with a value", shown, module, error, also) from error
    if isinstance(found, FunctionType):
        raise _UnusableError(f"target: expected an array, found a function; call it: {target}()")
    return found


def show(options: Namespace) -> int:
    try:
        # What the user's code prints must not mix with the explanation.
        with redirect_stdout(sys.stderr):
            explanation = explain(find_object(options.target), direction=options.direction)
    except _UnusableError as unusable:
        say_error(unusable)
        return 2
    if refusal := _doctor.refusal_of_two_majors():  # they may number the devices differently
        say_error(refusal)
    if options.json:
        print(json.dumps(explanation.to_dict(), indent=2))
    else:
        colour = wants_colour(sys.stdout, options.color)
        print(explanation.to_text(every_step=options.all, colour=colour))
    return 0 if explanation.error is None else 1
