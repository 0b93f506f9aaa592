# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack explain MODULE:EXPR``."""

import ctypes
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from usm_dlpack import ConversionError, _core, explain
from usm_dlpack._errors import error_text, is_our_sentence, type_name
from usm_dlpack._terminal import Progress, say_error, wants_colour


class _UnusableError(Exception):
    """An argument that gives no object; the text is the error sentence."""


def _load(name: str) -> ModuleType:
    path = Path(name)
    if not name.endswith(".py") and os.sep not in name:
        if "" not in sys.path:
            sys.path.insert(0, "")
        return importlib.import_module(name)
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if specification is None or specification.loader is None:
        raise ModuleNotFoundError(f"{path} is no Python file", name=str(path))
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module  # like an import; needed by dataclasses and pickle
    sys.path.insert(0, str(path.parent.resolve()))
    arguments, sys.argv = sys.argv, [str(path)]
    try:
        specification.loader.exec_module(module)
    finally:
        sys.argv = arguments
    return module


def _is_absent(error: BaseException, module: str) -> bool:
    """Return whether the target itself is missing, and not something that it needs."""
    if isinstance(error, ModuleNotFoundError):
        name = str(error.name)
        return name in (module, str(Path(module))) or module.startswith(f"{name}.")
    path = getattr(error, "filename", None)
    if not isinstance(error, FileNotFoundError) or not isinstance(path, str):
        return False
    return Path(path).absolute() == Path(module).absolute()


def _remedy() -> str:
    """Return the remedy for an error that the target raises."""
    with suppress(Exception):  # the runtime cannot list devices
        if any(row["failure"] is None for row in _core.device_rows()):
            return "correct what it raises"
    because = "because this process has no root device that works"
    return f"run `python -m usm_dlpack doctor`, {because}, or correct what it raises"


def _refused(expected: str, found: str, error: BaseException, remedy: str) -> _UnusableError:
    text = error_text(error) if isinstance(error, Exception) else ""
    said = f"{type_name(error)}: {text}" if text else type_name(error)
    has_remedy = is_our_sentence(error) or isinstance(error, ConversionError)
    said += "" if has_remedy else f"; {remedy}"
    return _UnusableError(f"target: expected {expected}, found {found}, which raises {said}")


def find_object(target: str) -> Any:
    module, colon, expression = target.partition(":")
    if not colon or not module or not expression.strip():
        raise _UnusableError(
            f"target: expected MODULE:EXPR, found {target!a}; "
            "name a module or a .py file, and an expression in it"
        )
    try:
        namespace = _load(module).__dict__
    except (Exception, SystemExit) as error:
        absent = _is_absent(error, module)
        remedy = "correct the name, or run where it is found" if absent else _remedy()
        raise _refused("a module that can be imported", module, error, remedy) from error
    try:
        found = eval(expression, dict(namespace))
    except (Exception, SystemExit) as error:
        of_expression = isinstance(error, (NameError, SyntaxError, AttributeError))
        remedy = "correct the expression" if of_expression else _remedy()
        shown = ascii(expression)[1:-1]
        raise _refused("an expression with a value", shown, error, remedy) from error
    if isinstance(found, FunctionType):
        raise _UnusableError(f"target: expected an array, found a function; call it: {target}()")
    return found


@contextmanager
def _prints_to_stderr() -> Iterator[None]:
    """Redirect the user's output to standard error, also that of subprocesses and C code.

    It must not mix with the explanation. Where a stream is closed, nobody reads it.
    """
    kept = None
    with suppress(OSError):
        kept = os.dup(1)
        try:
            os.dup2(2, 1)
        except OSError:  # standard error is closed
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if kept is not None:
            ctypes.CDLL(None).fflush(None)  # C's buffer
            os.dup2(kept, 1)
            os.close(kept)


def show(target: str, *, direction: Any, as_json: bool, colour: str) -> int:
    try:
        with Progress() as progress, _prints_to_stderr():
            progress.show(f"importing {target.partition(':')[0]}")
            found = find_object(target)
            progress.show("")
            explanation = explain(found, direction=direction)
    except _UnusableError as unusable:
        say_error(unusable)
        return 2
    if as_json:
        print(explanation.as_json())
    else:
        print(explanation.to_text(colour=wants_colour(sys.stdout, colour)))
    return 0 if explanation.error is None else 1
