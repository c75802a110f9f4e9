"""Help text of `python -m spacy elmo`, which lists the commands in groups."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

USE = "Use weights"
TRAIN = "Train a biLM"
OTHER_PROGRAMS = "Weights of other programs"
ANALYSE = "Analyse a biLM"


class GroupedCommands(TyperGroup):
    """Typer command group that prints its commands in several sections. The title of a section is the
    `rich_help_panel` of the commands in it.

    Without this class, the titles would be ignored, because spaCy's app does not use rich for help texts.
    """

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands to a help text, in sections. The sections are in the order of the first
        command in each section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        names = self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names))
        for name in names:
            command = self.get_command(ctx, name)
            group = getattr(command, "rich_help_panel", None)
            row = (name, command.get_short_help_str(limit) if command is not None else "")
            sections.setdefault(group if isinstance(group, str) else "Commands", []).append(row)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)
