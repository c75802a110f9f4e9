"""Train the tokenizer of a pipeline on a treebank: words, multiword tokens and sentences.

    python train_tokenizer.py TRAIN.conllu DEV.conllu OUT.udpipe

OUT is a model of UDPipe 1 with a tokenizer only, for `[initialize.tokenizer] path` of a config with `@tokenizers =
"spacy-elmo.UDPipeTokenizer.v1"`. The model is that of the epoch with the best words and sentences in DEV.

The words and spaces of the text come from the columns of words and `SpaceAfter=No`. If `prepare` has chosen spaCy's
tokenizer, nothing is trained.
"""

import argparse
from pathlib import Path
from typing import Any

from spacy.util import load_config

PIPELINE = Path("training/pipeline.cfg")

# Tried on the dev parts of Welsh, Maltese, Wolof and Uyghur. The rate and the dropout of UDPipe's defaults find fewer
# sentences, and the falling rate makes the last epochs alike. Segments of 200 characters and 64 dimensions, which
# UDPipe's own models have, find no more in the same time.
OPTIONS = "epochs=24;learning_rate=0.01;learning_rate_final=0.001;dropout=0.3"


def sentences(text: str) -> Any:
    """Read sentences in CoNLL-U, as UDPipe's `Sentences`."""
    from ufal.udpipe import InputFormat, ProcessingError, Sentence, Sentences

    reader = InputFormat.newConlluInputFormat()
    reader.setText(text)
    found, sentence, error = Sentences(), Sentence(), ProcessingError()
    while reader.nextSentence(sentence, error):
        found.append(sentence)
        sentence = Sentence()
    if error.occurred():
        raise ValueError(error.message)
    return found


def train(train: str, dev: str, options: str = OPTIONS) -> bytes:
    """Train a tokenizer on a treebank in CoNLL-U, and return the content of a model file. UDPipe prints a line for each
    epoch."""
    # Not at the top, because spaCy's tokenizer does not need this package.
    from ufal.udpipe import ProcessingError, Trainer

    error = ProcessingError()
    model = Trainer.train(
        "morphodita_parsito", sentences(train), sentences(dev), options, "none", "none", error
    )
    if error.occurred():
        raise ValueError(error.message)
    return model


def main() -> None:
    """Write the model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train", type=Path, metavar="TRAIN.conllu")
    parser.add_argument("dev", type=Path, metavar="DEV.conllu")
    parser.add_argument("out", type=Path, metavar="OUT.udpipe")
    args = parser.parse_args()
    args.out.unlink(missing_ok=True)
    if PIPELINE.exists() and "tokenizer" not in load_config(PIPELINE)["nlp"]:
        print("The pipeline has spaCy's tokenizer: nothing to train")
        return
    args.out.write_bytes(train(args.train.read_text("utf-8-sig"), args.dev.read_text("utf-8-sig")))


if __name__ == "__main__":
    main()
