# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack explain MODULE:EXPR``."""

import importlib
import json
import os
import runpy
import sys
from argparse import Namespace
from contextlib import redirect_stdout
from pathlib import Path
from types import FunctionType
from typing import Any

from usm_dlpack import ConversionError, explain
from usm_dlpack._cli import _doctor
from usm_dlpack._errors import error_text, type_name
from usm_dlpack._terminal import say_error, wants_colour


class _UnusableError(Exception):
    """An argument that gives no object; the text is the error sentence."""


def _load(name: str) -> dict[str, Any]:
    """Return the names that a module or a .py file defines."""
    if not name.endswith(".py") and os.sep not in name:
        return vars(importlib.import_module(name))
    sys.path.insert(0, str(Path(name).parent.resolve()))
    return runpy.run_path(name, run_name=Path(name).stem)


def _refused(expected: str, found: str, error: BaseException, also: str = "") -> _UnusableError:
    text = error_text(error) if isinstance(error, Exception) else ""
    said = f"{type_name(error)}: {text}" if text else type_name(error)
    if not isinstance(error, ConversionError):  # which says what to do
        said += "; correct it, or run `python -m usm_dlpack doctor` if a device is missing"
    said += also
    return _UnusableError(f"target: expected {expected}, found {found}, which raises {said}")


def find_object(target: str) -> Any:
    module, colon, expression = target.partition(":")
    if not colon or not module or not expression.strip():
        raise _UnusableError(
            f"target: expected MODULE:EXPR, found {target!a}; "
            "name a module or a .py file, and an expression in it"
        )
    try:
        names = _load(module)
    except (Exception, SystemExit) as error:
        also = ', or put what follows the array under `if __name__ == "__main__":`'
        raise _refused("a module that can be imported", module, error, also) from error
    try:
        found = eval(expression, dict(names))
    except (Exception, SystemExit) as error:
        raise _refused("an expression with a value", ascii(expression)[1:-1], error) from error
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
