"""Damaged weights files, checkpoints and prepared corpora: each is loaded with its content, or refused by an error
that names the file.

python -m tests.fuzz weights 0 1000     a thousand seeds of a target; prints its defects, and counts at the end
python -m tests.fuzz --minutes 10       all targets in turn, each in a process of its own, with new seeds
"""

import copy
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch

from spacy_elmo.bilm import weights as weights_module
from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import StartState, Weights
from spacy_elmo.pretraining import checkpoint
from spacy_elmo.pretraining import trainer as trainer_module
from spacy_elmo.pretraining.config import Paths, Prepare, PretrainConfig
from spacy_elmo.pretraining.corpus import Corpus
from spacy_elmo.pretraining.distributed import Processes
from spacy_elmo.pretraining.prepare import prepare
from spacy_elmo.pretraining.source_weights import SourceWeights
from tests import tiny
from tests.pretraining.conftest import MODEL, raw_text

MAX_BYTES = 2 << 30
"""Memory that loading a damaged file of some kilobytes may take."""


@dataclass(frozen=True)
class Target:
    """A loader, with the files that it loads."""

    make: Callable[[Path], object]
    """Writes valid files into a folder."""
    load: Callable[[Path], object]
    """Loads the files of a folder, and returns all that must not change without an error."""
    files: str
    """Glob pattern of the files to damage."""
    seal: Callable[[Path], object] | None = None
    """Corrects the digest of a damaged file, as its author could. Then other content is no defect."""


def make_weights(folder: Path) -> None:
    torch.manual_seed(0)
    bilm = tiny.bilm(tiny.lexicon_config())
    start = StartState(torch.randn(2, 2, 5), torch.randn(2, 2, 7))
    head = Head(len(tiny.LEXICON), bilm.config.projection)
    card = {"language": "en", "n": [1, {"a": None}]}
    weights = Weights.from_bilm(bilm, head, vocabulary=tiny.LEXICON, card=card, start_state=start)
    weights.save(folder / "w.safetensors")


def load_weights(folder: Path) -> object:
    weights = Weights.load(folder / "w.safetensors")
    weights.build_bilm()
    weights.build_head()
    return weights.config, weights.card, weights.vocabulary, sorted(weights.tensors.items())


def seal_weights(folder: Path) -> None:
    path = folder / "w.safetensors"
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    metadata = header["__metadata__"]
    metadata["digest"] = weights_module._digest(metadata, safetensors.torch.load(data))
    path.write_bytes(with_length(json.dumps(header).encode(), data[8 + size :]))


def make_corpus(folder: Path) -> None:
    text = folder / "raw.txt"
    text.write_text(raw_text(), "utf8")
    prepare(Paths(raw_text=str(text)), Prepare(tokenized=True), folder / "corpus")


def load_corpus(folder: Path) -> object:
    corpus = Corpus.open(folder / "corpus")
    parts = [(np.array(part.ids), part.offsets) for part in (corpus.train, corpus.dev)]
    return corpus.types, corpus.counts, parts, corpus.lang, corpus.tokenizer, corpus.spelling


def trainer(folder: Path) -> trainer_module.Trainer:
    training = {"max_steps": 3, "vocab_size": 10, "negatives": 4, "batch_tokens": 16}
    config = PretrainConfig.read({"model": MODEL, "training": training})
    corpus = Corpus.open(folder / "corpus")
    return trainer_module.Trainer(config, corpus, torch.device("cpu"), Processes(), SourceWeights())


def make_checkpoint(folder: Path) -> None:
    make_corpus(folder)
    run = trainer(folder)
    run.advance()
    checkpoint.save_checkpoint(run.state(), folder)


def load_checkpoint(folder: Path) -> object:
    run, state = trainer(folder), checkpoint.load_checkpoint(folder)
    assert state is not None
    run.load_state(state, folder)
    return run.state()


TARGETS = {
    "weights": Target(make_weights, load_weights, "w.safetensors"),
    "weights-sealed": Target(make_weights, load_weights, "w.safetensors", seal_weights),
    "checkpoint": Target(make_checkpoint, load_checkpoint, "checkpoint/current.pt"),
    "corpus": Target(make_corpus, load_corpus, "corpus/*"),
}


NUMBERS = (
    0, -1, 1, 2, 7, 255, 256, (1 << 31) - 1, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, -(1 << 63),
    10**30, 0.5, 1e-300, 1e308, float("nan"), float("inf"),
)  # fmt: skip
TEXTS = (
    "", "\n", "\0", "a" * 5000, "../../etc/passwd", "\ud800", "é" * 60, "null", "-1", "F16", "I64", "BF16",
)  # fmt: skip


