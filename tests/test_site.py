"""The site of the documentation: it is built without a warning, and each of its links leads somewhere."""

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import spacy_elmo

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


class Links(HTMLParser):
    """The addresses and the anchors of a page."""

    def __init__(self, page):
        super().__init__()
        self.addresses, self.anchors = set(), set()
        self.feed(page.read_text("utf8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value is not None:
                self.addresses.add(value)
            if name in ("id", "name") and value is not None:
                self.anchors.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    environment.pop("SOURCE_URL", None)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_links_lead_somewhere(site):
    pages = {path: Links(path) for path in site.rglob("*.html")}
    assert len(pages) > 30
    broken = []
    for path, links in pages.items():
        if path.name == "404.html":  # it is shown at any address
            continue
        for address in links.addresses:
            file, anchor = urldefrag(address)
            if "://" in file or file.startswith(("data:", "mailto:", "javascript:")):
                continue
            target = (path.parent / unquote(file)).resolve() if file else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                broken.append((str(path.relative_to(site)), address))
            elif anchor and target in pages and anchor not in pages[target].anchors:
                broken.append((str(path.relative_to(site)), address))
    assert broken == []


def test_every_name_of_the_api_is_on_its_page():
    page = (ROOT / "docs" / "python.md").read_text("utf8")
    for name in set(spacy_elmo.__all__) - {"__version__"}:
        assert f"::: spacy_elmo{spacy_elmo._MODULES[name]}.{name}\n" in page + "\n"
