"""`scripts/check_release.py`: version, tag, CHANGELOG and the address of the repository agree."""

import configparser
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
problems = runpy.run_path(str(ROOT / "scripts" / "check_release.py"))["problems"]
REPOSITORY = "https://example.org/me/elmo"


@pytest.fixture
def root(tmp_path):
    """A repository that is ready to be released."""
    (tmp_path / "spacy_elmo").mkdir()
    (tmp_path / "spacy_elmo" / "about.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [1.2.0] - 2030-01-31\n\n## [1.1.0] - 2029-01-31\n"
    )
    (tmp_path / "setup.cfg").write_text(
        f"[metadata]\nproject_urls =\n    Source = {REPOSITORY}\n    Issues = {REPOSITORY}/issues\n"
    )
    return tmp_path


def test_what_agrees(root):
    assert problems("v1.2.0", REPOSITORY, root) == []


@pytest.mark.parametrize(
    "file, old, new, problem",
    [
        ("spacy_elmo/about.py", "1.2.0", "1.2.1", "has version 1.2.1"),
        ("CHANGELOG.md", "[1.2.0]", "[Unreleased]", "begins with Unreleased"),
        ("CHANGELOG.md", "## [1", "[1", "begins with nothing"),
        ("CHANGELOG.md", " - 2030-01-31", "", "has no date after [1.2.0]"),
        ("setup.cfg", "elmo/issues", "another/issues", "me/another/issues, but must begin with"),
        ("setup.cfg", "elmo/issues", "elmo2/issues", "me/elmo2/issues, but must begin with"),
    ],
)
def test_what_disagrees(root, file, old, new, problem):
    path = root / file
    path.write_text(path.read_text().replace(old, new))
    assert problem in "\n".join(problems("v1.2.0", REPOSITORY, root))


def test_another_tag(root):
    assert problems("v1.2", REPOSITORY, root) == [
        "The tag is v1.2, but spacy_elmo/about.py has version 1.2.0"
    ]


def test_this_repository_names_one_place_and_its_version():
    """Before a release only the CHANGELOG may disagree, which lacks the date."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf8")
    source = re.search(r"^Source = (\S+)$", config["metadata"]["project_urls"], re.MULTILINE)[1]
    version = runpy.run_path(str(ROOT / "spacy_elmo" / "about.py"))["__version__"]
    actual = problems(f"v{version}", source)
    assert [problem for problem in actual if not problem.startswith("CHANGELOG.md")] == []
