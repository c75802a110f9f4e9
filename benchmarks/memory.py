"""Memory of elmo in two cases: many Docs that are kept after `doc_cleaner`, and one span of a million words.

Each measurement runs in its own process, so that measurements do not affect each other. Linux only, because resident
memory is read from /proc.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from measuring.process_memory import MB, peak, reset_peak, resident
from measuring.sentences import SAMPLE
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

# The weights of the measurements in docs/speed.md.
WEIGHTS = "en_mini_v4"
ROUNDS = 10
END_WORDS = 10_000


def kept_docs(words: int, *, elmo: bool) -> dict[str, float]:
    """Measure the growth of resident memory by Docs with `words` tokens together, which NER processes and a list keeps.

    There are ten rounds. In the first round the process also allocates memory that it needs only once. So `growth` is
    the growth in the other nine rounds, times 10/9; `growth in all` is the growth in all ten.
    """
    nlp = spacy.blank("en")
    if elmo:
        nlp.add_pipe("elmo", config={"weights": WEIGHTS})
        tok2vec = {"@architectures": "spacy-elmo.ElmoListener.v1"}
        nlp.add_pipe("ner", config={"model": {"tok2vec": tok2vec}})
        nlp.add_pipe("doc_cleaner", config={"attrs": {"_.elmo_layers": None}})
    else:
        nlp.add_pipe("ner")  # it has its own small network
    _initialize(nlp)
    nlp("The weights are loaded now.")
    gc.collect()
    memory = [resident()]
    reset_peak()
    docs: list[Doc] = []
    for _ in range(ROUNDS):
        docs += nlp.pipe(_texts(nlp, words // ROUNDS))
        gc.collect()
        memory.append(resident())
    return {
        "words": sum(map(len, docs)),
        "growth": (memory[-1] - memory[1]) * ROUNDS / (ROUNDS - 1),
        "growth in all": memory[-1] - memory[0],
        "peak": peak() - memory[0],
        "vectors left": sum(doc._.elmo_layers is not None for doc in docs) if elmo else 0,
    }


def _initialize(nlp: Language) -> None:
    doc = nlp.make_doc("Anna lives in Rome.")
    example = Example.from_dict(doc, {"entities": [(0, 4, "PER"), (14, 18, "LOC")]})
    nlp.initialize(lambda: [example])


def _texts(nlp: Language, words: int) -> Iterator[str]:
    """Yield paragraphs of the sample with `words` tokens together. The sample is repeated if necessary."""
    count = 0
    for text in itertools.cycle(SAMPLE.read_text("utf8").splitlines()):
        if count >= words:
            return
        count += len(nlp.make_doc(text))
        yield text


def long_doc(words: int) -> dict[str, float]:
    """Measure the working memory for a Doc of one span, without the float16 average that is stored on it. Compare the
    vectors at its ends with the vectors of short Docs."""
    nlp = spacy.blank("en")
    whole = {"@misc": "spacy-elmo.doc.v1"}
    config = {"weights": WEIGHTS, "store": "average", "dtype": "float16", "get_spans": whole}
    elmo = nlp.add_pipe("elmo", config=config)
    elmo(nlp.make_doc("The weights are loaded now."))
    doc = Doc(nlp.vocab, words=_words(words))
    gc.collect()
    before = resident()
    reset_peak()
    elmo(doc)
    used = peak() - before
    first, last = ends(elmo, doc, END_WORDS)
    kept = doc._.elmo.shape
    output = kept[0] * kept[1] * np.dtype("float16").itemsize / MB
    return {
        "words": len(doc),
        "output": output,
        "working": used - output,
        "first words differ by": first,
        "last words differ by": last,
    }


def ends(elmo: Callable[[Doc], Doc], doc: Doc, words: int) -> tuple[float, float]:
    """Return the largest differences between the vectors of a Doc and of two short Docs with its first and last words.

    The forward half of a vector depends only on the words before it, so it must be the same for the first words. The
    backward half depends only on the words after it, so it must be the same for the last words.
    """
    tokens = [token.text for token in doc]
    start = elmo(Doc(doc.vocab, words=tokens[:words]))._.elmo
    end = elmo(Doc(doc.vocab, words=tokens[-words:]))._.elmo
    half = start.shape[1] // 2
    whole = doc._.elmo
    return (
        float(np.abs(whole[: len(start), :half] - start[:, :half]).max()),
        float(np.abs(whole[-len(end) :, half:] - end[:, half:]).max()),
    )


def _words(count: int) -> list[str]:
    """Return words of the sample in random order. Every tenth word is unique, like names and numbers in real text."""
    sample = SAMPLE.read_text("utf8").split()
    chosen = np.random.default_rng(0).integers(len(sample), size=count)
    return [
        f"{sample[row]}{index}" if index % 10 == 9 else sample[row]
        for index, row in enumerate(chosen)
    ]


MEASUREMENTS: dict[str, Callable[[int], dict[str, float]]] = {
    "kept Docs without elmo": lambda words: kept_docs(words, elmo=False),
    "kept Docs with elmo": lambda words: kept_docs(words, elmo=True),
    "one long Doc": long_doc,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--words", type=int, default=1_000_000, help="number of words of every measurement"
    )
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument(
        "--only", choices=list(MEASUREMENTS), help="measure only this, in this process; print JSON"
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.only:
        print(json.dumps(MEASUREMENTS[args.only](args.words)))
        return
    results: dict[str, dict[str, Any]] = {}
    for name in MEASUREMENTS:
        command = [sys.executable, __file__, "--only", name]
        options = ["--words", str(args.words), "--threads", str(args.threads)]
        done = subprocess.run([*command, *options], stdout=subprocess.PIPE, check=True)
        results[name] = json.loads(done.stdout)
        print(f"\n{name} ({results[name].pop('words'):,} words)")
        for label, value in results[name].items():
            digits = ".4g" if "differ" in label else ".0f"
            print(f"  {label:24}{value:12,{digits}}")
    without, with_elmo = (results[name]["growth"] for name in list(MEASUREMENTS)[:2])
    print(f"\ngrowth with elmo / without: {with_elmo / without:.2f}   (sizes in MB)")
    if args.out:
        args.out.write_text(json.dumps(results, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()
