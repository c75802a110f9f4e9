"""Files of models with random damage give a model, or an error that a command can show."""

import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.allennlp import conversion as allennlp
from spacy_elmo.converters.bilm_tf import hdf5_conversion as bilm_hdf5
from tests import tiny
from tests.converters import foreign, foreign_allennlp

CONVERT = {"bilm-hdf5": bilm_hdf5.convert, "allennlp": allennlp.convert}


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """Return a valid model of each format."""
    folder = tmp_path_factory.mktemp("valid")
    model = tiny.bilm(tiny.config(layers=1, filters=((1, 2), (2, 2)), char_dim=2))
    (folder / "bilm-hdf5").mkdir()
    foreign.write_model(folder / "bilm-hdf5", model, tiny.VOCABULARY)
    softmax = {"softmax/W": model.lstm[0].bias.detach().numpy()[:, :5].repeat(4, 0)}
    softmax["softmax/b"] = softmax["softmax/W"][:, 0].copy()
    foreign.write_arrays(folder / "bilm-hdf5" / "softmax.hdf5", softmax)
    foreign_allennlp.write_model(folder / "allennlp", model, [([0.0, 1.0], 1.0)])
    for name, convert in CONVERT.items():
        convert(folder / name)
    return folder


CASES = [
    ("bilm-hdf5", "lm_weights.hdf5"),
    ("bilm-hdf5", "softmax.hdf5"),
    ("bilm-hdf5", "options.json"),
    ("bilm-hdf5", "vocab.txt"),
    ("allennlp", "weights.th"),
    ("allennlp", "options.json"),
    ("allennlp", "config.json"),
]


@pytest.mark.parametrize("format, name", CASES)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_bytes(valid, tmp_path, format, name, data):
    folder = tmp_path / "model"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(valid / format, folder)
    damaged = bytearray((folder / name).read_bytes())
    # Most of an HDF5 file is nothing or numbers; what describes them lies at its beginning, or has a magic number.
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.one_of(st.integers(0, len(damaged) - 1), st.integers(0, 511)))
        damaged[place % len(damaged)] = data.draw(st.integers(0, 255))
    whole = data.draw(st.booleans())
    size = len(damaged) if whole else data.draw(st.integers(0, len(damaged)))
    (folder / name).write_bytes(damaged[:size])
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    try:
        weights = CONVERT[format](folder).weights
    except (ValueError, OSError) as error:
        assert str(folder) in str(error)
    else:
        Weights.from_bytes(weights.to_bytes())
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
