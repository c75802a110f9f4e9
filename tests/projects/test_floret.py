"""Raw text is tokenized by lines, and floret's vectors become a table of spaCy."""

import gzip

import pytest
import spacy

from projects.compare import floret_vectors
from projects.compare.tokenize_text import tokenized


def test_tokenized_lines_of_all_files(tmp_path):
    (tmp_path / "train-b.txt").write_text("She's here.\n\n \nAnn left.\n", encoding="utf8")
    with gzip.open(tmp_path / "train-a.txt.gz", "wt", encoding="utf8") as file:
        file.write("It was late.\n")
    (tmp_path / "other.txt").write_text("Not this.\n", encoding="utf8")
    lines = list(tokenized(str(tmp_path / "train-*"), "en"))
    assert lines == ["It was late .", "She 's here .", "Ann left ."]
    with pytest.raises(FileNotFoundError, match="none-"):
        list(tokenized(str(tmp_path / "none-*"), "en"))


def test_the_vectors_are_a_table_that_training_reads(tmp_path):
    pytest.importorskip("floret")
    (tmp_path / "raw.txt").write_text("Ann left Bath .\n" * 200, encoding="utf8")
    out = tmp_path / "vectors"
    (out / "old").mkdir(parents=True)
    floret_vectors.train(tmp_path / "raw.txt", out, lang="la")
    nlp = spacy.load(out)
    assert nlp.lang == "la" and nlp.vocab.vectors.shape == (50_000, 300)
    # floret has a vector for every word, by its pieces.
    assert nlp.vocab["leftover"].vector.any()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["raw.txt", "vectors"]
    assert not (out / "old").exists()
    with pytest.raises(FileNotFoundError, match="none.txt"):
        floret_vectors.train(tmp_path / "none.txt", out)
