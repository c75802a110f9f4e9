"""Rounds in which contenders take turns, each in its own process. So other load on the machine affects all of them.

The sentences of a batch have similar lengths, which is the best case for contenders that pad. Before every measurement
the biLM clears its cache of words and processes the same 512 other sentences. So for all batch sizes, the times are
those in the middle of a text.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from measuring.sentences import read_sentences
from measuring.sizes import SIZES

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights

from .contender_process import ContenderProcess
from .contenders import RUNNING_TEXT
from .targets import Side
from .transformer import write_transformer

TRANSFORMERS = {"BERT-base": 12, "BERT, 6 layers": 6}
"""Number of layers of each transformer."""
TRANSFORMERS_WITH = "small"
"""The size of the biLM with which transformers are compared. They have only one size, so they run once."""
SENTENCES = {"mini": 512, "base": 512, "small": 128, "original": 64}
"""Least number of sentences of a round for each size. The slowest contender needs some seconds for them."""


@dataclass
class Result:
    """Measurements of one contender at one batch size."""

    threads: int
    size: str
    side: Side
    batch: int
    speeds: list[float]
    """Words per second in each round."""
    peak: float
    """The largest memory in MB, minus the memory after all imports."""

    @property
    def speed(self) -> float:
        """Words per second, as the median over the rounds."""
        return statistics.median(self.speeds)

    def times(self, slower: Result) -> float:
        """Return how many times as fast this contender is, as the median of the ratios in each round."""
        pairs = zip(self.speeds, slower.speeds, strict=True)
        return statistics.median(fast / slow for fast, slow in pairs)


@dataclass
class Round:
    """The sentences of a round, from `start` to `stop` (not included), and the number of sentences in a batch."""

    batch: int
    start: int
    stop: int


def compare(
    size: str,
    sides: Sequence[Side],
    *,
    batches: Sequence[int],
    rounds: int,
    threads: int,
    text: Path,
    allennlp: Path | None,
) -> list[Result]:
    """Measure contenders of one size with all batch sizes.

    If the process of a contender fails, for example because it pads 256 sentences and runs out of memory, it has no
    result for this batch size and the following ones.

    Args:
        sides: the contenders; see `contenders`.
        text: raw text, one paragraph per line.
        allennlp: the folder into which pip has installed AllenNLP.
    """
    plan = _plan(batches, rounds, SENTENCES[size])
    sentences = _sentences(text, plan)
    with TemporaryDirectory() as folder, ExitStack() as stack:
        files = Path(folder)
        _write_files(files, size, sides, sentences)
        processes = {
            side: stack.enter_context(
                ContenderProcess(side.kind, side.precision, files, threads, allennlp)
            )
            for side in sides
        }
        results = {
            (side, batch): Result(threads, size, side, batch, [], 0.0)
            for batch in batches
            for side in sides
        }
        for part in plan:
            words = sum(map(len, sentences[part.start : part.stop]))
            for side, process in list(processes.items()):
                try:
                    measurement = process.measure(part.start, part.stop, part.batch)
                except RuntimeError as error:
                    print(error, file=sys.stderr)
                    del processes[side]
                    for batch in batches[batches.index(part.batch) :]:
                        del results[side, batch]
                    continue
                result = results[side, part.batch]
                result.speeds.append(words / measurement["seconds"])
                result.peak = max(result.peak, measurement["peak"])
    return list(results.values())


def contenders(size: str, precisions: Sequence[str], *, allennlp: bool) -> Iterator[Side]:
    """Yield all contenders of a size."""
    for precision in precisions:
        yield Side("network", precision)
        yield Side("nlp.pipe", precision)
        if precision != "int8":
            yield Side("products", precision)
    if size != "original":  # its export has 375 MB
        yield Side("onnxruntime")
    if allennlp:
        yield Side("AllenNLP")
    if size == TRANSFORMERS_WITH:
        yield from map(Side, TRANSFORMERS)


def _plan(batches: Sequence[int], rounds: int, minimum: int) -> list[Round]:
    plan: list[Round] = []
    start = 0
    for batch in batches:
        for _ in range(rounds):
            plan.append(Round(batch, start, start + max(batch, minimum)))
            start = plan[-1].stop
    return plan


def _sentences(path: Path, plan: list[Round]) -> list[list[str]]:
    """Return the sentences of the plan in its order, then the sentences for warm-up. A short text is repeated."""
    count = plan[-1].stop + RUNNING_TEXT
    distinct = [words for words in read_sentences(path, 40 * count) if words]
    sentences = (distinct * -(-count // len(distinct)))[:count]
    for part in plan:
        sentences[part.start : part.stop] = sorted(sentences[part.start : part.stop], key=len)
    return sentences


def _write_files(
    folder: Path, size: str, sides: Sequence[Side], sentences: list[list[str]]
) -> None:
    torch.manual_seed(0)
    Weights.from_bilm(BiLM(SIZES[size]), card={"language": "en"}).save(
        folder / "weights.safetensors"
    )
    (folder / "sentences.json").write_text(json.dumps(sentences), "utf8")
    words = {word for sentence in sentences for word in sentence}
    for side in sides:
        if side.kind in TRANSFORMERS:
            write_transformer(folder / side.kind, TRANSFORMERS[side.kind], words)
