"""`python -m spacy elmo init-config`: write a config that contains elmo, for `spacy train` or
`spacy assemble`."""

from __future__ import annotations

import shlex
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import msg

from ..files import atomic_file, check_output_file
from .errors import report_errors
from .terminal import printable

if TYPE_CHECKING:
    from spacy.language import Language


class OptimizeChoice(str, Enum):
    """Choices of `--optimize`."""

    efficiency = "efficiency"
    accuracy = "accuracy"


_STANDARD_OUTPUT = "-"


def init_config_cli(
    config_path: Annotated[
        Path,
        typer.Argument(metavar="CONFIG", help="Config file to write, or - for standard output"),
    ] = Path(_STANDARD_OUTPUT),
    lang: Annotated[
        str | None,
        typer.Option(
            "--lang", "-l", help="Language code, such as en. Default: the language of the weights"
        ),
    ] = None,
    pipeline: Annotated[
        str,
        typer.Option(
            "--pipeline", "-p", help="Components to train on top of elmo, separated by commas"
        ),
    ] = "",
    optimize: Annotated[
        OptimizeChoice | None,
        typer.Option(
            "--optimize",
            "-o",
            help="Input of each component. efficiency: only ELMo; accuracy: ELMo, plus the component's own embedding"
            " and encoder. Default: efficiency",
        ),
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            help="Pipeline (package name or folder) with static vectors, for --optimize accuracy"
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights",
            "-w",
            help="Weights file, or name of a bundled or installed biLM. Default: the biLM for the language",
        ),
    ] = None,
    shipped: Annotated[
        str | None,
        typer.Option("--from", metavar="NAME", help="Copy a shipped config (see --list) unchanged"),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(
            help="Add elmo to this config for spacy train: a listener replaces the tok2vec of each component"
        ),
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the shipped configs")] = False,
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite CONFIG")] = False,
) -> None:
    """Write the config of a pipeline that contains elmo.

    With --pipeline, the config has components that use the vectors of elmo, and is ready for spacy train.
    Without --pipeline, elmo is the only component. Then spacy assemble CONFIG DIR saves the pipeline with the
    weights in DIR, and spacy package DIR OUT packages the saved pipeline.

    With --optimize accuracy, each component has its own embedding and its own encoder. The input of the
    encoder is the embedding, concatenated with the ELMo vectors, as in Peters et al. (2018). With --optimize
    efficiency, the ELMo vectors are the only input of each component.
    """
    with report_errors():
        if show_list:
            _list()
            return
        to_file = str(config_path) != _STANDARD_OUTPUT
        if to_file:
            check_output_file(config_path, force=force)
        if shipped is not None:
            if lang or pipeline or optimize or vectors or weights:
                raise ValueError(
                    "--from copies a shipped config unchanged, so it cannot be used with --lang, --pipeline,"
                    " --optimize, --vectors or --weights. To change a setting, override it in the command that uses the"
                    " config, for example: spacy train CONFIG --nlp.lang de --components.elmo.weights PATH"
                )
            text = _shipped(shipped)
        elif base is not None:
            if pipeline or optimize or vectors or lang:
                raise ValueError(
                    "--base keeps the components and the language of its config, so --weights is the"
                    " only other option"
                )
            text = _with_elmo(base, weights)
        else:
            listed = (name.strip() for name in pipeline.split(","))
            names = [name for name in dict.fromkeys(listed) if name not in ("", "elmo")]
            nlp = _blank(weights, lang)
            text = _config(nlp, names, optimize, vectors)
        if not to_file:
            typer.echo(text)
            return
        with atomic_file(config_path) as partial:
            partial.write_text(text, encoding="utf8")
        msg.good(f"Config: {config_path}")
        if shipped is None:
            typer.echo(_next(config_path, train=base is not None or bool(names)))


def _list() -> None:
    from ..pipeline.training_config import shipped_configs, title

    rows = [(name, title(path)) for name, path in shipped_configs().items()]
    msg.table(rows, header=("Name", "Config"), divider=True, max_col=75)


def _shipped(name: str) -> str:
    from ..pipeline.training_config import shipped_configs

    configs = shipped_configs()
    if name not in configs:
        raise ValueError(
            f"--from {name}: there is no shipped config of this name. Choose one of {', '.join(configs)}"
        )
    return configs[name].read_text(encoding="utf8").rstrip("\n") + "\n"


def _with_elmo(base: Path, weights: str | None) -> str:
    from spacy.util import load_config

    from ..pipeline.training_config import with_elmo
    from ..weight_names import default_weights

    config = load_config(base)
    if weights is None:
        weights = default_weights(config["nlp"]["lang"])
    return with_elmo(config, weights).to_str() + "\n"


def _blank(weights: str | None, lang: str | None) -> Language:
    """Create a pipeline with the component elmo. Print warnings to standard error."""
    from ..lab.corpora.pipelines import blank_pipeline
    from ..weight_names import default_weights

    nlp, warnings = blank_pipeline(weights or default_weights(lang or "en"), lang)
    for warning in warnings:
        typer.echo(f"Warning: {printable(warning)}", err=True)
    return nlp


def _config(
    nlp: Language, names: list[str], optimize: OptimizeChoice | None, vectors: str | None
) -> str:
    """Add the components `names` to a pipeline that contains elmo, and return the config of the pipeline as
    text."""
    from spacy.util import load_config_from_str

    from ..pipeline.training_config import add_listening

    accurate = optimize == OptimizeChoice.accuracy
    if vectors is not None and not (accurate and names):
        raise ValueError(
            "--vectors adds static vectors to the embedding of each component, so it needs --pipeline NAMES and"
            " --optimize accuracy"
        )
    add_listening(nlp, names, accurate=accurate, vectors=vectors is not None)
    config = nlp.config
    # With spaCy's 1000 Docs, the layers of a batch of long Docs take gigabytes.
    config["nlp"]["batch_size"] = 32
    if vectors is not None:
        folder = Path(vectors)
        config["paths"]["vectors"] = str(folder.absolute()) if folder.exists() else vectors
    # Parse the text again, because spaCy puts the sections in order only when it parses a config.
    return load_config_from_str(config.to_str()).to_str() + "\n"


def _next(config_path: Path, *, train: bool) -> str:
    """Return the command that the user should run next: `spacy train` if `train` is true, otherwise `spacy
    assemble`."""
    path = shlex.quote(str(config_path))
    if train:
        return f"python -m spacy train {path} --paths.train train.spacy --paths.dev dev.spacy --output training"
    return f"python -m spacy assemble {path} pipeline"
