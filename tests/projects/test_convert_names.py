"""Sets of names become one file of Docs with the same labels, and without part-of-speech tags."""

import sys

import pytest
import spacy
from spacy.tokens import DocBin

from projects.treebank import convert_names


def converted(tmp_path, monkeypatch, labels, part="train"):
    """Return the Docs that the program writes from two sets."""
    (tmp_path / f"web-{part}.tsv").write_text("Bath\tB-location\n.\tO\n\n", "utf8")
    (tmp_path / f"news-{part}.tsv").write_text("Rose\tB-PER\nHale\tI-PER\n\n", "utf8")
    out = tmp_path / "new" / "names.spacy"
    arguments = [tmp_path, part, out, "--sets", "web,news", "--labels", labels]
    monkeypatch.setattr(sys, "argv", ["convert_names", *map(str, arguments)])
    convert_names.main()
    return list(DocBin().from_disk(out).get_docs(spacy.blank("en").vocab))


def test_labels_are_mapped_and_no_token_has_a_tag(tmp_path, monkeypatch):
    docs = converted(tmp_path, monkeypatch, "location=LOC")
    assert [[(ent.text, ent.label_) for ent in doc.ents] for doc in docs] == [
        [("Bath", "LOC")],
        [("Rose Hale", "PER")],
    ]
    assert not any(doc.has_annotation("TAG") for doc in docs)


def test_a_test_set_can_lack_a_label(tmp_path, monkeypatch):
    assert len(converted(tmp_path, monkeypatch, "group=ORG", part="test")) == 2


@pytest.mark.parametrize("labels", ["group=ORG", "location", "location="])
def test_a_wrong_map_of_labels_is_named(tmp_path, monkeypatch, labels):
    with pytest.raises(SystemExit, match=labels.split("=")[0]):
        converted(tmp_path, monkeypatch, labels)
