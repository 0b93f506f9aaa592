# SPDX-License-Identifier: Apache-2.0
"""A small site, built as ours is: what the markup becomes, and that what leads nowhere fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import error_table

ROOT = Path(__file__).resolve().parents[2]

GOOD = """# Entrance

`layout_mismatch`; `no_device` has no page here, and `other` is none.

[a file](../tests/python/test_architecture.py), [its folder](../examples/),
[a page](errors/layout_mismatch.md)

[code `layout_mismatch` in a link](errors/layout_mismatch.md)

## The heading `layout_mismatch`

```{diagram} exchange
What is to be "seen".
```

```{diagram} export_steps
A protocol.
```

```{toctree}
errors/layout_mismatch
```
"""
TOCTREE = "\n\n```{toctree}\nerrors/layout_mismatch\n```\n"
BAD = {
    "{cpp:func}`usm_dlpack::nowhere`": "cpp:func reference target not found: usm_dlpack::nowhere",
    "{py:func}`usm_dlpack.nowhere`": "py:func reference target not found: usm_dlpack.nowhere",
    "{term}`nowhere`": "term not in glossary: 'nowhere'",
    "```{diagram} nowhere\nText.\n```": "expected a source in docs/diagrams/, found none",
    "```{diagram} exchange\n```": "expected a sentence that says what is to be seen, found none",
    "[file](../nowhere.py)": "../nowhere.py: expected a file of the repository, found none",
    "[page](nowhere.md)": "cross-reference target not found: 'nowhere.md'",
    "[place](#nowhere)": "cross-reference target not found: 'nowhere'",
    "```{literalinclude} nowhere.py\n```": "nowhere.py' not found",
}


def build(
    folder: Path, page: str, more: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Build a site of one page and one error with our settings."""
    for part in ("include", "examples", "tests/python"):
        shutil.copytree(ROOT / part, folder / part)
    docs = folder / "docs"
    (docs / "errors").mkdir(parents=True)
    for file in (ROOT / "docs").glob("*.py"):
        shutil.copy(file, docs)
    for part in ("_static", "diagrams", "examples"):
        shutil.copytree(ROOT / "docs" / part, docs / part)
    (docs / "errors" / "layout_mismatch.md").write_text("# layout_mismatch\n\n`layout_mismatch`\n")
    (docs / "index.md").write_text(page)
    for name, text in (more or {}).items():
        (folder / name).write_text(text)
    strict = ["-b", "html", "-W", "--keep-going", "-n", "-q", "-E"]
    command = [sys.executable, "-m", "sphinx", *strict, str(docs), str(folder / "html")]
    environment = os.environ | {"USM_DLPACK_DOXYGEN_XML": str(folder)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_markup_becomes_links_and_pictures(tmp_path: Path) -> None:
    done = build(tmp_path, GOOD)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "html" / "index.html").read_text()
    # The backticks, two links, the toctree; the sidebar is not in it.
    article = page.partition("<article")[2].partition("</article>")[0]
    assert article.count('href="errors/layout_mismatch.html"') == 4
    assert 'href="errors/no_device.html"' not in page
    assert 'href="files/tests/python/test_architecture.py.html"' in article
    assert 'href="files/examples/README.md.html"' in article
    assert article.count('<div class="diagram"') == 2
    assert 'aria-label="What is to be &quot;seen&quot;."' in article
    own = (tmp_path / "html" / "errors" / "layout_mismatch.html").read_text()
    assert "layout_mismatch</span></code></p>" in own  # no link to itself


REFERENCE = """
```{{eval-rst}}
.. py:exception:: usm_dlpack.ConversionError
.. py:exception:: usm_dlpack.UsmBindingError
.. cpp:enum-class:: usm_dlpack::errc

{enumerators}
```

```{{toctree}}
:glob:

errors/*
```
"""


def page_of(row: error_table.Row) -> str:
    """Return the page that a new code gets."""
    return error_table.PAGE.format(code=row.code, meaning=row.meaning)


def test_the_table_of_errors_has_a_row_and_a_page_for_each_code(tmp_path: Path) -> None:
    rows = error_table.read_table()
    enumerators = "\n".join(f"   .. cpp:enumerator:: {row.code}" for row in rows)
    page = "# Entrance\n\n```{error-table}\n```\n" + REFERENCE.format(enumerators=enumerators)
    done = build(tmp_path, page, {f"docs/errors/{row.code}.md": page_of(row) for row in rows})
    assert done.returncode == 0, done.stderr
    html = (tmp_path / "html" / "index.html").read_text()
    table = html.partition("<table")[2].partition("</table>")[0]
    assert table.count("<tr") == 1 + len(rows)
    for row in rows:
        assert table.count(f'href="errors/{row.code}.html"') == 1
    own = (tmp_path / "html" / "errors" / "device_mismatch.html").read_text()
    assert "name different root devices." in own
    assert "UsmBindingError" in own
    assert "Tensor with the id of another device" in own


def test_what_leads_nowhere_is_refused(tmp_path: Path) -> None:
    done = build(tmp_path, "# Entrance\n\n" + "\n\n".join(BAD) + TOCTREE)
    assert done.returncode != 0
    assert [warning for warning in BAD.values() if warning not in done.stderr] == []
