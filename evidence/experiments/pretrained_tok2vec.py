"""spaCy's own pretraining of a task's embedding and encoder, which learn to predict the spelling of words in context.

It is one pass over the text with spaCy's default objective and optimizer. Tasks can share the weights if their configs
have the same embedding and encoder.
"""

import tempfile
from pathlib import Path
from typing import Any

from confection import Config
from spacy.language import DEFAULT_CONFIG_PATH, DEFAULT_CONFIG_PRETRAIN_PATH
from spacy.training.pretrain import pretrain
from spacy.util import load_config
from thinc.api import require_cpu
from weasel.util import get_hash

from spacy_elmo.files import atomic_file

from .variants import read_pair, tok2vec_block


def block_of(config: Config, task: str) -> dict[str, Any]:
    """Return the embedding and encoder of a component, interpolated."""
    return tok2vec_block(config.interpolate(), task)


def tok2vec_digest(task: str) -> str:
    """Return the digest of the embedding and encoder of a task's config without ELMo."""
    return get_hash(block_of(read_pair(task)[0], task))


def pretraining_config(baseline: Config, task: str, raw_text: Path, lang: str = "en") -> Config:
    """Return the config of a pipeline with only a tok2vec, and of its pretraining.

    Args:
        baseline: the config of the task without ELMo, which has the embedding and encoder.
        raw_text: file with lines of {"text": ...}.
        lang: language of the pipeline.
    """
    pretraining = load_config(DEFAULT_CONFIG_PRETRAIN_PATH)
    config = load_config(DEFAULT_CONFIG_PATH).merge(pretraining).merge(baseline)
    config["nlp"].update(lang=lang, pipeline=["tok2vec"])
    config["components"] = {"tok2vec": {"factory": "tok2vec", "model": block_of(baseline, task)}}
    config["paths"]["raw_text"] = str(raw_text)
    # spaCy's default is 5, for longer texts. These texts are single lines.
    config["corpora"]["pretrain"]["min_length"] = 2
    config["pretraining"]["max_epochs"] = 1
    return config.interpolate()


def train(task: str, raw_text: Path, out: Path, lang: str = "en") -> None:
    """Pretrain and write the weights.

    Raises:
        OSError: the text does not exist, or the task has no config.
    """
    if not raw_text.is_file():
        raise FileNotFoundError(f"There is no file {raw_text}; experiments.run makes it")
    # The same operations as in the runs that use these weights. spaCy's `train` sets them, but `pretrain` does not.
    from . import numpy_ops  # noqa: F401

    require_cpu()
    config = pretraining_config(read_pair(task)[0], task, raw_text, lang)
    with tempfile.TemporaryDirectory() as folder:
        pretrain(config, Path(folder), silent=False)
        with atomic_file(out) as file:
            file.write_bytes(Path(folder, "model-last.bin").read_bytes())
