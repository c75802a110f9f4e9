"""`spacy_elmo.convert`: detection of the format, options, the start state, and what is written."""

import logging

import numpy as np
import pytest
import torch

from spacy_elmo.converters import convert as module
from spacy_elmo.converters.convert import FORMATS, convert, read_model
from spacy_elmo.converters.start_state import mean_start_state
from tests import tiny
from tests.converters import foreign, foreign_allennlp, foreign_many_langs
from tests.converters.test_untrusted_files import write_tar, write_zip

CONFIG = tiny.config()


def write(format, folder):
    """Write a model in this format. Return the files that only this format has, and the words that the card names."""
    folder.mkdir(exist_ok=True)
    if format == "many-langs":
        foreign_many_langs.write_model(folder, foreign_many_langs.options())
        return ["encoder.pkl", "token_embedder.pkl"]
    if format == "allennlp":
        foreign_allennlp.write_model(folder, tiny.bilm(CONFIG))
        return ["weights.th"]
    foreign.write_model(folder, tiny.bilm(CONFIG))
    return ["lm_weights.hdf5"]


NAMES = ["bilm-hdf5", "allennlp", "many-langs"]


@pytest.mark.parametrize("archive", ["folder", "file", "m.zip", "m.tar.gz"])
@pytest.mark.parametrize("name", NAMES)
def test_each_format_is_detected(tmp_path, name, archive):
    """A folder, a weights file and an archive of the folder give the same weights. Notes show paths in the archive."""
    folder = tmp_path / "model"
    files = write(name, folder)
    expected, notes = read_model(folder, name, lang="la")
    source = folder
    if archive == "file":
        source = folder / files[0] if name != "many-langs" else folder
        files = files if name == "many-langs" else files[:1]
    elif archive != "folder":
        content = {f"model/{path.name}": path.read_bytes() for path in folder.iterdir()}
        source = (write_zip if archive == "m.zip" else write_tar)(tmp_path / archive, content)
    weights, found = read_model(source, lang="la")
    inside = f"{source}/model" if archive.startswith("m.") else str(folder)
    assert found[0] == f"{name}, because there is {', '.join(files)}"
    assert found[1:] == [note.replace(str(folder), inside) for note in notes]
    assert weights.card["language"] == "la" and weights.config == expected.config
    assert weights.tensors.keys() == expected.tensors.keys()
    for key, tensor in expected.tensors.items():
        assert torch.equal(weights.tensors[key], tensor)


def test_none_or_several_formats(tmp_path):
    with pytest.raises(ValueError, match=f"{tmp_path} is not a model of a known format") as error:
        read_model(tmp_path)
    lines = [f"  {name}: {format.content}" for name, format in FORMATS.items()]
    assert str(error.value).split("\n")[1:] == lines
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_model(tmp_path / "nowhere")
    for name in NAMES:
        write(name, tmp_path)
    (tmp_path / "model.ckpt-7.index").touch()
    with pytest.raises(ValueError, match="several formats. Choose one") as error:
        read_model(tmp_path)
    assert str(error.value).split("\n")[1:] == [
        "  bilm-hdf5: lm_weights.hdf5", "  bilm-tf: model.ckpt-7.index", "  allennlp: weights.th",
        "  many-langs: encoder.pkl, token_embedder.pkl",
    ]  # fmt: skip


def test_options(tmp_path):
    write("bilm-hdf5", tmp_path)
    options = tmp_path / "options.json"
    assert read_model(tmp_path, options=str(options), softmax=None)[0].config == CONFIG
    for format in ("bilm-hdf5", "auto"):
        with pytest.raises(ValueError, match="bilm-hdf5 has no option prefix. .*softmax"):
            read_model(tmp_path, format, prefix="x")
    with pytest.raises(ValueError, match="'onnx' is unknown. Use auto or one of bilm-hdf5"):
        read_model(tmp_path, "onnx")


def test_what_is_written(tmp_path, caplog):
    write("bilm-hdf5", tmp_path / "theirs")
    before, out = set(tmp_path.rglob("*")), tmp_path / "w.safetensors"
    with caplog.at_level(logging.INFO, "spacy_elmo"):
        convert(tmp_path / "theirs")
    assert set(tmp_path.rglob("*")) == before
    assert caplog.messages[0].startswith("bilm-hdf5, because") and "--lang" in caplog.messages[-1]
    out.write_text("mine")
    with pytest.raises(FileExistsError, match="w.safetensors already exists"):
        convert(tmp_path / "theirs", out)
    assert out.read_text() == "mine"
    with pytest.raises(ValueError, match=r"ends in .safetensors"):
        convert(tmp_path / "theirs", tmp_path / "w.pt")
    convert(tmp_path / "theirs", out, force=True)
    assert out.stat().st_size > 4


LINES = [f"a cat{n} sat on\tit ." for n in range(12)]


def test_start_state(tmp_path, monkeypatch):
    """It is the mean over the first lines that are not blank. What follows is not read."""
    write("bilm-hdf5", tmp_path / "theirs")
    text = tmp_path / "text.txt"
    # With a byte order mark, as some Windows programs write it.
    text.write_text(f"{LINES[0]}\n\n" + "\n \n".join(LINES[1:]) + "\n", "utf-8-sig")
    for limit in (2000, 5):
        monkeypatch.setattr(module, "_MAX_SENTENCES", limit)
        weights, notes = read_model(tmp_path / "theirs", warm=text)
        expected = mean_start_state(tiny.bilm(CONFIG), [line.split() for line in LINES[:limit]])
        assert torch.equal(weights.start_state.h, expected.h)
        assert torch.equal(weights.start_state.c, expected.c)
        count = f"{min(limit, 12)} sentences of text.txt"
        assert weights.card["start"] == count and f"start state: mean over {count}" in notes
        with text.open("ab") as file:
            file.write(b"a b c\n" * 10_000 + b"\xff")


@pytest.mark.parametrize(
    "content, problem",
    [(b"a b\n\n \nc\n", "too few sentences for a start state: 2"), (b"\xff\xfe", "can't decode byte 0xff")],
)  # fmt: skip
def test_text_that_does_not_do(tmp_path, content, problem):
    write("bilm-hdf5", tmp_path / "theirs")
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(ValueError, match=f"^{tmp_path / 'text'}: .*{problem}"):
        read_model(tmp_path / "theirs", warm=tmp_path / "text")


def test_start_state_that_is_not_finite(tmp_path):
    """Finite weights can have infinite products. Then no file is written."""
    bilm = tiny.bilm(tiny.config(cell_clip=None, proj_clip=None))
    with torch.no_grad():
        bilm.lstm[0].projection.fill_(3e38)
        bilm.lstm[0].recurrent.fill_(3e38)
    foreign.write_model(tmp_path / "theirs", bilm)
    (tmp_path / "text").write_text("\n".join(LINES))
    out = tmp_path / "out.safetensors"
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="tensors are not finite"):
        convert(tmp_path / "theirs", out, warm=tmp_path / "text")
    assert not out.exists()
