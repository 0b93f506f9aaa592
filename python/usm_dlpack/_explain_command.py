# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack explain MODULE:EXPR``: where the array comes from, and the exit status."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from usm_dlpack import explain
from usm_dlpack._errors import type_name
from usm_dlpack._explanation import error_text
from usm_dlpack._terminal import Progress, wants_colour


class _UnusableError(Exception):
    """An argument from which no object comes; its text is the sentence."""


def _load_file(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if specification is None or specification.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module  # as an import does, for dataclasses and pickling
    sys.path.insert(0, str(path.parent.resolve()))
    specification.loader.exec_module(module)
    return module


def _load(name: str) -> ModuleType:
    path = Path(name)
    if name.endswith(".py") or path.parent != Path():
        return _load_file(path)
    if "" not in sys.path:
        sys.path.insert(0, "")
    return importlib.import_module(name)


def _said(error: BaseException) -> str:
    text = error_text(error) if isinstance(error, Exception) else ""
    return f"{type_name(error)}: {text}" if text else type_name(error)


def find_object(target: str) -> Any:
    """Return the value of ``MODULE:EXPR``.

    Raises
    ------
    _UnusableError
        If the module cannot be imported, or the expression has no value.
    """
    module, colon, expression = target.partition(":")
    if not colon or not module or not expression.strip():
        raise _UnusableError(
            f"target: expected MODULE:EXPR, found {target!a}; "
            "name a module or a .py file, and an expression in it"
        )
    try:
        namespace = _load(module).__dict__
    except (Exception, SystemExit) as error:
        raise _UnusableError(
            f"target: expected a module that can be imported, found {module}, which raises "
            f"{_said(error)}; correct the name, or run where it is found"
        ) from error
    try:
        return eval(expression, dict(namespace))
    except (Exception, SystemExit) as error:
        raise _UnusableError(
            f"target: expected an expression with a value, found {ascii(expression)[1:-1]}, which "
            f"raises {_said(error)}; correct the expression"
        ) from error


def show(target: str, *, direction: Any, as_json: bool, colour: str) -> int:
    """Explain an object, print it, and return the exit status."""
    try:
        with Progress() as progress:
            progress.show(f"importing {target.partition(':')[0]}")
            found = find_object(target)
    except _UnusableError as unusable:
        print(unusable, file=sys.stderr)
        return 2
    explanation = explain(found, direction=direction)
    if as_json:
        print(explanation.as_json())
    else:
        print(explanation.to_text(colour=wants_colour(sys.stdout, colour)))
    return 0 if explanation.error is None else 1
