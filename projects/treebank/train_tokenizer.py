"""Train the tokenizer of a pipeline on a treebank: words, multiword tokens and sentences.

    python train_tokenizer.py TRAIN.conllu DEV.conllu OUT.udpipe

OUT is a model of UDPipe 1 with a tokenizer only, for `[initialize.tokenizer] path` of a config with `@tokenizers =
"spacy-elmo.UDPipeTokenizer.v1"`. The model is that of the epoch with the best words and sentences in DEV.

The words and spaces of the text come from the columns of words and `SpaceAfter=No`. If the treebank has neither
`SpaceAfter=No` nor `# text`, nobody knows how its text looked, and no model is written: keep spaCy's tokenizer.
"""

import argparse
from pathlib import Path

from ufal.udpipe import InputFormat, ProcessingError, Sentence, Sentences, Trainer

# Tried on the dev parts of Welsh, Maltese, Wolof and Uyghur. The rate and the dropout of UDPipe's defaults find fewer
# sentences, and the falling rate makes the last epochs alike. Segments of 200 characters and 64 dimensions, which
# UDPipe's own models have, find no more in the same time.
OPTIONS = "epochs=24;learning_rate=0.01;learning_rate_final=0.001;dropout=0.3"


def sentences(text: str) -> Sentences:
    """Read sentences in CoNLL-U."""
    reader = InputFormat.newConlluInputFormat()
    reader.setText(text)
    found, sentence, error = Sentences(), Sentence(), ProcessingError()
    while reader.nextSentence(sentence, error):
        found.append(sentence)
        sentence = Sentence()
    if error.occurred():
        raise ValueError(error.message)
    return found


def has_text(treebank: str) -> bool:
    """Return whether a treebank in CoNLL-U shows where its text has spaces."""
    return "# text = " in treebank or "SpaceAfter=No" in treebank


def train(train: str, dev: str, options: str = OPTIONS) -> bytes:
    """Train a tokenizer on a treebank in CoNLL-U, and return the content of a model file. UDPipe prints a line for each
    epoch."""
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
    treebank = args.train.read_text("utf-8-sig")
    args.out.unlink(missing_ok=True)
    if not has_text(treebank):
        print(f"{args.train} has no text (`# text`, SpaceAfter=No): keep spaCy's tokenizer")
        return
    args.out.write_bytes(train(treebank, args.dev.read_text("utf-8-sig")))


if __name__ == "__main__":
    main()
