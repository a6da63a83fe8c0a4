"""Every script of examples/ is a tutorial: a page that ends with a picture, and a notebook with what it printed and drew."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_page_and_notebook(site: Path, name: str) -> None:
    page = (site / "tutorials" / name / "index.html").read_text(encoding="utf-8")
    article = page[page.index("<article") : page.index("</article")]
    last = article.rindex("<img")
    assert last > article.rindex("</pre>"), "the page ends with its picture"
    picture = re.search(r'src="\.\./([^"]+\.png)"', article[last:])
    assert picture is not None and (site / "tutorials" / picture[1]).stat().st_size < 300_000
    assert f'href="../{name}.ipynb"' in article and f'examples/{name}.py"' in article
    notebook = json.loads((site / "tutorials" / f"{name}.ipynb").read_text(encoding="utf-8"))
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    assert notebook["nbformat"] == 4 and any("image/png" in output.get("data", {}) for output in outputs)
    assert "".join(notebook["cells"][0]["source"]).startswith("# ")


def test_every_script_has_its_page() -> None:
    sys.path.insert(0, str(ROOT / "docs" / "tools"))
    jupytext = pytest.importorskip("jupytext", reason="the extra docs is not installed")
    import tutorials

    assert sorted(tutorials.EXAMPLES) == SCRIPTS
    with pytest.raises(ZeroDivisionError):  # an error in a script ends the build
        tutorials.run(jupytext.reads("# %%\n1 / 0", fmt="py:percent"), "made up")
