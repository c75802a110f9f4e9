"""Implementation of the commands under `python -m spacy elmo`.

spaCy imports this module for every `python -m spacy ...`, also for its own commands. The import must be fast,
so each command imports torch and the rest of the package inside its function. The import must also never
fail, because an error would break all commands of spaCy.
"""

import io
import sys

import typer
from spacy.cli import app

from .convert import convert_cli
from .download import download_cli
from .embed import embed_cli
from .evaluate import evaluate_cli
from .explore import explore_cli
from .export import export_cli
from .help import ANALYSE, OTHER_PROGRAMS, TRAIN, USE, GroupedCommands
from .info import info_cli
from .init_config import init_config_cli
from .layers import layers_cli
from .neighbors import neighbors_cli
from .package import package_cli
from .prepare import prepare_cli
from .pretrain import pretrain_cli
from .probe import probe_cli
from .score import score_cli
from .search import search_cli
from .settings import ACCEPTS_OVERRIDES

elmo_cli = typer.Typer(
    name="elmo",
    cls=GroupedCommands,
    help="ELMo: pretrain, convert and use bidirectional language models (biLMs).",
    no_args_is_help=True,
)
elmo_cli.command("info", rich_help_panel=USE)(info_cli)
elmo_cli.command("init-config", rich_help_panel=USE)(init_config_cli)
elmo_cli.command("embed", rich_help_panel=USE)(embed_cli)
elmo_cli.add_typer(search_cli, rich_help_panel=USE)
elmo_cli.command("prepare", rich_help_panel=TRAIN, context_settings=ACCEPTS_OVERRIDES)(prepare_cli)
elmo_cli.command("pretrain", rich_help_panel=TRAIN, context_settings=ACCEPTS_OVERRIDES)(
    pretrain_cli
)
elmo_cli.command("evaluate", rich_help_panel=TRAIN)(evaluate_cli)
elmo_cli.command("package", rich_help_panel=TRAIN)(package_cli)
elmo_cli.command("download", rich_help_panel=OTHER_PROGRAMS)(download_cli)
elmo_cli.command("convert", rich_help_panel=OTHER_PROGRAMS)(convert_cli)
elmo_cli.command("export", rich_help_panel=OTHER_PROGRAMS)(export_cli)
elmo_cli.command("explore", rich_help_panel=ANALYSE)(explore_cli)
elmo_cli.command("score", rich_help_panel=ANALYSE)(score_cli)
elmo_cli.command("layers", rich_help_panel=ANALYSE)(layers_cli)
elmo_cli.command("neighbors", rich_help_panel=ANALYSE)(neighbors_cli)
elmo_cli.add_typer(probe_cli, rich_help_panel=ANALYSE)


@elmo_cli.callback()
def print_in_any_encoding() -> None:
    """Print a question mark for each character that the encoding of the standard output lacks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


app.add_typer(elmo_cli)
