"""Memory of elmo beyond the vectors themselves, for one Doc of a million words in one span. Linux only.

python -m benchmarks.memory
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
import spacy
from spacy.tokens import Doc

from benchmarks.sentences import SAMPLE


def megabytes(field: str) -> float:
    """Return a number of /proc/self/status: VmRSS is the resident memory, VmHWM its peak."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s*(\d+)", status)[1]) * 1024 / 1e6  # type: ignore[index]


def working_memory(words: int) -> tuple[float, float]:
    """Return the megabytes of the stored average of a Doc, and of the peak of the other memory.

    Every tenth word is unique, like names and numbers in real text.
    """
    nlp = spacy.blank("en")
    config = {
        "weights": "en_mini_v4", "store": "average", "dtype": "float16",
        "get_spans": {"@misc": "spacy-elmo.doc.v1"},
    }  # fmt: skip
    elmo = nlp.add_pipe("elmo", config=config)
    elmo(nlp.make_doc("The weights are loaded now."))
    sample = SAMPLE.read_text("utf8").split()
    rows = np.random.default_rng(0).integers(len(sample), size=words)
    doc = Doc(
        nlp.vocab,
        words=[f"{sample[r]}{i}" if i % 10 == 9 else sample[r] for i, r in enumerate(rows)],
    )
    before = megabytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # Sets the peak to the current memory.
    elmo(doc)
    stored = doc._.elmo.shape[0] * doc._.elmo.shape[1] * 2 / 1e6
    return stored, megabytes("VmHWM") - before - stored


def main() -> None:
    """Print both sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, default=1_000_000)
    stored, other = working_memory(parser.parse_args().words)
    print(f"stored average: {stored:.0f} MB, peak of the other memory: {other:.0f} MB")


if __name__ == "__main__":
    main()
