"""The commands `prepare` and `pretrain`."""

import json
from contextlib import contextmanager

import pytest

from spacy_elmo import weight_names
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.cli import pretrain
from spacy_elmo.cli.pretrain import _format
from spacy_elmo.pretraining.training.trainer import Progress
from spacy_elmo.text.files import observed_reading
from tests.commands import elmo

CONFIG = """
[prepare]
tokenized = true

[model]
dim = 8
projection = 4
char_dim = 4
filters = [[1, 4], [3, 4]]
highways = 1

[training]
max_steps = 6
vocab_size = 100
negatives = 8
batch_tokens = 64
log_every = 2
eval_every = 3
save_every = 3

[card]
licence = "CC0"
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "run.cfg").write_text(CONFIG)
    lines = [
        f"the {noun} sees the cat ." + "\n" * (i % 10 == 9)
        for i in range(200)
        for noun in ("dog", "owl")
    ]
    (tmp_path / "raw.txt").write_text("\n".join(lines))
    return tmp_path


def test_from_text_to_weights(files):
    code, output = elmo(
        "pretrain", files / "run.cfg", files / "out", "--paths.raw_text", files / "raw.txt"
    )
    assert code == 0, output
    assert "training words 1,716" in output and "vocabulary 9, covers 100.0%" in output
    assert sorted(path.name for path in (files / "out").iterdir()) == [
        "checkpoint", "config.cfg", "corpus", "log.jsonl", "model-best.safetensors", "model-last.safetensors",
        "report.html",
    ]  # fmt: skip
    log = (files / "out/log.jsonl").read_text().splitlines()
    assert [json.loads(row)["step"] for row in log] == [2, 3, 4, 6]
    weights = Weights.load(files / "out/model-last.safetensors")
    assert weights.card["licence"] == "CC0" and weights.card["steps"] == 6
    assert weights.build_head().weight.shape == (9, 4)
    # Every column of the table shows: step, epoch, words, loss, three perplexities, speed, time left.
    table, _, closing = output.split("Left ")[1].partition("perplexity: ")
    assert len([cell for cell in table.split() if cell[0].isdigit()]) == 2 * 6 + 2 * 9
    assert "a vocabulary of 9." in closing and "<UNK> targets (0.0% of all targets)" in closing


def test_a_corpus_prepared_once_serves_any_run(files):
    code, output = elmo(
        "prepare", files / "run.cfg", files / "corpus", "--paths.raw_text", files / "raw.txt"
    )
    assert code == 0 and "held-out sentences 114" in output
    (files / "raw.txt").unlink()
    code, output = elmo(
        "pretrain", files / "run.cfg", files / "out", "--paths.corpus", files / "corpus"
    )
    assert code == 0 and not (files / "out/corpus").exists()


def test_a_folder_with_a_run_is_refused(files):
    command = ("pretrain", files / "run.cfg", files / "out", "--paths.raw_text", files / "raw.txt")
    assert elmo(*command)[0] == 0
    before = (files / "out/model-last.safetensors").read_bytes()
    code, output = elmo(*command)
    assert code == 1 and "already contains a run" in output and "--resume" in output
    assert (files / "out/model-last.safetensors").read_bytes() == before
    (files / "out/report.html").unlink()
    code, output = elmo(*command, "--resume")
    assert code == 0 and "Resuming the run" in output and "already complete" in output
    assert (files / "out/model-last.safetensors").read_bytes() == before
    # The last report, too, is made up for, if a kill came before it.
    assert (files / "out/report.html").exists()
    assert elmo(*command, "--force")[0] == 0
    assert elmo(*command, "--force", "--resume")[0] == 1


def test_a_bundled_name_is_a_start(files, monkeypatch):
    command = ("pretrain", files / "run.cfg", files / "out", "--paths.raw_text", files / "raw.txt")
    assert elmo(*command)[0] == 0
    monkeypatch.setattr(weight_names, "FOLDER", files / "bundled")
    (files / "bundled").mkdir()
    given = Weights.load(files / "out/model-best.safetensors").without_head()
    given.save(files / "bundled/en_toy.safetensors")
    code, output = elmo(*command, "--force", "--init", "en_toy")
    assert code == 0, output
    tuned = Weights.load(files / "out/model-best.safetensors")
    assert tuned.card["init"] == given.card


def test_a_bar_counts_the_text_until_the_corpus_is_shown(files, monkeypatch):
    events = []

    @contextmanager
    def reading_bar(text_files):
        events.append([*text_files()])
        with observed_reading(events.append):
            yield
        events.append("closed")

    monkeypatch.setattr(pretrain, "reading_bar", reading_bar)
    monkeypatch.setattr(pretrain, "show_corpus", lambda *_: events.append("shown"))
    text, command = files / "raw.txt", ("pretrain", files / "run.cfg", files / "out")
    assert elmo(*command, "--paths.raw_text", text)[0] == 0
    (named, *sizes, closed, shown) = events
    assert (named, sum(sizes), closed, shown) == ([text], text.stat().st_size, "closed", "shown")
    events.clear()
    assert elmo(*command, "--paths.raw_text", text, "--resume")[0] == 0
    assert events == ["shown"]
    # A bar is gone before the message of an error.
    events.clear()
    text.write_bytes(b"fine\nna\xefve\n")
    code, output = elmo(*command, "--paths.raw_text", text, "--force")
    assert code == 1 and events[-1] == "closed"


@pytest.mark.parametrize(
    "steps, max_minutes, left",
    [
        (0, None, "?"),
        (40, None, "0:01:30"),
        (0, 3.0, "0:02:30"),
        (40, 3.0, "0:01:30"),
        (40, 1.0, "0:00:30"),
        (9, None, "0:00:00"),
    ],
)
def test_time_to_the_first_limit(steps, max_minutes, left):
    """The time is estimated after 10 steps in half a minute."""
    progress = Progress(
        step=10, steps=steps, epoch=0.1, tokens=100, loss=1.0, learn_rate=0.1, grad_norm=1.0, tokens_per_second=3.3,
        minutes=0.5,
    )  # fmt: skip
    assert _format(progress, max_minutes).split()[-1] == left


def test_nothing_to_resume_starts_and_says_so(files):
    code, output = elmo(
        "pretrain",
        files / "run.cfg",
        files / "out",
        "--resume",
        "--paths.raw_text",
        files / "raw.txt",
    )
    assert code == 0 and "Nothing to resume" in output


@pytest.mark.parametrize(
    "args, message",
    [
        (("--training.learn_rat", "0.1"), "[training] learn_rat = 0.1"),
        (("--training.batch_tokens", "0"), "[training] batch_tokens = 0"),
        (("--model.dimm", "3"), "Unknown biLM fields ['dimm']"),
        (("--sytem.seed", "3"), "[sytem]: unknown section"),
        (("--forse",), "This command has no option --forse"),
        (("--training.vocab_size", "null"), "vocab_size = null uses"),
        (("--paths.raw_text", "nowhere/*.txt"), "No text at 'nowhere/*.txt'"),
        ((), "paths.raw_text is missing"),
        (("--gpu-id", "17"), "GPU 17 (`--gpu-id`)"),
        (("--paths.corpus", "nowhere"), "no prepared corpus in nowhere"),
        (("--init", "nowhere"), "Cannot find the weights 'nowhere': there is no file"),
    ],
)
def test_bad_input_is_one_message_and_leaves_no_weights(files, args, message):
    code, output = elmo("pretrain", files / "run.cfg", files / "out", *args)
    assert code == 1
    assert message in output and "Traceback" not in output
    assert not list(files.rglob("*.safetensors"))


def test_text_that_is_not_utf8(files):
    (files / "raw.txt").write_bytes(b"fine\nna\xefve\n")
    command = ("pretrain", files / "run.cfg", files / "out", "--paths.raw_text", files / "raw.txt")
    code, output = elmo(*command)
    assert code == 1 and "raw.txt, line 2" in output.replace("raw.txt , ", "raw.txt, ")
    # Refused for the text alone: once the text is mended, the same command works.
    (files / "raw.txt").write_text("the owl sees the cat .\n\n" * 300)
    code, output = elmo(*command)
    assert code == 0, output


def test_a_config_that_is_not_there(files):
    code, output = elmo("pretrain", files / "none.cfg", files / "out")
    assert code == 1 and "no config file" in output
