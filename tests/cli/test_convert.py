"""`python -m spacy elmo convert`, once through spaCy's command line, and otherwise in this process."""

import subprocess
import sys
import tarfile
import zipfile

import pytest
import torch
from spacy.cli import app
from typer.testing import CliRunner

from spacy_elmo.bilm.weights import Weights
from tests import tiny
from tests.commands import elmo
from tests.converters import foreign, foreign_allennlp, foreign_many_langs


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    return foreign.write_model(path, tiny.bilm(tiny.config()))


def invoke(*arguments, format="bilm-hdf5"):
    return elmo("convert", format, *arguments)


def test_through_spacy(folder, tmp_path):
    out = tmp_path / "out.safetensors"
    command = [sys.executable, "-m", "spacy", "elmo", "convert", "bilm-hdf5", folder, out]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf8")
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        "options.json",
        "lm_weights.hdf5",
        "262 is the value for inference",
        "out.safetensors",
    ):
        assert text in " ".join(done.stdout.split())
    assert Weights.load(out).config == tiny.config()


def test_error_is_one_message(folder, tmp_path):
    (folder / "options.json").unlink()
    out = tmp_path / "out.safetensors"
    code, output = invoke(folder, out)
    assert code == 1
    assert (
        'one .json file that contains "lstm", but found none' in output
        and "Traceback" not in output
    )
    assert not out.exists()


def test_spacy_lists_the_group():
    assert " elmo " in CliRunner().invoke(app, ["--help"]).output


def test_type_and_language(folder, tmp_path):
    out = tmp_path / "out.safetensors"
    code, output = invoke(folder, out, "--dtype", "float16", "--lang", "de")
    assert code == 0 and "in float16" in output
    weights = Weights.load(out)
    assert {tensor.dtype for tensor in weights.tensors.values()} == {torch.float16}
    assert weights.card["language"] == "de"


@pytest.mark.parametrize(
    "name, problem",
    [
        ("out.bin", "ends in .safetensors"),
        ("", "is a folder"),
        ("nowhere/out.safetensors", "does not exist"),
    ],
)
def test_impossible_out_files(folder, tmp_path, name, problem):
    before = set(tmp_path.rglob("*"))
    code, output = invoke(folder, tmp_path / name)
    assert code == 1 and problem in output
    assert set(tmp_path.rglob("*")) == before


def test_explicit_files(folder, tmp_path):
    (folder / "second.hdf5").write_bytes((folder / "lm_weights.hdf5").read_bytes())
    (folder / "second.json").write_bytes((folder / "options.json").read_bytes())
    out = tmp_path / "out.safetensors"
    code, output = invoke(folder, out)
    assert code == 1
    assert (
        "Choose the file with weights (`--weights`)" in output
        and "second.hdf5: RNN_0 found" in output
    )
    files = ["--weights", folder / "second.hdf5", "--options", folder / "second.json"]
    code, output = invoke(folder, out, *files)
    assert code == 0
    assert "second.hdf5" in output and "second.json" in output


def test_existing_file_is_kept(folder, tmp_path):
    out = tmp_path / "out.safetensors"
    out.write_text("precious")
    code, output = invoke(folder, out)
    assert code == 1
    assert "already exists" in output
    assert out.read_text() == "precious"
    assert invoke(folder, out, "--force")[0] == 0
    assert Weights.load(out).config == tiny.config()


def test_error_under_force_keeps_the_file(folder, tmp_path):
    out = tmp_path / "out.safetensors"
    out.write_text("precious")
    (folder / "lm_weights.hdf5").write_bytes(b"broken")
    code, output = invoke(folder, out, "--force")
    assert code == 1
    assert "not a readable HDF5 file" in output
    assert out.read_text() == "precious"


def write_many_langs(folder):
    folder.mkdir()
    foreign_many_langs.write_model(folder, foreign_many_langs.options())
    return folder


def write_bilm_hdf5(folder):
    return foreign.write_model(folder, tiny.bilm(tiny.config()))


def write_allennlp(folder):
    return foreign_allennlp.write_model(folder, tiny.bilm(tiny.config()), [([0.0] * 3, 1.0)])


WRITERS = {
    "bilm-hdf5": write_bilm_hdf5,
    "many-langs": write_many_langs,
    "allennlp": write_allennlp,
}


