"""Forward perplexity of a biLM and of a Kneser-Ney 5-gram model on the same text with the same vocabulary.

KenLM's `lmplz` estimates the 5-gram model (modified Kneser-Ney, interpolated, without pruning). Both models use a
corpus that `python -m spacy elmo prepare` has written. For both, all words outside the vocabulary are one word,
`<UNK>`, and the targets are the words and the closing boundary of each held-out sentence.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from spacy_elmo.bilm.likelihood import build_language_model
from spacy_elmo.bilm.spelling import UNK
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining.corpus import Batcher, Corpus, Sentences
from spacy_elmo.pretraining.perplexity import perplexity

ORDER, MEMORY = 5, "1G"
_SENTENCES_PER_CHUNK = 1 << 14


def numbered_lines(sentences: Sentences, classes: np.ndarray) -> Iterator[str]:
    """Yield sentences as lines of class numbers, such as `17 4 2`, so that KenLM cannot interpret special words.

    Args:
        classes: (types,) the class of each type. All words outside the vocabulary have the class of `<UNK>`.
    """
    for first in range(0, len(sentences.lengths), _SENTENCES_PER_CHUNK):
        rows = np.arange(first, min(first + _SENTENCES_PER_CHUNK, len(sentences.lengths)))
        ids, lengths = sentences.take(rows)
        words = [str(number) for number in classes[ids].tolist()]
        start = 0
        for length in lengths.tolist():
            yield " ".join(words[start : start + length]) + "\n"
            start += length


def kneser_ney(
    train: Path, test: Path, bin_folder: Path, memory: str = MEMORY
) -> tuple[int, float]:
    """Estimate a model on one file and score another file. Return the number of targets and the perplexity.

    Args:
        memory: memory for `lmplz`, such as 1G; it sorts the rest on disk.

    Raises:
        ValueError: the test file contains words that the training file does not contain.
    """
    model, scratch = train.with_suffix(".arpa"), train.parent
    estimate = ["-o", str(ORDER), "-S", memory, "-T", scratch, "--text", train, "--arpa", model]
    subprocess.run([bin_folder / "lmplz", *estimate], check=True)
    with test.open() as text:
        query = [bin_folder / "query", "-v", "summary", model]
        done = subprocess.run(query, check=True, stdin=text, capture_output=True, text=True)
    summary = dict(line.split(":\t") for line in done.stdout.splitlines())
    if summary["OOVs"] != "0":
        raise ValueError(f"{test} has {summary['OOVs']} words that are not in {train}")
    return int(summary["Tokens"]), float(summary["Perplexity including OOVs"])


def main() -> None:
    """Measure both models and print their perplexities."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path, help="folder of `python -m spacy elmo prepare`")
    parser.add_argument("weights", type=Path, help="weights trained on the corpus, with a head")
    parser.add_argument("kenlm", type=Path, help="folder of KenLM's programs lmplz and query")
    parser.add_argument("--scratch", type=Path, help="folder for some gigabytes of temporary files")
    parser.add_argument("--memory", default=MEMORY, help="memory for lmplz (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    corpus, weights = Corpus.open(args.corpus), Weights.load(args.weights)
    bilm, head = build_language_model(weights)
    size = len(weights.vocabulary)
    ours = perplexity(bilm, head, Batcher(bilm, corpus.types, weights.vocabulary), corpus.dev)
    rows = {word: row for row, word in enumerate(weights.vocabulary)}
    classes = np.array([rows.get(word, rows[UNK]) for word in corpus.types])
    with TemporaryDirectory(dir=args.scratch) as folder:
        files = [Path(folder) / f"{name}.txt" for name in ("train", "heldout")]
        for file, sentences in zip(files, (corpus.train, corpus.dev), strict=True):
            with file.open("w") as out:
                out.writelines(numbered_lines(sentences, classes))
        targets, theirs = kneser_ney(*files, args.kenlm, args.memory)
    if targets != ours.targets:
        raise ValueError(
            f"KenLM has scored {targets} targets, but the biLM {ours.targets}: use the corpus of the weights"
        )
    print(f"{targets:,} targets, {ours.unk_share:.1%} <UNK>, {size:,} classes")
    print(f"Kneser-Ney {ORDER}-gram: {theirs:.1f}")
    print(f"biLM, forward:     {ours.forward:.1f}")
    if args.out:
        report = {
            "name": weights.card.get("name"),
            "targets": targets,
            "vocab_size": size,
            "order": ORDER,
            "kneser_ney": theirs,
            "forward": ours.forward,
            "mean": ours.mean,
            "unk_share": ours.unk_share,
        }
        args.out.write_text(json.dumps(report, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()
