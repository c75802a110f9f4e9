"""The command `prepare`, and the config files of both commands."""

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from confection import Config

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights
from tests.commands import elmo

CONFIG = """
[prepare]
tokenized = true
"""

RUN = """
[model]
dim = 8
projection = 4
char_dim = 4
filters = [[1, 4], [3, 4]]
highways = 1
max_characters = 12

[training]
max_epochs = 5
vocab_size = 6
negatives = 4
max_length = 7
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "run.cfg").write_text(CONFIG)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("the owl sees the cat .\n" * 200)
    return tmp_path


def command(files, *options) -> tuple:
    return ("prepare", files / "run.cfg", files / "corpus", "--paths.raw_text", files, *options)


def test_it_says_how_many_files_it_reads_and_needs_no_limit(files):
    (files / "dev").mkdir()
    shutil.copy(files / "a.txt", files / "dev")
    code, output = elmo(*command(files, "--paths.dev_text", files / "dev"))
    assert code == 0, output
    assert "files: 2" in output and "files: 1" in output
    assert "training sentences 400" in output and "held-out sentences 200" in output


def test_it_says_what_a_run_would_see_and_cost(files):
    (files / "run.cfg").write_text(CONFIG + RUN)
    (files / "b.txt").write_text("the owl sees the extraordinarily long-winded cat .\n" * 200)
    (files / "dev").mkdir()
    (files / "dev" / "dev.txt").write_text("the cat sees a kangaroo .\n")
    options = ("--paths.dev_text", files / "dev")
    code, output = elmo(*command(files, *options, "--prepare.n_process", 2))
    assert code == 0, output
    for row in (
        # Two sentences, 200 times each: "the" (4 times), "owl", "sees", "cat" and "." (twice), and two long words.
        "training words 2,800 training sentences 400 held-out words 6 held-out sentences 1 types 9",
        "vocabulary 6, covers 57.1% of the training words and 33.3% of the held-out words",
        "cut words 14.286% of the training words (longer than 10 bytes)",
        "cut sentences 50.00% of the training sentences (longer than 7 words)",
        "passes 5.0 over the training words",
        "one pass over the corpus 0:00:0",
        "for 14,000 words peak memory ",
    ):
        assert row in output, row


def test_a_vocabulary_of_all_words_is_called_too_large(files):
    """A small text has the number of classes that suits a large text."""
    (files / "run.cfg").write_text(CONFIG + RUN)
    (files / "dev").mkdir()
    (files / "dev" / "dev.txt").write_text("the cat sees a kangaroo .\n")
    options = ("--paths.dev_text", files / "dev")
    code, output = elmo(*command(files, *options, "--training.vocab_size", 100))
    assert code == 0 and "the model never learns <UNK>" in output
    advised = re.search(r"vocab_size to (\d+)", " ".join(output.split()))[1]
    code, output = elmo(*command(files, *options, "--training.vocab_size", advised, "--force"))
    assert code == 0 and "<UNK>" not in output
    many = ("--training.vocab_size", 100, "--training.negatives", 50, "--force")
    code, output = elmo(*command(files, *options, *many))
    assert (
        code == 0
        and f"vocab_size to {advised} and training.negatives to at most {advised}"
        in " ".join(output.split())
    )
    (files / "dev" / "dev.txt").write_text("the cat sees the cat .\n")
    for more in (("--training.vocab_size", 4), ("--training.vocab_size", 100)):
        code, output = elmo(*command(files, *options, *more, "--force"))
        assert "<UNK>" not in output
        (files / "dev" / "dev.txt").write_text((files / "a.txt").read_text())


def test_an_empty_model_is_that_of_the_weights_to_start_from(files):
    config = BiLMConfig.from_dict(Config().from_str(RUN)["model"])
    Weights.from_bilm(BiLM(config)).save(files / "given.safetensors")
    training = RUN[RUN.index("[training]") :]
    (files / "run.cfg").write_text(CONFIG + training)
    options = ("--paths.init", files / "given.safetensors")
    code, output = elmo(*command(files, *options))
    assert code == 0, output
    assert "(longer than 10 bytes)" in output and "words/s" in output


@pytest.mark.parametrize(
    "options, message",
    [
        (("--paths.init", "nowhere"), "nowhere"),
        (("--paths.dev_text", "nowhere"), "No text at 'nowhere'"),
        (("--prepare.tokenized", "false", "--prepare.lang", "zz"), "prepare.lang = 'zz'"),
        (("--prepare.seed",), "[prepare] seed = True"),
    ],
)
def test_bad_input_is_one_message(files, options, message):
    code, output = elmo(*command(files, *options))
    assert code == 1 and message in output
    assert sorted(path.name for path in files.iterdir()) == ["a.txt", "b.txt", "run.cfg"]


@pytest.mark.parametrize(
    "config",
    [
        "[prepare]\nseed = 1\n[prepare]\nseed = 2\n",
        "[prepare]\nseed = 1\nseed = 2\n",
        "[prepare]\nseed\n",
        "seed = 1\n",
        b'[prepare]\nlang = "\xff"\n',
    ],
)
def test_a_config_that_cannot_be_read_is_named(files, config):
    content = config if isinstance(config, bytes) else config.encode()
    (files / "run.cfg").write_bytes(content)
    code, output = elmo(*command(files))
    assert code == 1
    assert "run.cfg is not a valid config file" in output and "<string>" not in output


def test_killed_it_leaves_no_corpus_and_the_next_run_works(files):
    """SIGKILL arrives after the tokenization, when the corpus is half written."""
    program = """
import os, signal
from spacy_elmo.cli import elmo_cli
from spacy_elmo.pretraining.corpus import prepare

prepare.np.save = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
elmo_cli()
"""
    killed = subprocess.run(
        [sys.executable, "-c", program, *map(str, command(files))],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (files / "corpus").exists()
    assert len([*files.glob(".corpus.*.partial/raw_text.bin")]) == 1
    code, output = elmo(*command(files))
    assert code == 0, output
    assert not [*files.glob(".*.partial")]