def pack(folder, path):
    """Return an archive that contains the folder."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for each in folder.iterdir():
                file.write(each, f"{folder.name}/{each.name}")
    else:
        with tarfile.open(path, "w:gz") as file:
            file.add(folder, folder.name)
    return path


@pytest.mark.parametrize("archive", [None, "m.zip", "m.tar.gz"])
@pytest.mark.parametrize("command", [*WRITERS, "auto"])
def test_every_format_from_folder_and_archive(tmp_path, command, archive):
    """The format is named or detected; messages show the path inside the archive."""
    for format in [command] if command in WRITERS else WRITERS:
        folder = WRITERS[format](tmp_path / format)
        source = pack(folder, tmp_path / f"{format}.{archive}") if archive else folder
        out = tmp_path / f"{format}.safetensors"
        code, output = invoke(source, out, format=command)
        assert code == 0, output
        assert (f" {format}: " in output) == (command == "auto")
        for path in Weights.load(out).card["converted_from"].split(" (")[0].split(" and "):
            inside = f"{source}/{format}/{path}" if archive else f"{source}/{path}"
            if format != "many-langs":
                assert inside in output.replace(" ", "")
        expected = Weights.load(out).config
        assert expected.dim == 7


def test_look_alikes(tmp_path):
    """A zip file of NLPL may contain one of two formats with the same file names."""
    for format, files in [("bilm-hdf5", write_bilm_hdf5), ("many-langs", write_many_langs)]:
        folder = files(tmp_path / format)
        (folder / "meta.json").write_text('{"algorithm": {"id": 3}}', "utf8")
        if format == "bilm-hdf5":
            (folder / "lm_weights.hdf5").rename(folder / "model.hdf5")
        out = tmp_path / f"{format}.safetensors"
        path = tmp_path / f"{len(format)}.zip"
        with zipfile.ZipFile(path, "w") as file:
            for each in folder.iterdir():
                file.write(each, each.name)
        code, output = invoke(path, out, format="auto")
        assert code == 0, output
        assert f"{format}: " in output


def test_error_in_an_archive(tmp_path, monkeypatch):
    """The message names the file in the archive, and no temporary file is left."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    folder = write_bilm_hdf5(tmp_path / "m")
    (folder / "options.json").write_text('{"lstm": {"dim": 0}, "char_cnn": {"a": 1}}', "utf8")
    path = pack(folder, tmp_path / "m.zip")
    before = set(tmp_path.rglob("*"))
    code, output = invoke(path, tmp_path / "out.safetensors")
    assert code == 1
    assert f"{path}/m/options.json:" in output.replace(" ", "")
    assert str(temporary) not in output.replace(" ", "")
    assert set(tmp_path.rglob("*")) == before


def test_softmax_and_token_vectors(folder, tmp_path):
    words = tmp_path / "words"
    words.write_text("\n".join(tiny.VOCABULARY), "utf8")
    table = torch.linspace(-1, 1, 40).view(8, 5).numpy()
    foreign.write_arrays(tmp_path / "s.hdf5", {"softmax/W": table, "softmax/b": table[:, 0]})
    foreign.write_arrays(tmp_path / "t.hdf5", {"embedding": table})
    out = tmp_path / "out.safetensors"
    files = ["--softmax", tmp_path / "s.hdf5", "--vocabulary", words]
    code, output = invoke(folder, out, *files, "--token-vectors", tmp_path / "t.hdf5")
    assert code == 0, output
    assert "vocabulary: words (8 words)" in output
    weights = Weights.load(out)
    assert weights.config.n_words == 8 and weights.build_head() is not None
    assert torch.equal(weights.tensors["encoder.words"], torch.from_numpy(table))


def test_choices_of_allennlp(tmp_path):
    state = foreign_allennlp.tagger_of(tiny.bilm(tiny.config()), prefix="a.")
    state |= foreign_allennlp.tagger_of(tiny.bilm(tiny.config(), 1), prefix="b.")
    config = foreign_allennlp.config_of(do_layer_norm=True)
    folder = foreign_allennlp.write(tmp_path / "m", state, config)
    options = tmp_path / "o.json"
    foreign_allennlp.write(tmp_path / "n", {}, options=foreign.options_of(tiny.config()))
    (tmp_path / "n" / "options.json").rename(options)
    out = tmp_path / "out.safetensors"
    code, output = invoke(folder, out, format="allennlp")
    assert code == 1 and "Choose one with prefix (`--prefix`)" in output
    arguments = [folder, out, "--prefix", "b._elmo_lstm"]
    code, output = invoke(*arguments, format="allennlp")
    assert code == 1 and "which is missing. Give the file with options (`--options`)" in output
    arguments += ["--options", options]
    code, output = invoke(*arguments, format="allennlp")
    assert code == 1 and "without this normalization, set accept (`--accept`)" in output
    assert not out.exists()
    assert invoke(*arguments, "--accept", format="allennlp")[0] == 0
    assert Weights.load(out).config.cell_clip == tiny.config().cell_clip
    expected = tiny.bilm(tiny.config(), 1).encoder.characters
    assert torch.equal(Weights.load(out).tensors["encoder.characters"], expected)
