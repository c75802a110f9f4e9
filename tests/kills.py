"""Commands killed by SIGKILL at random moments, and resumed: `python -m tests.kills`.

Nothing that was complete may be lost, and the result after all kills equals that of an unbroken run, bit for bit. The
networks are tiny, so a hundred kills take minutes. A failure ends the script with the seed that repeats it.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import spacy
from spacy.tokens import DocBin

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.embedding.vectors import open_vectors
from spacy_elmo.pretrain.training import checkpoint
from spacy_elmo.search.index import SearchIndex
from tests import pipelines, processes, tiny
from tests.disk import tree

CONFIG = """
[prepare]
tokenized = true

[model]
dim = 16
projection = 8
char_dim = 4
filters = [[1, 4], [3, 8]]
highways = 1

[training]
max_steps = 60
vocab_size = 20
negatives = 8
batch_tokens = 64
log_every = 5
eval_every = 10
save_every = 5
"""
_CHECKPOINT_FILES = ("checkpoint/current.pt", "checkpoint/previous.pt")

Start = Callable[[], list[BaseProcess]]


def main() -> None:
    """Parse, kill, and print a line for each kind of command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pretrain", type=int, default=30, help="kills of pretrain")
    parser.add_argument("--kills", type=int, default=20, help="kills of each other command")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="the commands whose names contain this")
    arguments = parser.parse_args()
    kinds: dict[str, Callable[[int], str]] = {
        "pretrain": lambda kills: pretrain(kills, ranks=1),
        "pretrain in two processes": lambda kills: pretrain(kills, ranks=2),
        "pretrain by torchrun": lambda kills: pretrain(kills, ranks=2, launched=True),
        **{f"embed {format}": embed_in(format) for format in ("safetensors", "hdf5", "parquet")},
        "search index --force": search_index,
        "spacy train with cache_dir": spacy_train,
    }
    for name, kind in kinds.items():
        if arguments.only not in name:
            continue
        random.seed(f"{arguments.seed} {name}")
        kills = arguments.pretrain if name == "pretrain" else arguments.kills
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            write_inputs()
            result = kind(kills)
            os.chdir("/")
        print(f"{name}: {result} ({time.monotonic() - start:.0f} s)", flush=True)


def write_inputs() -> None:
    """Write text, a config, weights, and labelled data to the present folder."""
    draw = random.Random(0)
    lines = [
        f"the {draw.choice(['cat', 'dog', 'bird'])} {draw.choice(['sees', 'hears'])} it ."
        + "\n" * (number % 10 == 9)
        for number in range(600)
    ]
    Path("raw.txt").write_text("\n".join(lines))
    Path("long.txt").write_text("\n".join(f"{number} {'word ' * 60}" for number in range(4_000)))
    Path("short.txt").write_text("\n".join(f"{number} is the number" for number in range(2_000)))
    Path("run.cfg").write_text(CONFIG)
    tiny.save("w.safetensors", {"language": "en"})


def start(*command: str, ranks: int = 1, launched: bool = False) -> list[BaseProcess]:
    """Start a command of the package; `launched`: by `torchrun`, whose imports take seconds."""
    arguments = [*command], Path("output")
    if launched:
        return [processes.start(processes.torchrun, *arguments, ranks)]
    if ranks == 1:
        return [processes.start(processes.command, *arguments)]
    return processes.start_together(processes.command, *arguments, size=ranks)


def finish(running: list[BaseProcess]) -> float:
    """Wait for processes, which must succeed, and return the seconds."""
    begun = time.monotonic()
    for process in running:
        process.join(300)
        if process.exitcode != 0:
            shown = "".join(path.read_text() for path in Path().glob("output*"))
            raise SystemExit(f"exit code {process.exitcode}: {shown}")
    return time.monotonic() - begun


