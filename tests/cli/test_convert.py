"""`python -m spacy elmo convert`: through spaCy's own command, and in this process for the rest."""

import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.cli import elmo_cli
from tests import tiny
from tests.convert import foreign


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    return foreign.write_model(path, tiny.bilm(tiny.config()))


def invoke(*arguments):
    """Exit code, and the output with single spaces: messages are wrapped to the terminal."""
    result = CliRunner().invoke(elmo_cli, ["convert", "bilm-hdf5", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, " ".join(result.output.split())


def spacy(*arguments):
    command = [sys.executable, "-m", "spacy", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf8")


def test_through_spacy(folder, tmp_path):
    out = tmp_path / "out.safetensors"
    done = spacy("elmo", "convert", "bilm-hdf5", folder, out)
    assert (done.returncode, done.stderr) == (0, "")
    for text in ("options.json", "lm_weights.hdf5", "262, for serving", "out.safetensors"):
        assert text in " ".join(done.stdout.split())
    assert Weights.read(out).config == tiny.config()


def test_error_through_spacy(folder, tmp_path):
    (folder / "options.json").unlink()
    out = tmp_path / "out.safetensors"
    done = spacy("elmo", "convert", "bilm-hdf5", folder, out)
    assert done.returncode == 1
    assert 'no .json files contain "lstm"' in " ".join(done.stdout.split())
    assert "Traceback" not in done.stdout + done.stderr
    assert not out.exists()


def test_spacy_lists_the_group():
    done = spacy("--help")
    assert done.returncode == 0
    assert " elmo " in done.stdout


def test_values(folder, tmp_path):
    code, _ = invoke(folder, tmp_path / "out.safetensors")
    assert code == 0
    for name, tensor in tiny.bilm(tiny.config()).state_dict().items():
        assert torch.equal(Weights.read(tmp_path / "out.safetensors").tensors[name], tensor)


def test_float16(folder, tmp_path):
    code, output = invoke(folder, tmp_path / "out.safetensors", "--dtype", "float16")
    assert code == 0
    assert "in float16" in output
    tensors = Weights.read(tmp_path / "out.safetensors").tensors.values()
    assert {tensor.dtype for tensor in tensors} == {torch.float16}


def test_vocabulary_of_word_input(tmp_path):
    foreign.write_model(tmp_path, tiny.bilm(tiny.config(words=8)), tiny.VOCABULARY)
    code, output = invoke(tmp_path, tmp_path / "out.safetensors")
    assert code == 0
    assert "(8 words)" in output
    (tmp_path / "vocab.txt").rename(tmp_path / "words")
    code, _ = invoke(tmp_path, tmp_path / "out2.safetensors", "--vocabulary", tmp_path / "words")
    assert code == 0


def test_explicit_files(folder, tmp_path):
    (folder / "second.hdf5").write_bytes((folder / "lm_weights.hdf5").read_bytes())
    (folder / "second.json").write_bytes((folder / "options.json").read_bytes())
    out = tmp_path / "out.safetensors"
    code, output = invoke(folder, out)
    assert code == 1
    assert "choose with --weights" in output and "second.hdf5: RNN_0 found" in output
    files = ["--weights", folder / "second.hdf5", "--options", folder / "second.json"]
    code, output = invoke(folder, out, *files)
    assert code == 0
    assert "second.hdf5" in output and "second.json" in output


def test_existing_file_is_kept(folder, tmp_path):
    out = tmp_path / "out.safetensors"
    out.write_text("precious")
    code, output = invoke(folder, out)
    assert code == 1
    assert "exists; --force overwrites it" in output
    assert out.read_text() == "precious"
    assert invoke(folder, out, "--force")[0] == 0
    assert Weights.read(out).config == tiny.config()


def test_error_under_force_keeps_the_file(folder, tmp_path):
    out = tmp_path / "out.safetensors"
    out.write_text("precious")
    (folder / "lm_weights.hdf5").write_bytes(b"broken")
    code, output = invoke(folder, out, "--force")
    assert code == 1
    assert "not a readable HDF5 file" in output
    assert out.read_text() == "precious"


def test_out_file_is_a_folder(folder, tmp_path):
    code, output = invoke(folder, tmp_path)
    assert code == 1
    assert "is a folder; OUT_FILE is the weights file to write" in output


def test_folder_of_out_file_is_missing(folder, tmp_path):
    code, output = invoke(folder, tmp_path / "nowhere" / "out.safetensors")
    assert code == 1
    assert "does not exist" in output


def test_list_of_misfits_has_one_line_each(folder, tmp_path):
    foreign.write(
        folder, foreign.options_of(tiny.config(dim=8)), foreign.arrays_of(tiny.bilm(tiny.config()))
    )
    result = CliRunner().invoke(
        elmo_cli, ["convert", "bilm-hdf5", str(folder), str(tmp_path / "out.safetensors")]
    )
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert "  RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/B: shape [28], expected [32]" in lines
    assert not (tmp_path / "out.safetensors").exists()


@pytest.mark.parametrize("arguments", [[], ["--dtype", "int8"], ["--wieghts", "x"]])
def test_usage_errors(folder, tmp_path, arguments):
    files = [folder, tmp_path / "out.safetensors"] if arguments else []
    assert invoke(*files, *arguments)[0] == 2
