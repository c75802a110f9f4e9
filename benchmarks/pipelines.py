"""Words per second of processor time of pipelines that take turns on one text, and their ratios to the first.

OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.pipelines --text heldout.txt PIPELINE PIPELINE ...
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from pathlib import Path

import spacy
import torch
from spacy.language import Language

from benchmarks.sentences import SAMPLE


def load(name: str, only: list[str] | None, precision: str) -> Language | None:
    """Load a pipeline with some of its components. None: it has no biLM that could have this precision."""
    nlp = spacy.load(name)
    if precision != "float32":
        if not nlp.has_pipe("elmo"):
            return None
        nlp = spacy.load(name, config={"components": {"elmo": {"precision": precision}}})
    for pipe in [pipe for pipe in nlp.pipe_names if only and pipe not in only]:
        nlp.remove_pipe(pipe)
    return nlp


def words_per_second(nlp: Language, texts: list[str], *, single: bool) -> float:
    """Return the tokens of the texts that the pipeline processes in a second of processor time."""
    start = time.process_time()
    tokens = sum(len(doc) for doc in (map(nlp, texts) if single else nlp.pipe(texts)))
    return tokens / (time.process_time() - start)


def main() -> None:
    """Print the median of each pipeline, and the median of its ratios to the first pipeline in the same round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipelines", nargs="+", help="installed packages, or folders")
    parser.add_argument("--text", type=Path, default=SAMPLE, help="text with a paragraph per line")
    parser.add_argument("--paragraphs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--only", nargs="+", help="remove all other components, for example: elmo ner"
    )
    parser.add_argument(
        "--bfloat16", action="store_true", help="pipelines with a biLM also in bfloat16"
    )
    parser.add_argument("--single", type=int, help="200 texts of so many words, a call for each")
    args = parser.parse_args()
    torch.set_num_threads(1)
    lines = args.text.read_text(encoding="utf-8").splitlines()
    texts = [line for line in lines if line.strip()][: args.paragraphs]
    if args.single:
        words = iter(" ".join(lines).split())
        texts = [" ".join(itertools.islice(words, args.single)) for _ in range(200)]
    loaded = {}
    for name in args.pipelines:
        for precision in ("float32", "bfloat16") if args.bfloat16 else ("float32",):
            if nlp := load(name, args.only, precision):
                loaded[f"{Path(name).name} {precision if precision != 'float32' else ''}"] = nlp
    speeds: dict[str, list[float]] = {name: [] for name in loaded}
    for _ in range(args.rounds):
        for name, nlp in loaded.items():
            speeds[name].append(words_per_second(nlp, texts, single=bool(args.single)))
    first = next(iter(speeds.values()))
    print(f"{'':40}{'words/s':>10}{'ratio':>8}")
    for name, own in speeds.items():
        ratio = statistics.median(a / b for a, b in zip(own, first, strict=True))
        print(f"{name:40}{statistics.median(own):10,.0f}{ratio:8.2f}")


if __name__ == "__main__":
    main()
