"""The index of all occurrences is compared with a search for a word in the text."""

import json

import numpy as np
import pytest

from spacy_elmo.digest import file_digest
from spacy_elmo.lab.contexts.occurrence_index import OccurrenceIndex
from spacy_elmo.lab.contexts.occurrences import find_occurrences
from spacy_elmo.lab.contexts.write_occurrences import write_occurrences
from spacy_elmo.lab.corpora.documents import Document
from tests import pipelines, tiny

TEXTS = ["The bank is old.  It isn't a BANK", "", "No such thing here.", " Their bank,\tmy bank!"]


@pytest.fixture(scope="module")
def nlp(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "w.safetensors"
    tiny.save(path, {"language": "en"})
    return pipelines.blank(path)


def indexed(nlp, folder, lines, **options):
    (folder / "a.txt").write_text("\n".join(lines), encoding="utf8")
    about = {"name": "mine"}
    sum(write_occurrences(folder / "index", nlp, str(folder / "a.txt"), about=about, **options))
    return OccurrenceIndex(folder / "index")


def test_occurrences_and_their_vectors(nlp, tmp_path):
    index = indexed(nlp, tmp_path, TEXTS)
    occurrences = index.find("Bank")
    expected = find_occurrences(nlp, [Document(text.strip(), "") for text in TEXTS], "bank")
    actual = [(o.left, o.word, o.right) for o in occurrences.items]
    assert actual == [(o.left, o.word, o.right) for o in expected.items]
    assert [o.source.rsplit("/")[-1] for o in occurrences.items] == ["a.txt:1"] * 2 + [
        "a.txt:4"
    ] * 2
    assert occurrences.views == ["layer 1", "layer 2"]
    # On disk they are float16.
    np.testing.assert_allclose(occurrences.vectors, expected.vectors[1:], atol=1e-3)
    words = np.concatenate([nlp(t.strip())._.elmo_layers for t in TEXTS if t], axis=1)
    words = words[:, np.abs(words[0]).sum(axis=1) > 0]
    np.testing.assert_allclose(index.centre[:, 0], words.mean(axis=1), atol=1e-5)
    assert index.count("BANK") == 4 and index.count("loan") == 0
    assert index.find("loan") is None
    assert index.tokens == words.shape[1] and index.sentences == 4
    assert index.about == {"name": "mine"}


@pytest.mark.parametrize("count, limit", [(1, 3), (3, 3), (4, 3), (10, 3), (301, 300), (7, 1)])
def test_many_occurrences_are_evenly_spread(nlp, tmp_path, count, limit):
    index = indexed(nlp, tmp_path, ["a cat"] * count, max_occurrences=limit)
    lines = [int(o.source.rpartition(":")[2]) for o in index.find("cat").items]
    assert len(lines) == min(count, limit) and index.count("cat") == count
    gaps = np.diff([0, *lines])
    assert gaps.max() <= -(-count // limit)


def test_query_is_a_token_of_a_doc(nlp, tmp_path):
    index = indexed(nlp, tmp_path, TEXTS)
    doc = nlp("It rained! The bank, they say, is old.")
    query = index.query(doc[4], index.find("bank"))
    (item,) = query.items
    assert (item.left, item.word, item.right) == ("The ", "bank", ", they say, is old.")
    np.testing.assert_array_equal(query.vectors[:, 0], doc._.elmo_layers[1:, 4])


def test_similar_spellings(nlp, tmp_path):
    index = indexed(nlp, tmp_path, TEXTS)
    doc = nlp("Bank old")
    near = index.similar_spellings(doc[1], 3)
    assert len(near) == 3 and "old" not in [spelling.word for spelling in near]
    vectors = {
        token.text.casefold(): nlp(token.text)._.elmo_layers[0, 0] - index.centre[0, 0]
        for text in TEXTS
        for token in nlp.make_doc(text)
        if not token.is_space
    }
    query = vectors.pop("old")
    cosines = {
        word: query @ vector / np.linalg.norm(query) / np.linalg.norm(vector)
        for word, vector in vectors.items()
    }
    expected = sorted(cosines, key=cosines.get, reverse=True)[:3]
    assert [spelling.word for spelling in near] == expected
    assert near[0].cosine == pytest.approx(cosines[expected[0]], abs=2e-3)


def test_no_words(nlp, tmp_path):
    with pytest.raises(ValueError, match="contains no words"):
        indexed(nlp, tmp_path, ["", " "])
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize(
    "name", ["vectors", "places", "spellings", "centre", "words.jsonl", "sentences.jsonl"]
)
def test_damage_is_detected(nlp, tmp_path, name):
    indexed(nlp, tmp_path, TEXTS)
    path = tmp_path / "index" / name
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"{name} has changed"):
        OccurrenceIndex(tmp_path / "index")


def test_an_index_without_digests_is_refused(nlp, tmp_path):
    indexed(nlp, tmp_path, TEXTS)
    path = tmp_path / "index" / "index.json"
    settings = json.loads(path.read_text())
    del settings["digests"]
    path.write_text(json.dumps(settings))
    with pytest.raises(ValueError, match="index.json .* Make it again"):
        OccurrenceIndex(tmp_path / "index")


def resealed(folder, name, value):
    """Write a file of an index, an array or the rows of .jsonl, with the correct digest."""
    path = folder / name
    if name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in value), encoding="utf8")
    else:
        with path.open("wb") as file:
            np.save(file, value)
    settings = json.loads((folder / "index.json").read_text())
    settings["digests"][name] = file_digest(path)
    (folder / "index.json").write_text(json.dumps(settings))


@pytest.mark.parametrize("place", [(-1, 0, 1), (1, 0, 1), (0, -1, 1), (0, 2, 2), (0, 4, 6)])
def test_places_are_within_their_sentences(nlp, tmp_path, place):
    indexed(nlp, tmp_path, ["a cat"])
    resealed(tmp_path / "index", "places", np.array([place, (0, 2, 5)], dtype=np.int32))
    with pytest.raises(ValueError, match=r"places .*sentences"):
        OccurrenceIndex(tmp_path / "index")


@pytest.mark.parametrize("rows", [(1, 1), (-1, 1), (0, 0), (0, 2), (0, 10**400)])
def test_rows_of_words_follow_one_another(nlp, tmp_path, rows):
    indexed(nlp, tmp_path, ["a cat"])
    words = [[word, 1, row] for word, row in zip(("a", "cat"), rows, strict=True)]
    resealed(tmp_path / "index", "words.jsonl", words)
    with pytest.raises(ValueError, match=r"words\.jsonl.*damaged"):
        OccurrenceIndex(tmp_path / "index")


@pytest.mark.parametrize("name", ["places", "vectors", "centre", "spellings"])
def test_shapes_agree(nlp, tmp_path, name):
    indexed(nlp, tmp_path, ["a cat"])
    array = np.load(tmp_path / "index" / name)
    resealed(tmp_path / "index", name, np.concatenate([array, array], axis=-1))
    with pytest.raises(ValueError, match=rf"{name} has the shape"):
        OccurrenceIndex(tmp_path / "index")
