"""Serving from threads and processes while another thread trains, and for a long time: `python -m tests.endurance`.

All vectors equal those of one thread, and memory does not grow. A failure ends the script.
"""

import argparse
import multiprocessing
import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from spacy.language import Language

from tests import pipelines

_WEIGHTS = "en_mini_v3"
_WARM_UP = 0.2
_MB = 1e6


def main() -> None:
    """Parse, run, and print a line for each part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--predictions", type=int, default=500, help="of each thread")
    parser.add_argument("--processes", type=int, default=5, help="of each start method")
    parser.add_argument("--docs", type=int, default=100_000, help="of the long stream")
    arguments = parser.parse_args()
    print(concurrent(arguments.threads, arguments.predictions, arguments.processes), flush=True)
    print(long_stream(arguments.docs), flush=True)


def concurrent(threads: int, predictions: int, processes: int) -> str:
    """Compare predictions in threads, forked and spawned processes with serial ones while another thread trains.

    It trains a tagger on the same frozen elmo, and a second elmo that is not frozen.
    """
    nlp = pipelines.listening(_WEIGHTS, frozen=True)
    other = pipelines.listening(_WEIGHTS)
    optimizers = [pipelines.trained(nlp), pipelines.trained(other)]
    texts = list(_texts(predictions))
    expected = [_vectors(nlp, text) for text in texts]
    stop, steps = threading.Event(), [0]

    def train() -> None:
        while not stop.is_set():
            for pipeline, optimizer in zip((nlp, other), optimizers, strict=True):
                pipelines.step(pipeline, optimizer)
            steps[0] += 1

    trainer = threading.Thread(target=train)
    trainer.start()
    try:
        with ThreadPoolExecutor(threads) as pool:
            work = [(number, nlp, texts, expected) for number in range(threads)]
            differing = sum(pool.map(_count_differing, work))
        started = time.monotonic()
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            for _ in range(processes):
                process = context.Process(target=_compare, args=(nlp, texts[:20], expected[:20]))
                process.start()
                process.join(120)
                assert process.exitcode == 0, f"{method}: exit code {process.exitcode}"
    finally:
        stop.set()
        trainer.join()
    assert not differing, f"{differing} of {threads * predictions} predictions differ"
    return (
        f"{threads} threads x {predictions} predictions, {processes} processes each by fork and spawn"
        f" ({time.monotonic() - started:.0f} s), while a thread took {2 * steps[0]} training steps: all equal"
    )


def long_stream(docs: int) -> str:
    """Measure the growth of resident memory in `nlp.pipe` over Docs of mixed lengths, after a fifth of them."""
    nlp = pipelines.blank(_WEIGHTS)
    words, measured, begun = 0, [], time.monotonic()
    for number, doc in enumerate(nlp.pipe(_texts(docs), batch_size=128)):
        words += len(doc)
        if number % max(docs // 50, 1) == 0:
            measured.append(_resident() / _MB)
    after_warm_up = measured[int(_WARM_UP * len(measured)) :]
    growth = after_warm_up[-1] - after_warm_up[0]
    shown = ", ".join(f"{size:.0f}" for size in measured[::10])
    minutes = (time.monotonic() - begun) / 60
    assert growth < 20, f"{growth:.1f} MB; {shown}"
    return f"{docs:,} Docs, {words:,} words, {minutes:.1f} minutes: {growth:+.1f} MB ({shown})"


def _texts(number: int) -> Iterator[str]:
    """Yield texts of mixed lengths, most of them short, with the words of the sample corpus."""
    folder = Path(__file__).parent.parent / "corpus/sample/pretrain-en"
    words = sorted({word for path in folder.glob("*.txt") for word in path.read_text().split()})
    draw = random.Random(0)
    for _ in range(number):
        length = draw.choice((0, 1, 2, 3, 5, 8, 12, 20)) if draw.random() < 0.999 else 2_000
        yield " ".join(draw.choices(words, k=length)) + draw.choice(("", ".", "\n\n", "  "))


def _resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _vectors(nlp: Language, text: str) -> np.ndarray:
    return nlp.get_pipe("elmo")(nlp.make_doc(text))._.elmo


def _count_differing(work: tuple[int, Language, list[str], list[np.ndarray]]) -> int:
    number, nlp, texts, expected = work
    elmo = nlp.get_pipe("elmo")
    order = random.Random(number).sample(range(len(texts)), len(texts))
    actual = ((place, elmo(nlp.make_doc(texts[place]))._.elmo) for place in order)
    return sum(not np.allclose(vectors, expected[place], atol=1e-5) for place, vectors in actual)


def _compare(nlp: Language, texts: list[str], expected: list[np.ndarray]) -> None:
    for text, vectors in zip(texts, expected, strict=True):
        actual = nlp.get_pipe("elmo")(nlp.make_doc(text))._.elmo
        assert np.allclose(actual, vectors, atol=1e-5)


if __name__ == "__main__":
    main()
