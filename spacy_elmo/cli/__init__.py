"""Implementation of the commands under `python -m spacy elmo`.

spaCy imports this module for every `python -m spacy ...`, also for its own commands. The import must be fast,
so each command imports torch and the rest of the package inside its function. The import must also never
fail, because an error would break all commands of spaCy.
"""

import io
import sys
from typing import Any

import typer
from spacy.cli import app
from typer.core import TyperGroup

from .annotate import annotate_cli
from .convert import convert_cli, download_cli, export_cli
from .embed import embed_cli
from .explore import explore_cli
from .info import info_cli
from .init_config import init_config_cli
from .language_model import evaluate_cli, score_cli
from .layers import layers_cli
from .neighbors import neighbors_cli
from .output import report_errors
from .package import package_cli
from .pretrain import prepare_cli, pretrain_cli
from .probe import probe_cli
from .search import search_cli

USE = "Use weights"
TRAIN = "Train a biLM"
OTHERS = "Weights of other programs"
ANALYSE = "Analyse a biLM"
OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Typer's settings for commands that accept overrides of a config, such as `--training.max_steps 1000`."""


class ElmoCommands(TyperGroup):
    """Command group that reports errors of its commands, and prints its commands in sections."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command. Characters that the encoding of the output lacks become question marks."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")
        with report_errors():
            return super().invoke(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands to a help text. A section has the commands of one `rich_help_panel`, which
        spaCy's app, without rich, would ignore."""
        limit = formatter.width - 6 - max(map(len, self.commands))
        sections: dict[Any, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            panel = getattr(command, "rich_help_panel", None)
            sections.setdefault(panel, []).append((name, command.get_short_help_str(limit)))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


elmo_cli = typer.Typer(
    name="elmo",
    cls=ElmoCommands,
    help="ELMo: pretrain, convert and use bidirectional language models (biLMs).",
    no_args_is_help=True,
)
elmo_cli.command("info", rich_help_panel=USE)(info_cli)
elmo_cli.command("init-config", rich_help_panel=USE)(init_config_cli)
elmo_cli.command("annotate", rich_help_panel=USE)(annotate_cli)
elmo_cli.command("embed", rich_help_panel=USE)(embed_cli)
elmo_cli.add_typer(search_cli, rich_help_panel=USE)
elmo_cli.command("prepare", rich_help_panel=TRAIN, context_settings=OVERRIDES)(prepare_cli)
elmo_cli.command("pretrain", rich_help_panel=TRAIN, context_settings=OVERRIDES)(pretrain_cli)
elmo_cli.command("evaluate", rich_help_panel=TRAIN)(evaluate_cli)
elmo_cli.command("package", rich_help_panel=TRAIN)(package_cli)
elmo_cli.command("download", rich_help_panel=OTHERS)(download_cli)
elmo_cli.command("convert", rich_help_panel=OTHERS)(convert_cli)
elmo_cli.command("export", rich_help_panel=OTHERS)(export_cli)
elmo_cli.command("explore", rich_help_panel=ANALYSE)(explore_cli)
elmo_cli.command("score", rich_help_panel=ANALYSE)(score_cli)
elmo_cli.command("layers", rich_help_panel=ANALYSE)(layers_cli)
elmo_cli.command("neighbors", rich_help_panel=ANALYSE)(neighbors_cli)
elmo_cli.add_typer(probe_cli, rich_help_panel=ANALYSE)
app.add_typer(elmo_cli)
