"""Contenders that take turns, each in a process of its own, so that whatever else the machine does hits them alike.

Sentences are of like length within a batch, which is the best case of those who pad. Before every reading the
biLM forgets all words and reads the same 512 other sentences, so what is timed is the middle of a text, for every batch
size alike.
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
from contender_process import ContenderProcess
from contenders import RUNNING_TEXT
from sentences import read_sentences
from sizes import SIZES
from targets import Side
from transformer import write_transformer

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights

TRANSFORMERS = {"BERT-base": 12, "BERT, 6 layers": 6}
"""Their layers."""
BESIDE_TRANSFORMERS = "small"
"""They have one size, so they run once, beside this one of ours."""
SENTENCES = {"mini": 512, "small": 128, "original": 64}
"""What a round reads at least: some seconds' work for the slowest."""


@dataclass
class Result:
    """Of one contender at one batch size."""

    threads: int
    size: str
    side: Side
    batch: int
    speeds: list[float]
    """Words per second, by round."""
    peak: float
    """MB of memory at its highest, beyond those of a process that has imported everything."""

    @property
    def speed(self) -> float:
        """Words per second."""
        return statistics.median(self.speeds)

    def times(self, slower: Result) -> float:
        """How many times as fast it is: the quotients of the rounds, in both of which the machine was alike."""
        pairs = zip(self.speeds, slower.speeds, strict=True)
        return statistics.median(own / other for own, other in pairs)


@dataclass
class Round:
    """Which sentences are read, and how many at once."""

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
    """Let contenders of a size read at all batch sizes.

    One that dies, as who pads 256 sentences may for want of memory, has no result for that batch size and later ones.

    Args:
        sides: who takes part; see `contenders`.
        text: raw text, a paragraph a line.
        allennlp: where pip has put it.
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
        found = {
            (side, batch): Result(threads, size, side, batch, [], 0.0)
            for batch in batches
            for side in sides
        }
        for part in plan:
            words = sum(map(len, sentences[part.start : part.stop]))
            for side, process in list(processes.items()):
                try:
                    reading = process.read(part.start, part.stop, part.batch)
                except RuntimeError as error:
                    print(error, file=sys.stderr)
                    del processes[side]
                    for batch in batches[batches.index(part.batch) :]:
                        del found[side, batch]
                    continue
                result = found[side, part.batch]
                result.speeds.append(words / reading["seconds"])
                result.peak = max(result.peak, reading["peak"])
    return list(found.values())


def contenders(size: str, precisions: Sequence[str], *, allennlp: bool) -> Iterator[Side]:
    """All that there are for a size."""
    for precision in precisions:
        yield Side("network", precision)
        yield Side("nlp.pipe", precision)
        if precision != "int8":
            yield Side("products", precision)
    if allennlp:
        yield Side("AllenNLP")
    if size == BESIDE_TRANSFORMERS:
        yield from map(Side, TRANSFORMERS)


def _plan(batches: Sequence[int], rounds: int, least: int) -> list[Round]:
    plan: list[Round] = []
    start = 0
    for batch in batches:
        for _ in range(rounds):
            plan.append(Round(batch, start, start + max(batch, least)))
            start = plan[-1].stop
    return plan


def _sentences(path: Path, plan: list[Round]) -> list[list[str]]:
    """What is read, in the order of the plan, and then what warms up; a short text starts again where it ends."""
    count = plan[-1].stop + RUNNING_TEXT
    known = [words for words in read_sentences(path, 40 * count) if words]
    found = (known * -(-count // len(known)))[:count]
    for part in plan:
        found[part.start : part.stop] = sorted(found[part.start : part.stop], key=len)
    return found


def _write_files(
    folder: Path, size: str, sides: Sequence[Side], sentences: list[list[str]]
) -> None:
    torch.manual_seed(0)
    Weights.of(BiLM(SIZES[size]), card={"language": "en"}).write(folder / "weights.safetensors")
    (folder / "sentences.json").write_text(json.dumps(sentences), "utf8")
    words = {word for sentence in sentences for word in sentence}
    for side in sides:
        if side.kind in TRANSFORMERS:
            write_transformer(folder / side.kind, TRANSFORMERS[side.kind], words)
