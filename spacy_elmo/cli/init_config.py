"""`python -m spacy elmo init-config`: write a config that contains elmo, for `spacy train` or
`spacy assemble`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from .arguments import ForceOption, LanguageOption
from .output import msg, show_command

# With spaCy's 1000 Docs, the layers of a batch of long Docs take gigabytes.
_BATCH_SIZE = 32

Optimize = Enum("Optimize", {"efficiency": "efficiency", "accuracy": "accuracy"}, type=str)


def init_config_cli(
    config_path: Annotated[Path, typer.Argument(metavar="CONFIG", help="Config file to write")],
    lang: LanguageOption = None,
    pipeline: Annotated[
        str,
        typer.Option("--pipeline", "-p", help="Components to train on elmo, separated by commas"),
    ] = "",
    optimize: Annotated[
        Optimize,
        typer.Option(
            "--optimize", "-o", help="Input of each component: ELMo alone, or with others"
        ),
    ] = Optimize.efficiency,
    vectors: Annotated[
        str | None, typer.Option(help="Pipeline with static vectors, for --optimize accuracy")
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option("--weights", "-w", help="Weights. Default: the biLM for the language"),
    ] = None,
    shipped: Annotated[
        str | None,
        typer.Option("--from", metavar="NAME", help="Copy a shipped config, such as ner_elmo"),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(help="Config for spacy train to which elmo is added, with listeners"),
    ] = None,
    onto: Annotated[
        str | None, typer.Option(help="Trained pipeline to which --pipeline is added")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write the config of a pipeline that contains elmo.

    With --pipeline, the config has components that use the vectors of elmo, and is ready for spacy train.
    Without --pipeline, elmo is the only component. Then spacy assemble CONFIG DIR saves the pipeline with the
    weights in DIR, and spacy package DIR OUT packages the saved pipeline.

    With --optimize accuracy, each component has its own embedding and its own encoder. The input of the
    encoder is the embedding, concatenated with the ELMo vectors, as in Peters et al. (2018). With --optimize
    efficiency, the ELMo vectors are the only input of each component.

    --from copies a config as it is, and --base keeps the components and the language of a config of yours.
    --onto freezes the components of a trained pipeline, also elmo, so that they predict the same as before.
    """
    from ..files import atomic_write, check_output_file

    check_output_file(config_path, force=force)
    accurate = optimize.value == "accuracy"
    names = [name for part in pipeline.split(",") if (name := part.strip()) not in ("", "elmo")]
    names = list(dict.fromkeys(names))
    own = lang or names or accurate or vectors or onto
    if shipped is not None and (own or weights or base):
        raise ValueError(
            "--from copies a shipped config unchanged, so no other option changes it. Override a setting in the command"
            " that uses the config, for example: spacy train CONFIG --nlp.lang de --components.elmo.weights PATH"
        )
    if base is not None and own:
        raise ValueError(
            "--base keeps the components and the language of its config. The only other option is --weights"
        )
    if onto is not None and (lang or vectors or weights or not names):
        raise ValueError("--onto needs --pipeline NAMES. The only other option is --optimize")
    if vectors is not None and not (accurate and names):
        raise ValueError(
            "--vectors adds static vectors to the embedding of each component, so it needs --pipeline NAMES and"
            " --optimize accuracy"
        )
    if shipped is not None:
        text = _shipped(shipped)
    elif base is not None:
        text = _with_elmo(base, weights)
    elif onto is not None:
        text = _onto(onto, names, accurate)
    else:
        text = _new(lang, names, accurate, vectors, weights)
    atomic_write(config_path, text.encode())
    msg.good(f"Config: {config_path}")
    if base is not None or names:
        data = ("--paths.train", "train.spacy", "--paths.dev", "dev.spacy")
        show_command("train", config_path, *data, "--output", "training")
    elif shipped is None:
        show_command("assemble", config_path, "pipeline")


def _shipped(name: str) -> str:
    from ..pipeline.training_config import shipped_configs

    configs = shipped_configs()
    if name not in configs:
        raise ValueError(
            f"--from {name}: there is no shipped config of this name. Choose one of {', '.join(configs)}"
        )
    return configs[name].read_text(encoding="utf8")


def _with_elmo(base: Path, weights: str | None) -> str:
    from spacy.util import load_config

    from ..pipeline.training_config import with_elmo
    from ..weight_names import default_weights

    base_config = load_config(base)
    if not base_config.get("nlp", {}).get("lang"):
        raise ValueError(f"--base {base}: the config has no `lang` in a section [nlp]")
    config = with_elmo(base_config, weights or default_weights(base_config["nlp"]["lang"]))
    if config["nlp"].get("batch_size", 1000) == 1000:
        config["nlp"]["batch_size"] = _BATCH_SIZE
    return config.to_str() + "\n"


def _onto(source: str, names: list[str], accurate: bool) -> str:
    from spacy.util import is_package

    from ..lab.pipelines import find_elmo, saved_pipeline
    from ..pipeline.training_config import onto

    nlp = saved_pipeline(source)
    elmo, _ = find_elmo(nlp)
    source = source if is_package(source) else str(Path(source).absolute())
    return onto(nlp, source, elmo, names, accurate=accurate).to_str() + "\n"


def _new(
    lang: str | None, names: list[str], accurate: bool, vectors: str | None, weights: str | None
) -> str:
    from spacy.util import load_config_from_str

    from ..lab.pipelines import blank_pipeline
    from ..pipeline.training_config import add_listening
    from ..weight_names import default_weights

    nlp = blank_pipeline(weights or default_weights(lang or "en"), lang)
    add_listening(nlp, names, accurate=accurate, vectors=vectors is not None)
    config = nlp.config
    config["nlp"]["batch_size"] = _BATCH_SIZE
    if vectors is not None:
        folder = Path(vectors)
        config["paths"]["vectors"] = str(folder.absolute()) if folder.exists() else vectors
    # Parse the text again, because spaCy puts the sections in order only when it parses a config.
    return load_config_from_str(config.to_str()).to_str() + "\n"
