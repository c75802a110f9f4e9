"""The commands under `python -m spacy elmo`.

spaCy imports this module at every `python -m spacy ...`, ours or not: it stays light (a command imports torch and the
rest of the package inside its function), and an error here would break all of spaCy's commands.
"""

import typer
from spacy.cli import app

from .convert import convert_cli
from .evaluate import evaluate_cli
from .prepare import prepare_cli
from .pretrain import pretrain_cli
from .score import score_cli
from .settings import CONTEXT

elmo_cli = typer.Typer(
    name="elmo",
    help="ELMo: pretrain, convert and inspect bidirectional language models.",
    no_args_is_help=True,
)
elmo_cli.add_typer(convert_cli)
elmo_cli.command("prepare", context_settings=CONTEXT)(prepare_cli)
elmo_cli.command("pretrain", context_settings=CONTEXT)(pretrain_cli)
elmo_cli.command("evaluate")(evaluate_cli)
elmo_cli.command("score")(score_cli)

app.add_typer(elmo_cli)
