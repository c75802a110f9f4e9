"""The vectors that `embed` writes: their values, interrupted runs, and Ray Data."""

import json
import shutil

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

from spacy_elmo import Embedder, embed
from spacy_elmo.lab import embed as module
from spacy_elmo.lab.documents import read_documents
from tests import pipelines
from tests.disk import tree

TEXT = (
    "Anna met Bob in Paris. It rained!\nThe bank in Rome  is old.\nNo, she sat on it by the river.\n\n"
    "  Two cats sat there.  \nNo\nEve says: it never rains in the city of Rome, but it did.\n"
)


@pytest.fixture
def text(tmp_path, monkeypatch):
    """Return a text of seven lines, for three files with two row groups in the first. The fourth line is blank."""
    monkeypatch.setattr(module, "CHARACTERS_PER_FILE", 50)
    monkeypatch.setattr(module, "CHARACTERS_PER_BATCH", 20)
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf8")
    return path


VECTORS = {
    "all": lambda tokens: tokens._.elmo_layers,
    "average": lambda tokens: tokens._.elmo,
    "top": lambda tokens: tokens._.elmo_layers[-1],
}


@pytest.mark.parametrize("layers", VECTORS)
def test_tokens(nlp, text, tmp_path, layers):
    embed(nlp, text, tmp_path / "out", layers=layers)
    table = pq.read_table(tmp_path / "out")
    docs = {d.name: nlp(d.text) for d in read_documents(str(text))}
    tokens = [(name, token) for name, doc in docs.items() for token in doc]
    rows = table.select(["doc", "index", "text"]).to_pylist()
    assert rows == [{"doc": name, "index": t.i, "text": t.text} for name, t in tokens]
    actual = table["layers" if layers == "all" else "vector"].to_pylist()
    expected = [VECTORS[layers](token) for _, token in tokens]
    np.testing.assert_array_equal(np.array(actual, np.float32), expected)


@pytest.mark.parametrize("layers", VECTORS)
def test_spans(nlp, text, tmp_path, layers):
    embed(nlp, text, tmp_path / "out", layers=layers, unit="span", dtype="float16")
    table = pq.read_table(tmp_path / "out")
    rows = table.select(["doc", "index", "end", "text"]).to_pylist()
    docs = {d.name: nlp(d.text) for d in read_documents(str(text))}
    spans = [docs[row["doc"]][row["index"] : row["end"]] for row in rows]
    assert [span.text for span in spans] == [row["text"] for row in rows]
    assert [span.text for span in spans[:2]] == ["Anna met Bob in Paris.", "It rained!"]
    assert len(spans) == 7
    vectors = [
        VECTORS[layers](span)[..., [not token.is_space for token in span], :].mean(-2)
        if layers != "average"
        else span._.elmo
        for span in spans
    ]
    actual = np.array(table["layers" if layers == "all" else "vector"].to_pylist())
    np.testing.assert_allclose(actual, vectors, atol=2e-3)


def test_hdf5(nlp, text, tmp_path):
    embed(nlp, text, tmp_path / "v.hdf5", format="hdf5")
    with h5py.File(tmp_path / "v.hdf5") as file:
        assert set(file) == set("0123456")
        for number, line in enumerate(TEXT.splitlines()):
            np.testing.assert_array_equal(file[str(number)], nlp(line.strip())._.elmo_layers)
    with pytest.raises(FileExistsError):
        embed(nlp, text, tmp_path / "v.hdf5", format="hdf5")


def test_an_interrupted_run_is_continued(nlp, text, tmp_path):
    whole, out = tmp_path / "whole" / "out", tmp_path / "out"
    embed(nlp, text, whole)
    assert len(list(whole.iterdir())) == 3
    lines = text.read_bytes()
    text.write_bytes(lines.replace(b"Eve", b"\xff"))
    with pytest.raises(ValueError, match="line 7 is not UTF-8"):
        embed(nlp, text, out)
    (out / ".part-00002.parquet.1-1.partial").touch()  # of a process that was killed
    done = {path: path.stat().st_mtime_ns for path in out.glob("part-*")}
    assert len(done) == 2
    text.write_bytes(lines)
    for _ in range(2):
        embed(nlp, text, out)
        assert tree(out) == tree(whole)
        assert all(path.stat().st_mtime_ns == time for path, time in done.items())


