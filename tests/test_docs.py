"""The README and the pages in docs/: every block runs as pasted.

A page runs from top to bottom in a folder like a fresh clone, with the files that its reader has (`GIVEN`).
Blocks of `text` are not run; behind a block of Python they are its output, and are compared.
"""

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
import spacy
import srsly
from spacy.cli import app
from spacy.tokens import DocBin
from thinc.api import Adam, Config
from typer.main import get_command
from typer.testing import CliRunner

from spacy_elmo.cli import elmo_cli
from tests import consumers, packages, pipelines, tiny

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
CONSUMERS = (DOCS / "consumers.md").read_text(encoding="utf-8")

NOT_RUN = {
    "make bench": "takes ten minutes; tests/test_benchmarks.py runs it on little text",
    "python -m pip install": "needs the network",
    "python -m spacy project run": "trains for minutes; tests/test_project.py and tests/projects run its commands",
    "python -m spacy package": "fetches setuptools; tests/cli/test_init_config.py runs it without the network",
    "torchrun": "tests/pretraining/test_distributed.py runs several processes",
    "python -m benchmarks": "takes minutes, and other programs; tests/test_benchmarks.py runs them on little text",
    "python -m spacy find-threshold": "tests/test_spacy_commands.py runs it on trained pipelines",
}
"""The beginning of a command that is not run -> the reason."""

SHORTER = {
    "python -m spacy elmo pretrain": "--training.max_steps 2 --training.eval_tokens 100 --training.vocab_size 500"
    " --training.negatives 50 --training.eval_every 2 --training.warmup_steps 0",
    # The vocabulary is that of the teacher.
    "python -m spacy elmo pretrain pretrain_smoke.cfg runs/taught": "--training.max_steps 2 --training.eval_tokens 20",
    "python -m spacy elmo pretrain pretrain_finetune.cfg": "--training.max_steps 2 --training.eval_tokens 20"
    " --training.eval_every 2",
    "python -m spacy train": "--training.max_steps 1 --training.eval_frequency 1",
}
"""The beginning of a command -> the arguments that are appended to make it short; the last entry that fits is taken."""

RUN_ELSEWHERE = {
    "packages.md": "tests/cli/test_init_config.py",
}
"""A page -> the test that runs its commands, on other files and with other checks."""


class Block(NamedTuple):
    """A fenced block of a page."""

    line: int
    language: str
    body: str
    before: str
    """The paragraph before the block."""


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    matches = re.finditer(r"(?:\A|\n)```(\w*)\n(.*?)\n```(?=\n|\Z)", text, re.DOTALL)
    return [
        Block(
            text.count("\n", 0, match.start(1)) + 1,
            match[1],
            match[2] + "\n",
            text[: match.start()].rstrip().split("\n\n")[-1],
        )
        for match in matches
    ]


CONFIGS = [
    pytest.param(block.body, id=f"{page.stem}-{block.line}")
    for page in PAGES
    for block in blocks(page)
    if block.language == "ini" and "[nlp]" in block.body
]


@pytest.fixture
def weights(tmp_path):
    return tiny.save(tmp_path / "w.safetensors", {"language": "en"})


@pytest.mark.parametrize("excerpt", CONFIGS)
def test_excerpt_initializes_trains_and_predicts(excerpt, weights, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = Config().from_str(excerpt, interpolate=False)
    for block in consumers.blocks(config["components"]):
        if block.get("factory") == "elmo" or "bilm" in block:
            block["weights"] = str(weights)
    nlp = consumers.pipeline(consumers.make_small(config))
    nlp.initialize(lambda: consumers.examples(nlp))
    annotating = nlp.config["training"]["annotating_components"]
    losses = pipelines.step(nlp, Adam(0.01), consumers.examples(nlp), annotates=annotating)
    trained = [name for name in nlp.pipe_names if name not in ("sentencizer", "elmo")]
    assert all(losses[name] > 0 for name in trained)
    assert all(pipelines.mixes(nlp.get_pipe(name).model) for name in trained)
    assert len(list(nlp.pipe(consumers.TEXTS))) == len(consumers.TEXTS)


def labelled_files(folder: Path) -> None:
    """Write the labelled sets that `spacy train` is called with."""
    docs = [example.reference for example in consumers.examples(spacy.blank("en"))]
    for part in ("train", "dev"):
        DocBin(docs=docs).to_disk(folder / f"{part}.spacy")


def raw_text(folder: Path) -> None:
    """Write a text of some sentences, one per line."""
    text = ROOT / "corpus" / "sample" / "pretrain-en" / "train-00.txt"
    lines = text.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "text.txt").write_text("".join(lines[:5]), encoding="utf-8")


def little_text(folder: Path) -> None:
    """Leave the beginning of every text and labelled set, because the commands read them whole."""
    for path in (folder / "corpus" / "sample").glob("*/*"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(lines[:100]), encoding="utf-8")


def trained_pipeline(folder: Path) -> None:
    """Train the pipeline that the first commands of train.md make."""
    labelled_files(folder)
    for command in commands(blocks(DOCS / "train.md")[0]):
        run(command, "train.md")


