"""Bounds for the scores of question answering are compared with values by hand."""

import sys

import pytest
import spacy
from experiments.answer_bounds import agreement, main, nearest_sentence
from spacy.tokens import DocBin
from tasks.qa.annotation import set_answer


def question(text, answer):
    doc = spacy.blank("en")(text)
    start = doc.text.index(answer)
    span = doc.char_span(start, start + len(answer))
    set_answer(doc, span.start, span.end)
    return doc


BED = "How is the bed?\nThe room was big. The bed was very soft. We slept."


def test_bounds(tmp_path, monkeypatch, capsys):
    docs = [
        question(BED, "very soft"),
        question(BED, "bed was very soft"),
        question(BED, "room"),
        question("Who slept?\nIt was late.", "late"),
    ]
    # "very soft" of "bed was very soft": 2 * 2 / 6; the other two pairs share nothing.
    assert agreement(docs) == pytest.approx(100 * (2 / 3) / 3)
    assert agreement(docs[2:]) is None
    # "bed was very soft" is the sentence, without its article; then 2 * 2 / 6, 1, 0, and 2 * 1 / 4.
    assert nearest_sentence(docs) == pytest.approx(100 * (2 / 3 + 1 + 0 + 0.5) / 4)
    path = tmp_path / "a.spacy"
    DocBin(docs=docs).to_disk(path)
    monkeypatch.setattr(sys, "argv", ["answer_bounds", str(path)])
    main()
    assert capsys.readouterr().out.splitlines() == [
        "Other annotated answers to the same question: F1 22.2",
        "Sentence with most words of the question: F1 54.2",
    ]
    path.unlink()
    with pytest.raises(SystemExit, match="no corpus .*a.spacy; `spacy project run runs`"):
        main()
