"""Functions for pages of the docs in which a program writes a part, between <!-- NAME --> and <!-- /NAME -->."""

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
Row = Mapping[str, str]


def table(rows: Sequence[Row]) -> str:
    """Return rows as a table in Markdown. Columns that are empty in all rows are left out."""
    columns = list(dict.fromkeys(name for row in rows for name, cell in row.items() if cell))
    lines = [columns, ["---"] * len(columns)]
    lines += [[row.get(name, "") for name in columns] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def renewed(page: str, name: str, content: str) -> str:
    """Return a page with new content between the marks of a name.

    Raises:
        ValueError: the page has no marks of this name.
    """
    marked = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
    if not marked.search(page):
        raise ValueError(f"The page has no marks <!-- {name} --> and <!-- /{name} -->: add them")
    return marked.sub(lambda marks: f"{marks[1]}\n{content}\n{marks[2]}", page)


def renew(page: Path, name: str, content: str, description: str) -> None:
    """Write the marked part of a page. With `--check` on the command line, compare it instead.

    Args:
        description: the docstring of the calling program, for its `--help`.

    Raises:
        SystemExit: `--check` was given, and the part of the page is different.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing, and fail if the page is different"
    )
    args = parser.parse_args()
    before = page.read_text("utf8")
    after = renewed(before, name, content)
    if args.check and after != before:
        raise SystemExit(f"{page} is out of date: run python -m scripts.{Path(parser.prog).stem}")
    if not args.check:
        page.write_text(after, "utf8")
