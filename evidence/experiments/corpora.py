"""Labelled data sets as `.spacy` files. Each is converted once, and cut if the plan uses only a part of it."""

from __future__ import annotations

import math
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spacy.tokens import DocBin

from spacy_elmo.bilm.words.spelling import AS_GIVEN, Spelling
from spacy_elmo.files import atomic_file, atomic_folder, remove_partial

from .ocr_noise import corrupt
from .plan import Corpus, Cut, Plan, Run
from .spelling import respell

FIELDS = ("tokens", "spaces", "flags", "cats", "span_groups", "user_data")
"""Fields of a DocBin that have an entry for each Doc."""


def make(
    plan: Plan,
    corpora: Iterable[Corpus],
    data_folder: Path,
    processes: int,
    spelling: Spelling = AS_GIVEN,
) -> None:
    """Make the files of corpora that do not exist yet, and the complete corpora that they are cut from.

    Args:
        processes: number of converters that run in parallel.
        spelling: the rule that respells the words of the files. Artificial errors are made first, so that the rule
            changes them equally for all variants.

    Raises:
        OSError: the data folder has no such file.
        ValueError: a converter cannot convert its file; the message has the output of the converter.
    """
    corpora = [corpus for corpus in dict.fromkeys(corpora) if not corpus.path.exists()]
    entire = dict.fromkeys(corpus._replace(cut=Cut()) for corpus in corpora)
    missing = [corpus for corpus in entire if not corpus.path.exists()]
    with ThreadPoolExecutor(processes) as pool:
        for _ in pool.map(lambda corpus: _convert(plan, corpus, data_folder, spelling), missing):
            pass
    for corpus in corpora:
        if corpus.cut != Cut():
            docs = DocBin().from_disk(corpus._replace(cut=Cut()).path)
            with atomic_file(corpus.path) as file:
                cut(docs, corpus.cut).to_disk(file)


def absent(plan: Plan, run: Run, data_folder: Path) -> list[Path]:
    """Return the source files that a run needs and that are missing. Files that were already converted do not count."""
    needed = [corpus._replace(cut=Cut()) for corpus in run.corpora if not corpus.path.exists()]
    files = [source(plan, corpus, data_folder) for corpus in needed if not corpus.path.exists()]
    return [file for file in files if not file.is_file()]


def source(plan: Plan, corpus: Corpus, data_folder: Path) -> Path:
    """Return the labelled file that a corpus is made from."""
    return data_folder / plan.content["sources"][str(corpus.data)].format(part=corpus.part)


def _convert(plan: Plan, corpus: Corpus, data_folder: Path, spelling: Spelling) -> None:
    path = source(plan, corpus, data_folder)
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no file {path}; README.md lists the files of the data folder (--vars.data)"
        )
    made_in = corpus.path.with_suffix(".folder")
    made_in.parent.mkdir(parents=True, exist_ok=True)
    # A process that was killed may have left a partial folder.
    remove_partial(made_in.parent, made_in.name)
    with atomic_folder(made_in) as folder:
        out = folder / corpus.path.name
        dev = source(plan, corpus._replace(part="dev"), data_folder)
        paths = {"source": path, "out": out, "folder": folder, "dev": dev}
        arguments = list(plan.content["converters"][corpus.data.task])
        if corpus.part == "train":
            arguments += plan.content.get("train_arguments", {}).get(str(corpus.data), [])
        made = _made([argument.format_map(paths) for argument in arguments], folder)
        if corpus.noise:
            (folder / "noise").mkdir()
            noisy = folder / "noise" / out.name
            corrupt(made, noisy, corpus.noise / 100, seed=0)
            made = noisy
        if spelling:
            respell(DocBin(store_user_data=True).from_disk(made), spelling).to_disk(made)
        made.replace(corpus.path)
    shutil.rmtree(made_in)


def _made(arguments: list[str], folder: Path) -> Path:
    """Run a converter and return the file that it has made in a folder. Converters choose the name of their output."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    made = list(folder.glob("*.spacy"))
    if done.returncode != 0 or len(made) != 1:
        raise ValueError(
            f"{' '.join(command)} has made no file in {folder}\n{(done.stdout + done.stderr).strip()}"
        )
    return made[0]


def cut(docs: DocBin, how: Cut, *, seed: int = 0) -> DocBin:
    """Return some of the Docs, unchanged. A smaller cut is a subset of a larger one.

    The Docs are taken from the serialized form, so no annotation can be lost.
    """
    order = list(range(len(docs)))
    random.Random(seed).shuffle(order)
    first = order[: how.limit]
    chosen = first[: math.ceil(len(first) * how.share / 100)]
    # A DocBin from disk does not store whether it was written with user data.
    part = DocBin(store_user_data=any(data is not None for data in docs.user_data))
    part.attrs, part.strings = docs.attrs, docs.strings
    for field in FIELDS:
        values = getattr(docs, field)
        setattr(part, field, [values[number] for number in chosen])
    return part