def damaged_bytes(draw: random.Random, data: bytes) -> bytes:
    """Change, insert, delete or cut off bytes, one to four times."""
    content = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        # What describes a file lies mostly at its beginning or its end.
        place = draw.randrange(max(1, min(len(content), draw.choice((16, 512, 1 << 40)))))
        place = len(content) - 1 - place if draw.random() < 0.25 else place
        kind = draw.randrange(6)
        if kind < 2 and content:
            content[place] ^= 1 << draw.randrange(8)
        elif kind == 2:
            size = draw.choice((1, 2, 4, 8))
            number = draw.choice([n for n in NUMBERS if isinstance(n, int)])
            content[place : place + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
        elif kind == 3:
            content[place:place] = draw.randbytes(draw.choice((1, 8, 300)))
        elif kind == 4:
            del content[place : place + draw.choice((1, 4, 64))]
        else:
            del content[draw.choice((place, draw.randrange(len(content) + 1))) :]
    return bytes(content)


def damaged_json(draw: random.Random, data: bytes) -> bytes:
    """Damage JSON as bytes, by deep nesting, or as a value."""
    kind = draw.randrange(6)
    if kind == 0:
        return damaged_bytes(draw, data)
    if kind == 1:
        nested = b"[" * draw.choice((50, 100_000)) + b"0"
        place = draw.randrange(len(data) + 1)
        return data[:place] + nested + data[place:]
    return json.dumps(damaged_value(draw, json.loads(data))).encode()


def damaged_value(draw: random.Random, value: Any) -> Any:
    """Return a copy of a JSON value in which one to three places are replaced, removed, renamed or wrapped."""
    value = copy.deepcopy(value)
    for _ in range(draw.choice((1, 1, 2, 3))):
        places: list[tuple[Any, Any]] = []
        containers = [value]
        for container in containers:
            if isinstance(container, dict | list):
                keys = list(container) if isinstance(container, dict) else range(len(container))
                places += [(container, key) for key in keys]
                containers += [container[key] for key in keys]
        if not places:
            return draw.choice((*NUMBERS, *TEXTS, None, True, [], {}))
        parent, key = draw.choice(places)
        kind = draw.randrange(7)
        if kind < 3:
            parent[key] = draw.choice((*NUMBERS, *TEXTS, None, True, [], {}, [[]]))
        elif kind == 3 and isinstance(parent[key], int | float):
            parent[key] = draw.choice((parent[key] + 1, -parent[key], parent[key] * 2))
        elif kind == 4:
            parent[key] = draw.choice(([parent[key]], {"a": parent[key]}, [parent[key]] * 3))
        elif kind == 5 and isinstance(parent, dict):
            parent[draw.choice(TEXTS)] = parent.pop(key)
        else:
            del parent[key]
    return value


def damaged_safetensors(draw: random.Random, data: bytes) -> bytes:
    """Damage the bytes, the header, or a JSON text inside the header."""
    if draw.random() < 0.4:
        return damaged_bytes(draw, data)
    size = int.from_bytes(data[:8], "little")
    header, rest = data[8 : 8 + size], data[8 + size :]
    if draw.random() < 0.4:
        return with_length(damaged_json(draw, header), rest)
    entries = json.loads(header)
    metadata = entries["__metadata__"]
    if draw.random() < 0.5:
        key = draw.choice(sorted(metadata))
        metadata[key] = damaged_bytes(draw, metadata[key].encode()).decode("utf8", "replace")
    else:
        entries = damaged_value(draw, entries)
    return with_length(json.dumps(entries).encode(), rest)


def with_length(header: bytes, data: bytes) -> bytes:
    """Return a safetensors file from a header and the bytes after it."""
    return len(header).to_bytes(8, "little") + header + data


def damage(target: Target, folder: Path, seed: int) -> None:
    """Damage one file of a target. The seed determines the damage."""
    draw = random.Random(seed)
    path = draw.choice(sorted(folder.glob(target.files)))
    kinds = {".json": damaged_json, ".safetensors": damaged_safetensors}
    path.write_bytes(kinds.get(path.suffix, damaged_bytes)(draw, path.read_bytes()))
    if target.seal is not None:
        try:
            target.seal(folder)
        except Exception:  # what cannot be parsed cannot be sealed either
            pass


def same(left: Any, right: Any) -> bool:
    """Return True if two values are equal, with arrays compared by type and bits."""
    if isinstance(left, torch.Tensor | np.ndarray):
        a, b = np.asarray(left), np.asarray(right)
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def outcome(target: Target, folder: Path, expected: object) -> tuple[str, str]:
    """Load damaged files. Return "equal", "refused", "other" or "defect", and what is wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            actual = target.load(folder)
    except (ValueError, OSError) as error:
        text = "".join(traceback.format_exception(error))
        is_named = str(folder) in str(error) or target.seal is not None
        if not is_named or "MemoryError" in text:
            return "defect", text
        return "refused", ""
    except Exception as error:
        return "defect", "".join(traceback.format_exception(error))
    if same(actual, expected):
        return "equal", ""
    return ("other", "") if target.seal is not None else ("defect", "other content")


def run(name: str, first: int, number: int) -> bool:
    """Load the files of a target with the damage of each seed. Print defects and counts; return True if there is no
    defect. A crash or a hang ends the process after the seed was printed."""
    target, counts = TARGETS[name], Counter[str]()
    with tempfile.TemporaryDirectory() as place:
        valid, folder = Path(place, "valid"), Path(place, "damaged")
        valid.mkdir()
        target.make(valid)
        expected = target.load(valid)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MAX_BYTES, resource.RLIM_INFINITY))
        for seed in range(first, first + number):
            shutil.copytree(valid, folder)
            damage(target, folder, seed)
            print(f"\r{name} {seed}", end="", flush=True)
            kind, detail = outcome(target, folder, expected)
            counts[kind] += 1
            if kind == "defect":
                print(f": {detail}", flush=True)
            shutil.rmtree(folder)
    print(f"\r{name}: {dict(counts)}", flush=True)
    return not counts["defect"]


if __name__ == "__main__":
    if sys.argv[1] != "--minutes":
        sys.exit(not run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
    end, code = time.monotonic() + 60 * float(sys.argv[2]), 0
    while time.monotonic() < end:
        seed = random.SystemRandom().randrange(1 << 30)
        for name in TARGETS:
            command = [sys.executable, "-m", "tests.fuzz", name, str(seed), "300"]
            code |= subprocess.run(command, timeout=1200).returncode
    sys.exit(code != 0)
