# SPDX-License-Identifier: Apache-2.0
"""A small site, built as ours is: where links lead, and that what leads nowhere fails."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

GOOD = """# Entrance

`layout_mismatch`; `other` is none; `usm_dlpack.ConversionError`, `usm_dlpack::usm_dlpack`

[an example](../examples/c_abi/README.md), [a page](errors/layout_mismatch.md)

[code `layout_mismatch` in a link](errors/layout_mismatch.md)

## The heading `layout_mismatch`
"""
ERROR = """# layout_mismatch

`layout_mismatch`

```{py:exception} usm_dlpack.ConversionError
```
"""
TOCTREE = "\n\n```{toctree}\nerrors/layout_mismatch\nhow-to/examples/c_abi\n```\n"
BAD = {
    "`usm_dlpack::nowhere`": "usm_dlpack::nowhere: expected a public name, found none; correct it",
    "`usm_dlpack.nowhere`": "usm_dlpack.nowhere: expected a public name, found none; correct it",
    "[file](../nowhere.py)": "cross-reference target not found: '../nowhere.py'",
    "[page](nowhere.md)": "cross-reference target not found: 'nowhere.md'",
    "[place](#nowhere)": "cross-reference target not found: 'nowhere'",
}


def build(folder: Path, page: str) -> subprocess.CompletedProcess[str]:
    """Build a site of one page and one error with our settings."""
    for part in ("include", "examples", "docs/_static", "docs/examples", "docs/how-to/examples"):
        shutil.copytree(ROOT / part, folder / part)
    docs = folder / "docs"
    (docs / "errors").mkdir(parents=True)
    for file in (ROOT / "docs").glob("*.py"):
        shutil.copy(file, docs)
    for other in ("extension", "onednn"):
        (docs / "how-to" / "examples" / f"{other}.md").unlink()
    (docs / "errors" / "layout_mismatch.md").write_text(ERROR)
    (docs / "index.md").write_text(page + TOCTREE)
    strict = ["-b", "html", "-W", "--keep-going", "-n", "-q", "-E"]
    command = [sys.executable, "-m", "sphinx", *strict, str(docs), str(folder / "html")]
    environment = os.environ | {"USM_DLPACK_DOXYGEN_XML": str(folder)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_links_lead_to_pages(tmp_path: Path) -> None:
    done = build(tmp_path, GOOD)
    assert done.stderr.count("WARNING") == 1  # this site has no C++ names
    pages = tmp_path / "html"
    page = (pages / "index.html").read_text()
    # The backticks, two links, the toctree; the sidebar is not in it.
    article = page.partition("<article")[2].partition("</article>")[0]
    assert article.count('href="errors/layout_mismatch.html"') == 4
    # The backticks and the toctree.
    assert article.count('href="errors/layout_mismatch.html#usm_dlpack.ConversionError"') == 2
    assert article.count('href="how-to/examples/c_abi.html"') == 2
    readme = (pages / "how-to" / "examples" / "c_abi.html").read_text()
    assert re.search(r'href="[./]*_downloads/\w+/producer.cpp"', readme)
    own = (pages / "errors" / "layout_mismatch.html").read_text()
    assert "layout_mismatch</span></code></p>" in own  # no link to itself
    assert "<strong>Padded rows as compact ones</strong>" in own


def test_what_leads_nowhere_is_refused(tmp_path: Path) -> None:
    done = build(tmp_path, "# Entrance\n\n" + "\n\n".join(BAD))
    assert done.returncode != 0
    assert [warning for warning in BAD.values() if warning not in done.stderr] == []
