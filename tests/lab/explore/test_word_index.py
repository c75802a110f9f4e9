"""The index of all occurrences is compared with a search for a word in the text."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from spacy_elmo import embed
from spacy_elmo.lab.contexts import find_occurrences
from spacy_elmo.lab.documents import Document
from spacy_elmo.lab.explore.word_index import WordIndex

TEXTS = ["The bank is old.  It isn't a BANK", "", "No such thing here.", " Their bank,\tmy bank!"]


def indexed(nlp, folder, lines, **options):
    (folder / "a.txt").write_text("\n".join(lines), encoding="utf8")
    embed(nlp, str(folder / "a.txt"), folder / "vectors", **options)
    return WordIndex(folder / "vectors")


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
    # In memory they are float16.
    np.testing.assert_allclose(occurrences.vectors, expected.vectors[1:], atol=1e-3)
    words = np.concatenate([nlp(t.strip())._.elmo_layers for t in TEXTS if t], axis=1)
    words = words[:, np.abs(words[0]).sum(axis=1) > 0]
    np.testing.assert_allclose(index.center[:, 0], words.mean(axis=1), atol=1e-5)
    assert index.count("BANK") == 4 and index.count("loan") == 0
    assert index.find("loan") is None
    assert index.tokens == words.shape[1] and index.sentences == 4
    assert index.pipeline["lang"] == "en"


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
    every = [spelling.word for spelling in index.similar_spellings(doc[1], 100)]
    assert len(every) == len(set(every)) and not any(word.isspace() for word in every)
    vectors = {
        token.text.casefold(): nlp(token.text)._.elmo_layers[0, 0] - index.center[0, 0]
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


def test_several_files_and_row_groups(nlp, tmp_path):
    """The same vectors in other pieces are the same index."""
    whole = indexed(nlp, tmp_path, TEXTS, dtype="float16")
    table = pq.read_table(tmp_path / "vectors")
    (tmp_path / "parts").mkdir()
    for number, rows in enumerate((table.slice(0, 7), table.slice(7))):
        pq.write_table(rows, tmp_path / "parts" / f"{number}.parquet", row_group_size=2)
    parts = WordIndex(tmp_path / "parts")
    np.testing.assert_array_equal(parts.find("bank").vectors, whole.find("bank").vectors)
    np.testing.assert_allclose(parts.center, whole.center, atol=1e-6)
    assert parts.find("bank").items == whole.find("bank").items


@pytest.mark.parametrize(
    "lines, options, problem",
    [
        (["", " "], {}, "contains no words"),
        (TEXTS, {"layers": "average"}, "Write all layers of each token"),
        (TEXTS, {"unit": "span"}, "Write all layers of each token"),
    ],
)
def test_what_is_no_index(nlp, tmp_path, lines, options, problem):
    with pytest.raises(ValueError, match=problem):
        indexed(nlp, tmp_path, lines, **options)
