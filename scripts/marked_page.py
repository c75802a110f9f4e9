"""A page of the docs with a part that a program writes, between the marks <!-- NAME --> and <!-- /NAME -->."""

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
Row = Mapping[str, str]


def table(rows: Sequence[Row]) -> str:
    """Return rows as a table in Markdown, without the columns that none of them fills."""
    columns = list(dict.fromkeys(name for row in rows for name, cell in row.items() if cell))
    lines = [columns, ["---"] * len(columns)]
    lines += [[row.get(name, "") for name in columns] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def renewed(page: str, name: str, content: str) -> str:
    """Return a page with other content between its marks.

    Raises:
        ValueError: the page has no marks of this name.
    """
    place = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
    if not place.search(page):
        raise ValueError(f"The page has no <!-- {name} --> and <!-- /{name} -->")
    return place.sub(lambda marks: f"{marks[1]}\n{content}\n{marks[2]}", page)


def renew(page: Path, name: str, content: str, description: str) -> None:
    """Write the part of a page; with `--check` on the command line, compare it and write nothing.

    Args:
        description: the docstring of the program, whose command line this is.

    Raises:
        SystemExit: `--check` was given, and the page has another part.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args()
    before = page.read_text("utf8")
    after = renewed(before, name, content)
    if args.check and after != before:
        raise SystemExit(
            f"{page} has other tables: python -m scripts.{Path(parser.prog).stem} writes them"
        )
    if not args.check:
        page.write_text(after, "utf8")
