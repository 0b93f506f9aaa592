# SPDX-License-Identifier: Apache-2.0
"""A small site, built as ours is: what the markup becomes, and that what leads nowhere fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

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


def build(folder: Path, page: str) -> subprocess.CompletedProcess[str]:
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


def test_what_leads_nowhere_is_refused(tmp_path: Path) -> None:
    done = build(tmp_path, "# Entrance\n\n" + "\n\n".join(BAD) + TOCTREE)
    assert done.returncode != 0
    assert [warning for warning in BAD.values() if warning not in done.stderr] == []
