"""Help text of `python -m spacy elmo`, which lists the commands in groups."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

USE = "Use weights"
TRAIN = "Train a biLM"
OTHER_PROGRAMS = "Weights of other programs"
ANALYSE = "Analyse a biLM"


class GroupedCommands(TyperGroup):
    """Typer group whose help text has a section for each group of commands. The title of a section is the
    `rich_help_panel` of its commands.

    Without this class, spaCy's app would ignore the titles, because it does not use rich for its help texts.
    """

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section of the help text for each group of commands.

        The groups have the same order as their first commands.
        """
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
