"""Hooks of mkdocs, which add pages of files outside `docs` and the map of explore.md, and change links to other files.

The pages in `docs` link to files of the repository, for readers of the repository. In the site, such a link leads to
the page that is made of the file. If there is none, the link leads to the file in the repository, whose address is the
environment variable `SOURCE_URL`; without this variable, only the text of the link is kept.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
SOURCE_URL = os.environ.get("SOURCE_URL", "").rstrip("/")
_REPORTS = sorted(path.parent.name for path in (ROOT / "evidence" / "report").glob("*/report.md"))
"""The sizes of the evidence. The reports of each are pages of the site."""
_PROJECTS = ("compare", "language", "treebank")
"""The spaCy projects. The README of each is a page of the site."""
_COPIES = {
    "evidence/README.md": "evidence/index.md",
    "benchmarks/README.md": "evidence/benchmarks.md",
    **{f"projects/{name}/README.md": f"projects/{name}.md" for name in _PROJECTS},
    "spacy_elmo/weights/en_base_v2.md": "evidence/en_base_v2.md",
    "spacy_elmo/weights/en_mini_v4.md": "evidence/en_mini_v4.md",
    "CHANGELOG.md": "changelog.md",
    **{
        f"evidence/report/{size}/{path.name}": f"evidence/{size}/{path.name}"
        for size in _REPORTS
        for path in sorted((ROOT / "evidence" / "report" / size).iterdir())
        if path.suffix in (".md", ".png")
    },
    "evidence/pretraining/en_base_v2/perplexity.png": "evidence/en_base_v2_perplexity.png",
    "notebooks/first_steps.ipynb": "notebooks/first_steps.md",
    "notebooks/ner.ipynb": "notebooks/ner.md",
}
"""Mapping from files in the repository to pages or files of the site."""
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and pictures that are not in `docs`."""
    for source, target in _COPIES.items():
        path = ROOT / source
        content: Any
        if path.suffix == ".ipynb":
            content = notebook_page(json.loads(path.read_text("utf8")))
        else:
            content = path.read_text("utf8") if path.suffix == ".md" else path.read_bytes()
        files.append(File.generated(config, target, content=content))
    files.append(File.generated(config, "commands.md", content=commands_page()))
    files.append(File.generated(config, "assets/map.html", content=neighbors_map()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page with changed links to files of the repository."""
    sources = {target: source for source, target in _COPIES.items()}
    here = PurePosixPath(sources.get(page.file.src_uri, f"docs/{page.file.src_uri}"))

    def link(match: re.Match[str]) -> str:
        mark, text, address = match.groups()
        path, _, anchor = address.partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return match[0]
        source = os.path.normpath(here.parent / path)
        target = "index.md" if source == "README.md" else _COPIES.get(source)
        target = target or source.removeprefix("docs/")
        if files.get_file_from_path(target) is None:
            return f"[{text}]({SOURCE_URL}/{source})" if SOURCE_URL else text
        # The text of such a link is the name of the file. The site shows the title of the page instead.
        if re.fullmatch(r"\w+\.md", text) and (title := title_of(ROOT / source)):
            text = title
        relative = os.path.relpath(target, PurePosixPath(page.file.src_uri).parent)
        return f"{mark}[{text}]({relative}{'#' * bool(anchor)}{anchor})"

    # In code, text that looks like a link is not changed.
    parts = re.split(r"(^```.*?^```|`[^`\n]*`)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("`") else _LINK.sub(link, part) for part in parts)


def title_of(path: Path) -> str | None:
    """Return the heading of a page; None if it has none."""
    match = re.search(r"^# (.+)$", path.read_text("utf8"), re.MULTILINE)
    return match and match[1]


def neighbors_map() -> bytes:
    """Return the page that the command `neighbors` of explore.md writes."""
    page = (ROOT / "docs" / "explore.md").read_text("utf8")
    (command,) = re.findall(
        r"^python (-m spacy elmo neighbors .*) -o map.html$", page, re.MULTILINE
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.html"
        program = [sys.executable, *shlex.split(command), "-o", str(path)]
        subprocess.run(program, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return path.read_bytes()


def commands_page() -> str:
    """Return a page with the arguments and options of every command."""
    from typer.main import get_command

    from spacy_elmo.cli import elmo_cli

    introduction = (
        "The commands under `python -m spacy elmo`. `--help` prints the same on the terminal."
    )
    sections = _sections(get_command(elmo_cli), "")
    return f"# Commands\n\n{introduction}\n\n" + "\n".join(sections)


def _sections(group: Any, prefix: str) -> Iterator[str]:
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from _sections(command, f"{prefix}{name} ")
            continue
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p.param_type_name == "option"]
        names = [argument.metavar or argument.name.upper() for argument in arguments]
        usage = " ".join(["python -m spacy elmo", f"{prefix}{name}", *names])
        rows = [
            (metavar, "", argument.help) for metavar, argument in zip(names, arguments, strict=True)
        ]
        rows += [(", ".join(o.opts + o.secondary_opts), _default(o), o.help) for o in options]
        yield f"## {prefix}{name}\n\n```text\n{usage}\n```\n\n{inspect.cleandoc(command.help)}\n"
        yield "| | default | |\n|---|---|---|"
        yield from (f"| `{what}` | {default} | {_cell(text)} |" for what, default, text in rows)
        yield ""


def _default(option: Any) -> str:
    value = getattr(option.default, "value", option.default)
    return "" if value in (None, False, ()) or callable(value) else f"`{value}`"


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")


def notebook_page(notebook: dict[str, Any]) -> str:
    """Return a notebook as Markdown, with the text output of its cells."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            text = "".join(output.get("text") or output.get("data", {}).get("text/plain", []))
            if text.strip():
                parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"