def test_vectors_of_something_else_are_only_replaced_by_force(nlp, weights, text, tmp_path):
    out = tmp_path / "out"
    embed(nlp, text, out)
    whole = pipelines.blank(weights, get_spans={"@misc": "spacy-elmo.doc.v1"})
    trained = pipelines.blank(weights)
    next(pipelines.bilm(trained).parameters()).data[0] += 1
    before = tree(out)
    for other, options, problem in (
        (nlp, {"dtype": "float16"}, "dtype"),
        (nlp, {"layers": "top"}, "layers"),
        (nlp, {"tokenized": True}, "texts"),
        (whole, {}, "pipeline"),
        (trained, {}, "pipeline"),
    ):
        with pytest.raises(ValueError, match=rf"part-00000.*\({problem}\).*--force"):
            embed(other, text, out, **options)
    assert tree(out) == before
    moved = shutil.copy(weights, tmp_path / "moved.safetensors")
    embed(pipelines.blank(moved), text, out)
    assert tree(out) == before
    (out / "notes.txt").touch()
    text.write_text("One line.\n")
    embed(nlp, text, out, force=True)
    assert {path.name for path in out.iterdir()} == {"notes.txt", "part-00000.parquet"}
    assert pq.read_table(out / "part-00000.parquet")["text"].to_pylist() == ["One", "line", "."]


@pytest.mark.parametrize(
    "options, problem",
    [
        ({"layers": "averge"}, "layers = 'averge': it must be one of"),
        ({"layers": 3}, "layer = 3 does not exist. The Doc has the layers 0 to 2"),
        ({"dtype": "float64"}, "dtype = 'float64'"),
        ({"unit": "doc"}, "unit = 'doc'"),
        ({"store": "average"}, 'elmo needs store = "layers"'),
    ],
)
def test_impossible_vectors(weights, options, problem):
    nlp = pipelines.blank(weights, **{n: v for n, v in options.items() if n == "store"})
    options = {n: v for n, v in options.items() if n != "store"}
    with pytest.raises(ValueError, match=problem):
        Embedder(nlp, **options)({"doc": ["a"], "text": ["A cat."]})


@pytest.mark.slow
def test_ray_data(weights, text, tmp_path, monkeypatch):
    """The recipe of docs/embed.md on two cores, which also read and write, gives the vectors of one process."""
    ray = pytest.importorskip("ray")
    data = pytest.importorskip("ray.data")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # or it writes a file to the user's home
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    rows = [{"doc": d.name, "text": d.text} for d in read_documents(str(text))]
    (tmp_path / "in.json").write_text("\n".join(map(json.dumps, rows)))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        data.read_json(str(tmp_path / "in.json")).map_batches(
            Embedder, fn_constructor_args=[str(weights)], fn_constructor_kwargs={"layers": "average"},
            batch_size=2, compute=data.ActorPoolStrategy(min_size=1, max_size=8),
        ).write_parquet(str(tmp_path / "vectors"))  # fmt: skip
    finally:
        ray.shutdown()
    actual = pq.read_table(tmp_path / "vectors").to_pylist()
    batch = {"doc": [r["doc"] for r in rows], "text": [r["text"] for r in rows]}
    expected = Embedder(str(weights), layers="average")(batch).to_pylist()
    key = lambda row: (row["doc"], row["index"])  # noqa: E731
    for one, other in zip(sorted(actual, key=key), sorted(expected, key=key), strict=True):
        np.testing.assert_allclose(one.pop("vector"), other.pop("vector"), atol=1e-6)
        assert one == other
