"""Hits of an index, compared with brute force; indexes on disk; the corpus of an index."""

import numpy as np
import pytest

from spacy_elmo import SearchIndex, embed
from spacy_elmo.lab.pipelines import load_again, source_of
from spacy_elmo.lab.search import add_corpus
from tests import pipelines, tiny

METHODS = ["exact", "hnsw"]
TEXTS = {
    "boat": "The boat lay on the river bank. It was old!",
    "bank": "The bank gave him money.\n\nHe  spent it.",
    "cat": "A cat sat on the bank of the river.",
}


@pytest.fixture(scope="module")
def nlp(weights):
    nlp = pipelines.blank(weights)
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


def vector(span, layers):
    """Return the vector of a Span, from the layers of its words."""
    rows = span.doc._.elmo_layers
    rows = {"average": rows.mean(0), "top": rows[-1]}.get(layers, rows[0])
    return rows[[t.i for t in span if not t.is_space]].mean(0, dtype="d")


def cosines(query, entries):
    """Return the whitened cosines of a vector and of some entries, as Mahalanobis products without any map."""
    n, width = entries.shape
    center = entries.sum(0) / (n + 1)
    rows, query = entries - center, query - center
    covariance = rows.T @ rows / n
    equal = np.trace(covariance) / width * np.eye(width)
    precision = np.linalg.inv((n * covariance + width * equal) / (n + width))
    product = rows @ precision @ query
    return product / np.sqrt((query @ precision @ query) * ((rows @ precision) * rows).sum(1))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layers", ["average", "top", 0])
def test_hits_are_those_of_brute_force(docs, tmp_path, layers, method):
    index = filled(docs, layers=layers, method=method, about={"corpus": ["a", 1 / 3]})
    index.to_disk(tmp_path / "new" / "index")
    loaded = SearchIndex.from_disk(tmp_path / "new" / "index")
    assert (loaded.layers, loaded.method, loaded.about) == (layers, method, index.about)
    spans = [(name, span) for name, doc in docs.items() for span in doc.sents]
    assert len(index) == len(loaded) == len(spans) == 5
    for query in (docs["boat"][2:6], docs["cat"], docs["bank"][1]):
        span = query if query is not docs["cat"] else docs["cat"][:]
        span = span.doc[span.i : span.i + 1] if hasattr(span, "i") else span
        entries = np.stack([vector(other, layers) for _, other in spans])
        products = zip(cosines(vector(span, layers), entries), spans, strict=True)
        expected = sorted(products, key=lambda hit: -hit[0])
        for k in (3, 10**12):
            hits = index.search(query, k)
            assert len(hits) == min(k, 5)
            for hit, (cosine, (name, other)) in zip(hits, expected, strict=False):
                assert hit[:4] == (name, other.start, other.end, other.text.strip())
                assert hit.cosine == pytest.approx(cosine, abs=1e-4)
            again = loaded.search(query, k)
            assert [hit[:4] for hit in again] == [hit[:4] for hit in hits]


def test_docs_and_tokens(docs, nlp):
    index = SearchIndex()
    index.add("boat", [docs["boat"]])
    index.add("cat", docs["cat"])  # its tokens
    newline = next(token.i for token in docs["bank"] if token.is_space)
    index.add("bank", [docs["bank"][newline : newline + 1]])  # no words
    index.add("empty", [nlp("")])
    assert len(index) == 1 + len(docs["cat"])
    best = index.search(docs["boat"], 1)[0]
    assert best[:3] == ("boat", 0, len(docs["boat"])) and best.cosine == pytest.approx(1)
    best = index.search(docs["cat"][1], 1)[0]
    assert best[:4] == ("cat", 1, 2, "cat") and best.cosine == pytest.approx(1)
    assert SearchIndex().search(docs["cat"]) == []
    alone = SearchIndex()
    alone.add("cat", [docs["cat"]])
    assert alone.search(docs["cat"])[0].cosine == pytest.approx(1)


