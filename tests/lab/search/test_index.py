"""The index: exact and approximate results, compared with brute force, also after loading from disk."""

import itertools
import json
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.digest import with_digests
from spacy_elmo.lab.normalize import normalize
from spacy_elmo.lab.search.exact import ExactNeighbors
from spacy_elmo.lab.search.hnsw import HnswNeighbors
from spacy_elmo.lab.search.index import SearchIndex
from spacy_elmo.pipeline.store.extensions import install_extensions
from tests import pipelines, tiny
from tests.disk import limited_file_size, tree

METHODS = ["exact", "hnsw"]
TEXTS = {
    "boat": "The boat lay on the river bank. It was old!",
    "bank": "The bank gave him money.\n\nHe  spent it.",
    "cat": "A cat sat on the bank of the river.",
}


@pytest.fixture(scope="module")
def nlp(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "w.safetensors"
    tiny.save(path, {"language": "en"})
    nlp = pipelines.blank(path)
    nlp.add_pipe("sentencizer")
    return nlp


@pytest.fixture(scope="module")
def docs(nlp):
    return {name: nlp(text) for name, text in TEXTS.items()}


def filled(docs, **options):
    index = SearchIndex(**options)
    for name, doc in docs.items():
        index.add(name, doc.sents)
    return index


def cosine(x, y):
    x, y = x.astype("d"), y.astype("d")
    return x @ y / (np.linalg.norm(x) * np.linalg.norm(y))


def mean(span, layer):
    rows = span.doc._.elmo_layers
    rows = rows.mean(0) if layer is None else rows[layer]
    return rows[[token.i for token in span if not token.is_space]].mean(0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layer", [None, 0, 2])
def test_nearest_sentences(docs, layer, method):
    index = filled(docs, layer=layer, method=method)
    assert len(index) == 5
    for query in (docs["boat"][2:6], docs["cat"][:], docs["bank"][1:2]):
        expected = sorted(
            (
                (cosine(mean(query, layer), mean(sent, layer)), name, sent)
                for name, doc in docs.items()
                for sent in doc.sents
            ),
            key=lambda hit: -hit[0],
        )
        hits = index.search(query, 3)
        assert len(hits) == 3
        for hit, (expected_cosine, name, sent) in zip(hits, expected, strict=False):
            assert (hit.doc_id, hit.start, hit.end) == (name, sent.start, sent.end)
            assert hit.text == sent.text.strip()
            assert hit.cosine == pytest.approx(expected_cosine, abs=1e-5)


def test_whole_docs_and_tokens(docs):
    index = SearchIndex()
    index.add("boat", [docs["boat"]])
    index.add("cat", docs["cat"])  # its tokens
    assert len(index) == 1 + len(docs["cat"])
    best = index.search(docs["boat"], 1)[0]
    assert best[:3] == ("boat", 0, len(docs["boat"])) and best.cosine == pytest.approx(1)
    token = docs["cat"][1]
    best = index.search(token, 1)[0]
    assert best[:4] == ("cat", 1, 2, "cat") and best.cosine == pytest.approx(1)


def test_what_has_no_words_is_left_out(docs, nlp):
    index = SearchIndex()
    newline = next(token.i for token in docs["bank"] if token.is_space)
    index.add("bank", [docs["bank"][newline : newline + 1]])
    index.add("empty", [nlp("")])
    assert len(index) == 0
    with pytest.raises(ValueError, match="contains no words"):
        index.search(nlp(" "))
    assert index.search(docs["cat"]) == []


@pytest.mark.parametrize("method", METHODS)
def test_fewer_than_asked_for(docs, method):
    for k in (100, 10**12):
        assert len(filled(docs, method=method).search(docs["cat"], k)) == 5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layer", [None, 1])
def test_from_disk(docs, tmp_path, method, layer):
    index = filled(docs, method=method, layer=layer, about={"corpus": ["a", 1 / 3]})
    index.to_disk(tmp_path / "a" / "index")
    found = SearchIndex.from_disk(tmp_path / "a" / "index")
    assert (found.layer, found.method, found.about) == (layer, method, {"corpus": ["a", 1 / 3]})
    assert found.search(docs["cat"], 5) == index.search(docs["cat"], 5)
    found.add("more", [docs["cat"]])
    assert found.search(docs["cat"], 1)[0].doc_id in ("cat", "more") and len(found) == 6
    # Another one takes its place.
    small = SearchIndex()
    small.add("cat", [docs["cat"]])
    small.to_disk(tmp_path / "a" / "index")
    assert len(SearchIndex.from_disk(tmp_path / "a" / "index")) == 1


@pytest.mark.parametrize("name", ["index.json", "vectors", "spans.jsonl"])
@pytest.mark.parametrize("content", ['{"format": "photos 3"}', "[1, 2]", ""])
def test_files_of_another_program_are_not_replaced(docs, tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(FileExistsError, match=f"contains {name}"):
        filled(docs).to_disk(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == content


def seal(folder, **changes):
    """Correct the digests of an index after its files and settings were changed."""
    settings = {**json.loads((folder / "index.json").read_text()), **changes}
    del settings["digests"]
    sealed = with_digests(settings, folder / "index.json", ("vectors", "spans.jsonl"))
    (folder / "index.json").write_text(json.dumps(sealed))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["vectors", "spans.jsonl", "index.json"])
def test_any_changed_bit_is_detected(docs, tmp_path, method, name):
    filled(docs, method=method).to_disk(tmp_path)
    content = (tmp_path / name).read_bytes()
    for position in range(0, len(content), max(1, len(content) // 40)):
        for bit in (0, 6):
            changed = bytearray(content)
            changed[position] ^= 1 << bit
            (tmp_path / name).write_bytes(changed)
            with pytest.raises(ValueError, match=re.escape(str(tmp_path))):
                SearchIndex.from_disk(tmp_path)
    (tmp_path / name).write_bytes(content)
    assert len(SearchIndex.from_disk(tmp_path)) == 5


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_mutated_matrix_is_one_message(data):
    """Whatever the parser of NumPy raises becomes a ValueError with the path."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors"
        neighbors = ExactNeighbors(3)
        neighbors.add(np.eye(3, dtype=np.float32))
        neighbors.to_disk(path)
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, 127))] = data.draw(st.integers(0, 255))
        path.write_bytes(content)
        try:
            ExactNeighbors.from_disk(path)
        except ValueError as error:
            assert str(path) in str(error)


@pytest.mark.parametrize("method", METHODS)
def test_an_index_that_cannot_be_replaced_stays(docs, tmp_path, method):
    """A full disk, here a limit of the file size: the error names the folder, and the index in it is unchanged."""
    filled(docs, method=method).to_disk(tmp_path / "index")
    before = tree(tmp_path)
    large = SearchIndex(method=method)
    for _ in range(40):
        large.add("cat", docs["cat"])
    with limited_file_size(4096), pytest.raises(OSError, match="index"):
        large.to_disk(tmp_path / "index")
    assert tree(tmp_path) == before
    assert len(SearchIndex.from_disk(tmp_path / "index")) == 5


def kill_at(patch, moment):
    """End the process before one of the calls that rename files."""
    calls = itertools.count()

    def mortal(call):
        def dying(*args, **options):
            if next(calls) >= moment:
                raise KeyboardInterrupt
            return call(*args, **options)

        return dying

    for name in ("replace", "unlink"):
        patch.setattr(Path, name, mortal(getattr(Path, name)))


@pytest.mark.parametrize("method", METHODS)
def test_a_killed_replacement_leaves_a_whole_index(docs, tmp_path, method):
    """At every moment the index in the folder is either the old one or the new one."""
    old, new = filled(docs, layer=1), filled(docs, method=method)
    found = []
    for moment in itertools.count():
        folder = tmp_path / str(moment)
        for _ in range(2):  # both pairs of names
            old.to_disk(folder)
            with pytest.MonkeyPatch.context() as patch:
                kill_at(patch, moment)
                try:
                    new.to_disk(folder)
                    is_done = True
                except KeyboardInterrupt:
                    is_done = False
            found.append(SearchIndex.from_disk(folder).layer)
            assert found[-1] in (1, None)
        new.to_disk(folder)
        assert SearchIndex.from_disk(folder).layer is None
        visible = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
        assert len(visible) == 3
        if is_done:
            break
    assert moment > 5 and found.count(1) > 3 and found.count(None) > 3


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("content", [b"", b"x" * 1000, None])
def test_damaged_vectors(docs, tmp_path, method, content):
    filled(docs, method=method).to_disk(tmp_path)
    vectors = tmp_path / "vectors"
    if content is None:
        vectors.unlink()
    else:
        vectors.write_bytes(content)
    with pytest.raises(FileNotFoundError if content is None else ValueError, match="vectors"):
        SearchIndex.from_disk(tmp_path)


def test_damaged_folder(docs, tmp_path):
    with pytest.raises(FileNotFoundError, match="`spacy elmo search index`"):
        SearchIndex.from_disk(tmp_path)
    filled(docs).to_disk(tmp_path)
    spans = (tmp_path / "spans.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "spans.jsonl").write_text("".join(spans[:-1]))
    seal(tmp_path)
    with pytest.raises(ValueError, match="5 vectors, but 4 spans"):
        SearchIndex.from_disk(tmp_path)
    with (tmp_path / "vectors").open("wb") as file:
        np.save(file, np.zeros(3))
    seal(tmp_path)
    with pytest.raises(ValueError, match=r"float32 .* float64 \[3\]"):
        SearchIndex.from_disk(tmp_path)
    for content, problem in (
        ("{", "is not valid JSON"),
        (json.dumps({"format": "x"}), "expected the format"),
    ):
        (tmp_path / "index.json").write_text(content)
        with pytest.raises(ValueError, match=problem):
            SearchIndex.from_disk(tmp_path)


def test_width_of_the_settings_is_that_of_the_vectors(docs, tmp_path):
    filled(docs).to_disk(tmp_path)
    width = json.loads((tmp_path / "index.json").read_text())["width"]
    seal(tmp_path, width=3)
    with pytest.raises(ValueError) as raised:
        SearchIndex.from_disk(tmp_path)
    problem = f"{tmp_path} has vectors of {width} numbers, but its settings say 3"
    assert str(raised.value) == f"{problem}. The index is damaged. Make it again"


@pytest.mark.parametrize("method", METHODS)
def test_an_index_without_digests_is_refused(docs, tmp_path, method):
    filled(docs, method=method).to_disk(tmp_path)
    settings = json.loads((tmp_path / "index.json").read_text())
    del settings["digests"]
    (tmp_path / "index.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match="index.json .* Make it again"):
        SearchIndex.from_disk(tmp_path)


@pytest.mark.parametrize("name", ["layer", "method", "width", "about"])
@pytest.mark.parametrize("value, found", [(None, "missing"), ([1], r"\[1\]"), (True, "true")])
def test_damaged_settings(docs, tmp_path, name, value, found):
    filled(docs).to_disk(tmp_path)
    settings = json.loads((tmp_path / "index.json").read_text())
    del settings[name]
    if value is not None:
        settings[name] = value
    (tmp_path / "index.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match=rf"index\.json: {name} is {found}"):
        SearchIndex.from_disk(tmp_path)


def test_unknown_method(docs, tmp_path):
    index = filled(docs)
    index.method = "tree"  # of another version
    index.to_disk(tmp_path)
    with pytest.raises(ValueError) as raised:
        SearchIndex.from_disk(tmp_path)
    assert str(raised.value) == f"{tmp_path}: method = 'tree' (`--method`) must be exact or hnsw"


@pytest.mark.parametrize(
    "row",
    ["[1]", "5", '["a", 0, 1]', '["a", 0, "1", "b"]', '["a", 0, 1, "b", 2]', '"a01b"', "null"],
)
def test_damaged_spans(docs, tmp_path, row):
    filled(docs).to_disk(tmp_path)
    spans = (tmp_path / "spans.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "spans.jsonl").write_text("".join([*spans[:2], row + "\n", *spans[3:]]))
    seal(tmp_path)
    with pytest.raises(ValueError) as raised:
        SearchIndex.from_disk(tmp_path)
    assert "spans.jsonl, line 3: expected [name of a Doc" in str(raised.value)
    assert f"but got {row}. " in str(raised.value)


def test_what_cannot_be_searched(docs, nlp, tmp_path, monkeypatch):
    index = filled(docs)
    install_extensions()
    blank = spacy.blank("en")
    with pytest.raises(ValueError, match="no ELMo vectors"):
        index.search(blank("a cat"))
    with pytest.raises(ValueError, match="k = 0"):
        index.search(docs["cat"], 0)
    other = blank("cat")
    other._.elmo_layers = np.ones((3, 1, 4), dtype=np.float32)
    with pytest.raises(ValueError, match="10 numbers, .* 4"):
        index.search(other)
    with pytest.raises(ValueError, match="10 numbers, .* 4"):
        index.add("other", [other])
    assert len(index) == 5
    with pytest.raises(ValueError, match="layer = 3 does not exist. .* 0 to 2"):
        SearchIndex(layer=3).add("cat", [docs["cat"]])
    with pytest.raises(ValueError, match="no ELMo layers. .* store = "):
        SearchIndex(layer=1).add("cat", [blank("cat")])
    with pytest.raises(TypeError, match="doc_id = 3"):
        index.add(3, [docs["cat"]])
    with pytest.raises(ValueError, match="must be exact or hnsw"):
        SearchIndex(method="ivf")
    with pytest.raises(ValueError, match="The index is empty"):
        SearchIndex().to_disk(tmp_path / "index")
    assert not (tmp_path / "index").exists()
    monkeypatch.delitem(sys.modules, "spacy_elmo.lab.search.hnsw")
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(ValueError, match=r'pip install "spacy-elmo\[search\]"'):
        SearchIndex(method="hnsw")


@settings(max_examples=80)
@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=30),
    st.lists(st.integers(-3, 3), min_size=3, max_size=3),
    st.integers(1, 35),
    st.integers(0, 30),
)
def test_exact_is_brute_force(vectors, query, k, cut):
    # Few different vectors, so that many are equally near.
    rows = normalize(np.array(vectors, dtype=np.float32))
    query = normalize(np.array(query, dtype=np.float32))
    found = ExactNeighbors(3)
    for part in np.split(rows, [min(cut, len(rows))]):
        found.add(part)
    numbers, cosines = found.search(query, k)
    exact = (rows * query).sum(axis=1)
    expected = sorted(range(len(rows)), key=lambda i: (-exact[i], i))[:k]
    assert numbers.tolist() == expected
    assert np.array_equal(cosines, exact[expected])
    np.testing.assert_allclose(cosines, rows.astype("d")[numbers] @ query, atol=1e-6)


@pytest.mark.parametrize("width", [3, 128, 1024])
@pytest.mark.parametrize("n", [2, 37, 1001])
def test_equals_keep_their_order(n, width):
    """A matrix product rounds its last rows differently."""
    rng = np.random.default_rng(n + width)
    same, other, query = normalize(rng.normal(size=(3, width)).astype(np.float32))
    found = ExactNeighbors(width)
    found.add(np.stack([other, *[same] * n]))
    for asked in (query, same):
        numbers, cosines = found.search(asked, n + 1)
        assert numbers[numbers > 0].tolist() == list(range(1, n + 1))
        assert len(set(cosines.tolist())) == 2
        numbers, _ = found.search(same, n // 2)
        assert numbers.tolist() == list(range(1, n // 2 + 1))


def test_the_graph_finds_nearly_all():
    rng = np.random.default_rng(0)
    # Around 200 places, as sentences are around topics.
    rows = normalize(
        (
            rng.normal(size=(200, 32))[rng.integers(0, 200, 4000)]
            + 0.5 * rng.normal(size=(4000, 32))
        ).astype(np.float32)
    )
    exact, graph = ExactNeighbors(32), HnswNeighbors(32)
    for neighbors in (exact, graph):
        neighbors.add(rows[:1500])
        neighbors.add(rows[1500:])
    found = 0
    for query in rows[::80]:
        expected, _ = exact.search(query, 10)
        numbers, cosines = graph.search(query, 10)
        np.testing.assert_allclose(cosines, rows[numbers] @ query, atol=1e-5)
        assert (np.diff(cosines) <= 0).all()
        found += len(set(expected) & set(numbers))
    assert found / (10 * len(rows[::80])) > 0.95
