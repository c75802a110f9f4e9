"""The commands under `python -m spacy elmo`.

spaCy imports this module at every `python -m spacy ...`, ours or not: it stays light (a command imports torch and the
rest of the package inside its function), and an error here would break all of spaCy's commands.
"""

import typer
from spacy.cli import app

from .convert import convert_cli
from .download import download_cli
from .embed import embed_cli
from .evaluate import evaluate_cli
from .export import export_cli
from .info import info_cli
from .init_config import init_config_cli
from .layers import layers_cli
from .neighbors import neighbors_cli
from .prepare import prepare_cli
from .pretrain import pretrain_cli
from .probe import probe_cli
from .score import score_cli
from .search import search_cli
from .settings import CONTEXT

elmo_cli = typer.Typer(
    name="elmo",
    help="ELMo: pretrain, convert and inspect bidirectional language models.",
    no_args_is_help=True,
)
elmo_cli.add_typer(convert_cli)
elmo_cli.add_typer(export_cli)
elmo_cli.add_typer(probe_cli)
elmo_cli.add_typer(search_cli)
elmo_cli.command("prepare", context_settings=CONTEXT)(prepare_cli)
elmo_cli.command("pretrain", context_settings=CONTEXT)(pretrain_cli)
elmo_cli.command("evaluate")(evaluate_cli)
elmo_cli.command("score")(score_cli)
elmo_cli.command("embed")(embed_cli)
elmo_cli.command("layers")(layers_cli)
elmo_cli.command("neighbors")(neighbors_cli)
elmo_cli.command("download")(download_cli)
elmo_cli.command("info")(info_cli)
elmo_cli.command("init-config")(init_config_cli)

app.add_typer(elmo_cli)