def kill(running: list[BaseProcess], within: float) -> bool:
    """Kill processes and what they have started at a random moment; return False if they have ended before."""
    time.sleep(random.uniform(0, within))
    ended = all(process.exitcode == 0 for process in running)
    alive = [process.pid for process in running if process.is_alive() and process.pid is not None]
    alive += [child for pid in alive for child in processes.descendants(pid)]
    for pid in random.sample(alive, len(alive)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for process in running:
        process.join()
    return not ended


def killed_until_done(first: Start, again: Start, kills: int, check: Callable[[], None]) -> int:
    """Kill a command `kills` times, resuming it in between, and let it finish. Return how often it was begun anew.

    Args:
        first: starts it.
        again: resumes it.
        check: examines what a kill has left.
    """
    seconds, count, rounds = finish(first()), 0, 0
    clean = {path.name for path in Path().iterdir()}
    expected = tree(Path("out"))
    while count < kills:
        remove(Path("out"))
        command, rounds = first, rounds + 1
        for _ in range(6):
            if count == kills or not kill(command(), seconds):
                break
            count += 1
            command = again
            check()
        finish(again())
        actual = tree(Path("out"))
        assert comparable(actual) == comparable(expected), actual.keys() ^ expected.keys()
        assert {path.name for path in Path().iterdir()} == clean
    return rounds


def comparable(files: dict[str, bytes]) -> dict[str, bytes | list[bytes]]:
    """Return files without the seconds that a run has taken; safetensors orders its header anew in each process."""
    kept: dict[str, bytes | list[bytes]] = {}
    for name, data in files.items():
        if name.endswith((*_CHECKPOINT_FILES, "report.html", "log.jsonl", "config.cfg")):
            continue
        if "model-" in name:
            size = 8 + int.from_bytes(data[:8], "little")
            kept[name] = [bytes(sorted(data[:size])), data[size:]]
        else:
            kept[name] = data
    return kept


def remove(path: Path) -> None:
    """Remove a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def pretrain(kills: int, ranks: int, *, launched: bool = False) -> str:
    """Kill `pretrain`, alone or all processes of `torchrun`: no checkpoint is lost."""
    command = ["pretrain", "run.cfg", "out", "--paths.raw_text", "raw.txt"]
    step = 0

    def check() -> None:
        nonlocal step
        state = checkpoint.load(Path("out/checkpoint"))
        now = 0 if state is None else state["step"]
        assert now >= step or step == 60, f"step {now} after step {step}"
        step = now
        for name in ("model-best", "model-last"):
            if Path("out", f"{name}.safetensors").exists():
                Weights.load(f"out/{name}.safetensors")

    def first() -> list[BaseProcess]:
        nonlocal step
        step = 0
        return start(*command, ranks=ranks, launched=launched)

    def again() -> list[BaseProcess]:
        return start(*command, "--resume", ranks=ranks, launched=launched)

    rounds = killed_until_done(first, again, kills, check)
    return f"{kills} kills in {rounds} runs, weights equal those of an unbroken run"


def embed_in(format: str) -> Callable[[int], str]:
    """Return a function that kills `embed` of a format."""

    def run(kills: int) -> str:
        command = ["embed", "w.safetensors", "long.txt", "out", "--lang", "en", "--format", format]

        def check() -> None:
            if format == "safetensors" and Path("out/index.json").exists():
                assert len(open_vectors("out")) == 4_000

        rounds = killed_until_done(
            lambda: start(*command), lambda: start(*command, "--resume"), kills, check
        )
        return f"{kills} kills in {rounds} runs, files equal those of an unbroken run"

    return run


def search_index(kills: int) -> str:
    """Kill `search index --force` over an index: afterwards, the old one or the new one is whole."""
    command = ["search", "index", "w.safetensors", "short.txt", "out", "--lang", "en", "--force"]
    seconds = finish(start(*command, "--layer", "1"))
    new = 0
    for number in range(kills):
        layer = str(number % 3)
        kill(start(*command, "--layer", layer), seconds)
        index = SearchIndex.from_disk("out")
        assert len(index) == 2_000
        new += index.layer == number % 3
    finish(start(*command))
    assert SearchIndex.from_disk("out").layer is None
    left = [path.name for path in Path("out").iterdir()]
    return f"{kills} kills, {new} after the new index was in place, otherwise the old one whole; {left}"


def train(out: str, cache: str) -> None:
    """Run `spacy train` on the words of the labelled data."""
    from spacy.cli.train import train as train_command

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        train_command(Path("train.cfg"), Path(out), overrides={"components.elmo.cache_dir": cache})


def spacy_train(kills: int) -> str:
    """Kill `spacy train` while it fills a cache on disk: the next run finds no wrong layers in it."""
    nlp = pipelines.listening("w.safetensors", frozen=True)
    DocBin(docs=[example.reference for example in pipelines.examples(nlp)] * 40).to_disk("d.spacy")
    config = nlp.config
    for name in ("train", "dev"):
        config["paths"][name] = "d.spacy"
    config["training"] |= {"max_steps": 20, "eval_frequency": 10}
    config.to_disk("train.cfg")
    seconds = finish([processes.start(train, "unbroken", "cache-unbroken")])
    for _ in range(kills):
        kill([processes.start(train, "killed", "cache")], seconds)
    kept = len([*Path("cache").rglob("*.npy")])
    finish([processes.start(train, "killed", "cache")])
    expected, actual = (
        list(spacy.load(Path(out, "model-last")).get_pipe("tagger").model.walk())
        for out in ("unbroken", "killed")
    )
    for one, other in zip(expected, actual, strict=True):
        for name in one.param_names:
            if one.has_param(name):
                assert (one.get_param(name) == other.get_param(name)).all(), name
    return f"{kills} kills, {kept} layers in the cache, the same model as without kills"


if __name__ == "__main__":
    main()