GIVEN = {
    "README.md": little_text,
    "consumers.md": labelled_files,
    "convert.md": raw_text,
    "train.md": labelled_files,
    "trained.md": trained_pipeline,
}
"""A page -> the files that its reader has."""


def two_pipelines() -> dict[str, object]:
    """Return the names of trained.md: a pipeline that has an elmo, and one that is trained."""
    nlp, other = spacy.blank("en"), spacy.load("training/model-best")
    nlp.add_pipe("elmo")
    return {"spacy": spacy, "nlp": nlp, "other": other}


INSTALLED = dict.fromkeys(
    ("README.md", "annotate.md", "faq.md", "programs.md", "serving.md"), "en_elmo_web"
)
"""A page -> the package in models/ that its reader has installed."""

NAMES = {"trained.md": two_pipelines}
"""A page -> the names that each of its blocks of Python starts with."""


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A folder with those parts of the repository that the pages name, and nothing that they could change in it."""
    folder = tmp_path / "clone"
    folder.mkdir()
    for name in ("configs", "corpus/sample", "scripts"):
        shutil.copytree(ROOT / name, folder / name)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[] if page.name == "README.md" else pytest.mark.slow)
        for page in PAGES
        if page.name not in RUN_ELSEWHERE
    ],
)
def test_page_runs_as_pasted(page, clone, tmp_path, monkeypatch):
    if page.name in GIVEN:
        GIVEN[page.name](clone)
    if page.name in INSTALLED:
        package = packages.copy(packages.MODELS / INSTALLED[page.name], tmp_path)
        packages.install(package, tmp_path / "site")
        monkeypatch.syspath_prepend(tmp_path / "site")
    namespace, output = {}, None
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        if block.language == "python":
            if page.name in NAMES:
                namespace = NAMES[page.name]()
            with redirect_stdout(io.StringIO()) as stdout:
                exec(compile(block.body, where, "exec"), namespace)
            output = stdout.getvalue()
            continue
        if block.language == "bash":
            for line in commands(block):
                for command in line.split(" && "):
                    run(command, where)
        elif block.language == "ini":
            run_config(block)
        elif block.language == "json":
            json.loads(block.body)
        elif output:
            assert block.body == output, where
        output = None


def commands(block: Block) -> list[str]:
    """Return the commands of a block, a line each, without the comments behind them."""
    lines = (re.sub(r"(^|\s\s+)#.*", "", line).strip() for line in block.body.splitlines())
    return [line for line in lines if line]


def excused(command: str) -> bool:
    """Return True if a command is not run (see `NOT_RUN`)."""
    return any(command.startswith(beginning) for beginning in NOT_RUN)


def run(command: str, where: str) -> None:
    """Run a command of a page: spaCy's in this process, which has imported all that takes time, others in a shell."""
    if excused(command):
        return
    fitting = [extra for beginning, extra in SHORTER.items() if command.startswith(beginning)]
    command = " ".join([command, *fitting[-1:]])
    words = shlex.split(command)
    if words[:3] == ["python", "-m", "spacy"] and not set(words) & {"|", ">", "<"}:
        result = CliRunner().invoke(app, words[3:])
        assert result.exit_code == 0, f"{where}: {command}\n{result.output}{result.exception!r}"
        return
    shell = f'set -euo pipefail; python() {{ "{sys.executable}" "$@"; }}; {command}'
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(["bash", "-c", shell], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{where}: {command}\n{done.stdout}{done.stderr}"


def run_config(block: Block) -> None:
    """Save a config under the name that the page gives, or make the pipeline of which it is a part."""
    name = re.search(r"Save this as `([\w.]+)`", block.before)
    if name:
        Path(name[1]).write_text(block.body, encoding="utf-8")
    if "[nlp]" in block.body:
        return  # test_excerpt_initializes_trains_and_predicts
    config = Config().from_str(f"[nlp]\nlang = 'en'\n[components]\n{block.body}".replace("'", '"'))
    config["nlp"]["pipeline"] = list(config["components"])
    assert consumers.pipeline(config).pipe_names == config["nlp"]["pipeline"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_not_run_exists(page):
    """Commands of a project are in its project.yml, programs are files, and synopses name commands of ours."""
    ours = get_command(elmo_cli).commands
    for block in blocks(page):
        cloned = re.search(r"python -m spacy project clone (\S+)", block.body)
        project = srsly.read_yaml(ROOT / (cloned[1] if cloned else "") / "project.yml")
        names = {command["name"] for command in project["commands"]} | set(project["workflows"])
        given = set(re.findall(r"--vars\.(\w+)", block.body))
        if "project run" in block.body:
            assert given <= set(project["vars"])
        for command in re.findall(r"python -m spacy project run ([\w-]+)", block.body):
            assert command in names
        for program in re.findall(r"python ((?:benchmarks|scripts)/\w+\.py)", block.body):
            assert (ROOT / program).is_file()
        for command in re.findall(r"python -m spacy elmo ([\w-]+)", block.body):
            assert command in ours
