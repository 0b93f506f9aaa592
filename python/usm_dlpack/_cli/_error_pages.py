# SPDX-License-Identifier: Apache-2.0
"""``python -m usm_dlpack errors [CODE]`` prints docs/errors, which the build turned into texts."""

import difflib
from pathlib import Path

import usm_dlpack
from usm_dlpack._terminal import say_error


def show(code: str | None) -> int:
    # An editable install has two folders.
    folders = (Path(folder, "errors") for folder in usm_dlpack.__path__)
    texts = {text.stem: text for folder in folders for text in folder.glob("*.txt")}
    if (text := texts.get(code or "index")) is None:
        near = difflib.get_close_matches(str(code), texts, n=3)
        named = f"correct the name to {' or '.join(near)}, or " if near else ""
        say_error(
            f"code: expected the code of an error, found {code!a}; {named}run "
            "`python -m usm_dlpack errors`, which lists all"
        )
        return 2
    print(text.read_text(encoding="utf-8"), end="")
    return 0
