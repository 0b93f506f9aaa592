# SPDX-License-Identifier: Apache-2.0
"""The program: shows root devices and their DLPack ids, a real round trip, and refusals.

``python -m usm_dlpack`` shows all three, and exits with 0 only if all of it really happened. The
commands ``devices``, ``explain``, ``errors`` and ``doctor`` say why an exchange fails.
"""

import argparse
import difflib
import errno
import importlib.metadata
import os
import posixpath
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

_DESCRIPTION = """\
Without a command: the root devices with their DLPack ids, a round trip of device USM through a
foreign library, and refusals of bad tensors. The commands say why an exchange fails.
"""
_STATUS = """\
exit status:
  0  all is well
  1  no device works, something was refused, or a problem was found
  2  the command line, or what it names, cannot be understood
  3  the output cannot be written

Text is coloured on terminals only; NO_COLOR, FORCE_COLOR and TERM=dumb are respected.
"""
_DEVICES = """\
Lists the root devices in the order of their DLPack ids, with the default context, USM kinds and
sub-devices of each, and the variables that may hide devices.
"""
_EXPLAIN = """\
Says whether an array can be exported and imported, or which step refuses it and what to do. The
array is the value of EXPR in the namespace of MODULE.
"""
_EXPLAIN_EXAMPLES = """\
examples:
  python -m usm_dlpack explain mine.arrays:x
  python -m usm_dlpack explain 'script.py:make_array()'
  python -m usm_dlpack explain 'dpctl.memory:MemoryUSMDevice(48)' --json

"""
_ERRORS = """\
Without a code, lists the codes of all errors and their meanings. With a code, prints its page: the
rule, what to do, and an example of what is refused.
"""
_DOCTOR = """\
Looks for problems in this environment: in the versions of packages and of libsycl, the OpenCL
driver, and the devices and what hides them. Works even if usm_dlpack cannot be imported.
"""

# Pages are installed without those that they link to, which are in the sources.
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#]+)[^)]*\)")
# The pages of exceptions without a code of their own.
_PAGES_OF_TYPES = {"TypeError": ["python_arguments"], "ValueError": ["python_arguments"]}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m usm_dlpack", description=_DESCRIPTION, epilog=_STATUS, formatter_class=raw
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.set_defaults(command="all", json=False, color="auto")
    commands = parser.add_subparsers(dest="command", metavar="command")

    def add(name: str, summary: str, text: str, examples: str = "") -> argparse.ArgumentParser:
        return commands.add_parser(
            name, help=summary, description=text, epilog=examples + _STATUS, formatter_class=raw
        )

    devices = add("devices", "the root devices and their DLPack ids", _DEVICES)
    explain = add("explain", "why an array can be exchanged or not", _EXPLAIN, _EXPLAIN_EXAMPLES)
    errors = add("errors", "the codes of all errors, or the page of one", _ERRORS)
    doctor = add("doctor", "what is wrong with this environment", _DOCTOR)
    for command in (devices, explain, doctor):
        command.add_argument("--json", action="store_true", help="for machines")
        help_text = "colour the text (default: auto, which is on a terminal)"
        choices = ("auto", "always", "never")
        command.add_argument("--color", choices=choices, default="auto", help=help_text)
    help_text = "a module or a .py file, and an expression in it"
    explain.add_argument("target", metavar="MODULE:EXPR", help=help_text)
    help_text = "one direction only (default: those that the array has)"
    explain.add_argument("--direction", choices=("import", "export"), help=help_text)
    explain.add_argument("--all", action="store_true", help="all steps, and what each found")
    errors.add_argument("code", metavar="CODE", nargs="?", help="such as out_of_bounds")
    return parser.parse_args(arguments)


def _named(link: re.Match[str]) -> str:
    return f"{link[1]} ({posixpath.normpath(f'docs/errors/{link[2]}')})"


def _print_error_page(code: str | None) -> int:
    """Print a page of docs/errors, or the titles of all."""
    from usm_dlpack import _paths, _terminal

    files = sorted(Path(_paths.installed("errors")).glob("*.md"))
    pages = {file.stem: file.read_text(encoding="utf-8") for file in files}
    if code is None:
        width = max(map(len, pages))
        for name, page in pages.items():
            title = page.partition("\n")[0].removeprefix("# ").removeprefix(f"`{name}`: ")
            print(f"{name:{width}}  {title}")
    elif code in pages:
        print(_LINK.sub(_named, pages[code]), end="")
    else:
        name = code.rpartition(".")[2]
        near = _PAGES_OF_TYPES.get(name) or difflib.get_close_matches(name.lower(), pages, n=3)
        named = f"correct the name to {' or '.join(near)}, or " if near else ""
        if name in ("ConversionError", "UsmBindingError"):
            named = "pass its attribute code, or "
        _terminal.say_error(
            f"code: expected the code of an error, found {code!a}; {named}run "
            "`python -m usm_dlpack errors`, which lists all"
        )
        return 2
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    options = _parse(arguments)
    # What follows works without the compiled module, until `try`.
    if options.version:
        print(f"usm_dlpack {importlib.metadata.version('usm-dlpack')}")
        return 0
    from usm_dlpack import _cli, _terminal
    from usm_dlpack._cli import _doctor

    if options.command == "errors":
        return _print_error_page(options.code)
    if options.command == "doctor":
        return _doctor.show(as_json=options.json, colour=options.color)
    try:
        from usm_dlpack._cli import _demonstration, _devices, _explain
    except ImportError as error:  # of _core or its libraries
        _terminal.say_error(_cli.sentence(_cli.failure or error))
        return 1
    if options.command == "devices":
        return _devices.show(as_json=options.json, colour=options.color)
    if options.command == "explain":
        return _explain.show(options)
    return _devices.show(as_json=False, details=False) or _demonstration.show()


def _run_as_program() -> int:
    try:
        status = main()
        if sys.stdout is not None:  # None if it was closed before Python began
            sys.stdout.flush()
    except BrokenPipeError:  # the reader stopped, like `head`
        _write_nowhere(sys.stdout)
        return 3
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        _write_nowhere(sys.stdout)
        try:
            print(
                f"stdout: expected a file with space for what is said, found {error}; make space, "
                "or write elsewhere",
                file=sys.stderr,
            )
        except OSError:  # also full
            _write_nowhere(sys.stderr)
        return 3
    return status


def _write_nowhere(stream: TextIO) -> None:
    """Discard the buffer's rest, which Python writes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    sys.exit(_run_as_program())