def test_an_index_of_what_embed_has_written(docs, nlp, tmp_path):
    (tmp_path / "a.txt").write_text("\n\n".join(TEXTS["bank"].split("\n\n")) + TEXTS["cat"])
    for unit in ("span", "token"):
        out = tmp_path / unit
        embed(nlp, tmp_path / "a.txt", out, layers="average", dtype="float16", unit=unit)
    index = SearchIndex.from_disk(tmp_path / "span")
    best = index.search(nlp("The bank gave him money.")[:6], 1)[0]
    assert best[:4] == (f"{tmp_path / 'a.txt'}:1", 0, 6, "The bank gave him money.")
    assert best.cosine == pytest.approx(1, abs=1e-2)
    assert len(index) == 3
    with pytest.raises(ValueError, match="embed PIPELINE_OR_WEIGHTS IN OUT --unit span"):
        SearchIndex.from_disk(tmp_path / "token")


@pytest.mark.parametrize("name", ["graph.usearch", "spans.parquet", "digests.json"])
def test_a_flipped_bit_is_refused(docs, tmp_path, name):
    """usearch would read the damaged graph, and crash or find other entries."""
    filled(docs, method="hnsw").to_disk(tmp_path / "index")
    file = tmp_path / "index" / name
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    for bit in rng.choice(8 * len(whole), 50, replace=False).tolist():
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match="is damaged|is not valid JSON"):
            SearchIndex.from_disk(tmp_path / "index")
    file.write_bytes(whole)
    assert len(SearchIndex.from_disk(tmp_path / "index")) == 5
    file.unlink()
    with pytest.raises((ValueError, FileNotFoundError)):
        SearchIndex.from_disk(tmp_path / "index")


def test_an_index_replaces_only_an_index(docs, tmp_path):
    filled(docs, method="hnsw").to_disk(tmp_path / "index")
    small = SearchIndex()
    small.add("cat", [docs["cat"]])
    small.to_disk(tmp_path / "index")
    assert len(SearchIndex.from_disk(tmp_path / "index")) == 1
    names = {path.name for path in (tmp_path / "index").iterdir()}
    assert names == {"spans.parquet", "digests.json"}
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(FileExistsError, match="contains index"):
        small.to_disk(tmp_path)
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.parametrize("tokenized", [False, True])
def test_a_corpus_and_its_pipeline(nlp, weights, tmp_path, tokenized):
    (tmp_path / "a.txt").write_text("A cat sat. It slept!\n\nThe bank isn't old.\n")
    index = SearchIndex(about=source_of(nlp, str(weights), lang=None, tokenized=tokenized))
    sum(add_corpus(index, nlp, str(tmp_path / "a.txt"), tokenized=tokenized))
    index.to_disk(tmp_path / "index")
    about = SearchIndex.from_disk(tmp_path / "index").about
    again = load_again(about)
    texts = ["A cat sat.", "It slept!", "The bank isn't old."]
    if tokenized:
        texts = ["A cat sat. It slept!", "The bank isn't old."]
    else:
        for text in texts:
            assert index.search(again(text), 1)[0].text == text
    assert len(index) == len(texts)
    moved = tmp_path / "moved.safetensors"
    moved.write_bytes(weights.read_bytes())
    assert load_again({**about, "source": "gone"}, str(moved)).lang == "en"
    with pytest.raises(ValueError, match="en_mini_v4 is not the pipeline of the index"):
        load_again(about, "en_mini_v4")
    for name in ("source", "pipeline"):
        with pytest.raises(ValueError, match="does not name its pipeline"):
            load_again({key: value for key, value in about.items() if key != name})


def test_impossible_searches(docs, nlp, weights, tmp_path):
    index = filled(docs)
    other = tiny.save(tmp_path / "o.safetensors", {"language": "en"}, projection=7)
    for call, problem in (
        (lambda: SearchIndex(method="faiss"), "method = 'faiss'"),
        (lambda: SearchIndex(layers="all"), 'layers = "all"'),
        (lambda: SearchIndex().to_disk(tmp_path / "i"), "empty"),
        (lambda: index.search(nlp(" ")), "contains no words"),
        (lambda: index.search(nlp.make_doc("a cat")), "has no ELMo vectors"),
        (lambda: filled(docs, layers=7), "layer = 7 does not exist"),
        (lambda: index.search(pipelines.blank(other)("a cat")), "have 10 numbers, but .* 14"),
        (lambda: index.add("a", [pipelines.blank(other)("a cat")]), "have 10 numbers, but .* 14"),
    ):
        with pytest.raises(ValueError, match=problem):
            call()
    with pytest.raises(FileNotFoundError, match="no index in nowhere"):
        SearchIndex.from_disk("nowhere")
