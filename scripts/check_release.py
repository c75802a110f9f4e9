"""Check that the version, the tag, CHANGELOG.md and the address of the repository agree before a release.

python scripts/check_release.py v0.1.0 https://github.com/OWNER/REPOSITORY
"""

import configparser
import re
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def problems(tag: str, repository: str, root: Path = ROOT) -> list[str]:
    """Return a sentence for each disagreement.

    Args:
        tag: the tag of the release, that is "v" and the version.
        repository: the address of the repository, to which the links of the metadata must lead.
        root: folder of the repository.
    """
    found = []
    version = runpy.run_path(str(root / "spacy_elmo" / "about.py"))["__version__"]
    if tag != f"v{version}":
        found.append(f"The tag is {tag}, but spacy_elmo/about.py has version {version}")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf8")
    headings = re.findall(r"^## \[([^]]+)\](.*)$", changelog, re.MULTILINE)
    if not headings or headings[0][0] != version:
        first = headings[0][0] if headings else "nothing"
        found.append(f"CHANGELOG.md begins with {first}, but must begin with [{version}]")
    elif not re.fullmatch(r" - \d{4}-\d{2}-\d{2}", headings[0][1]):
        found.append(
            f"CHANGELOG.md has no date after [{version}]: write ## [{version}] - YEAR-MONTH-DAY"
        )
    config = configparser.ConfigParser()
    config.read(root / "setup.cfg", encoding="utf8")
    for name, url in re.findall(r"^(\w+) = (\S+)$", config["metadata"]["project_urls"], re.M):
        if url != repository and not url.startswith(f"{repository}/"):
            found.append(f"{name} in setup.cfg is {url}, but must begin with {repository}")
    return found


def main() -> None:
    """Print the disagreements, and exit with code 1 if there are any."""
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    if found := problems(*sys.argv[1:]):
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
