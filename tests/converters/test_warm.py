"""A converted model gets a start state from a text."""

import pytest
import torch

from spacy_elmo.bilm.start_state import mean_start_state
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters import warm
from spacy_elmo.converters.result import Conversion
from spacy_elmo.converters.warm import with_start
from tests import tiny

LINES = [f"a cat{n} sat on\tit ." for n in range(12)]


def conversion_of(bilm, tmp_path, dtype=torch.float32):
    weights = Weights.from_bilm(bilm, card={"converted_from": "x"}, dtype=dtype)
    return Conversion(weights, [tmp_path / "options.json"], ["a note"])


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    # With a byte order mark, as some Windows programs write it.
    path.write_text("\n".join(LINES[:1]) + "\n\n" + "\n \n".join(LINES[1:]), "utf-8-sig")
    return path


def test_the_mean_of_the_lines_that_are_not_blank(tmp_path, text):
    bilm = tiny.bilm(tiny.config())
    expected = mean_start_state(bilm, [line.split() for line in LINES])
    given = conversion_of(bilm, tmp_path)
    result = with_start(given, text)
    assert torch.equal(result.weights.start_state.h, expected.h)
    assert torch.equal(result.weights.start_state.c, expected.c)
    assert result.weights.tensors is given.weights.tensors
    assert result.weights.card == {"converted_from": "x", "start": "12 sentences of text.txt"}
    assert result.files == [tmp_path / "options.json", text]
    assert result.notes == ["a note", "start state: mean over 12 sentences of text.txt"]
    assert given.weights.start_state is None


def test_no_more_lines_than_needed(tmp_path, text, monkeypatch):
    """The bytes after the limit are no text, but they are not read."""
    monkeypatch.setattr(warm, "MAX_SENTENCES", 5)
    with text.open("ab") as file:
        file.write(b"\n" + b"a b c\n" * 10_000 + b"\xff")
    bilm = tiny.bilm(tiny.config())
    start = with_start(conversion_of(bilm, tmp_path), text).weights.start_state
    assert torch.equal(start.h, mean_start_state(bilm, [line.split() for line in LINES[:5]]).h)


def test_float16_is_estimated_with_what_is_in_the_file(tmp_path, text):
    given = conversion_of(tiny.bilm(tiny.config()), tmp_path, torch.float16)
    start = with_start(given, text).weights.start_state
    expected = mean_start_state(given.weights.build_bilm(), [line.split() for line in LINES])
    assert torch.equal(start.h, expected.h.half()) and torch.equal(start.c, expected.c.half())


@pytest.mark.parametrize(
    "content, problem",
    [
        (b"", "too few sentences for a start state: 0"),
        (b"a b\n\n \nc\n", "too few sentences for a start state: 2"),
        (b"\xff\xfe", "can't decode byte 0xff"),
    ],
)
def test_text_that_does_not_do(tmp_path, content, problem):
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(ValueError, match=problem) as error:
        with_start(conversion_of(tiny.bilm(tiny.config()), tmp_path), tmp_path / "text")
    assert str(error.value).startswith(f"{tmp_path / 'text'}: ")


def test_no_text(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        with_start(conversion_of(tiny.bilm(tiny.config()), tmp_path), tmp_path / "nowhere")


def test_numbers_that_are_none(tmp_path, text):
    """Finite weights have infinite products."""
    bilm = tiny.bilm(tiny.config(cell_clip=None, proj_clip=None))
    with torch.no_grad():
        bilm.lstm[0].projection.fill_(3e38)
        bilm.lstm[0].recurrent.fill_(3e38)
    with pytest.raises(ValueError, match="range of torch.float32"):
        with_start(conversion_of(bilm, tmp_path), text)
