"""Sentences of plain text, by hand."""

import pipelines
import pytest
import spacy

CONLLU = """# newdoc id = a
# sent_id = 1
# text = One two.
1\tOne\t_\t_\t_\t_\t_\t_\t_\t_

# text = Three  four
1\tThree\t_\t_\t_\t_\t_\t_\t_\t_

# newpar
# text = Five.
1\tFive\t_\t_\t_\t_\t_\t_\t_\t_
"""


def test_sentences_of_paragraphs(tmp_path):
    path = tmp_path / "sample.conllu"
    path.write_text(CONLLU, "utf8")
    texts = pipelines.paragraphs(path)
    assert texts == [["One two.", "Three  four"], ["Five."]]
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    assert pipelines.sentences(nlp, texts) == 100
    # "Six. Seven" has no border that is right, and "Eight Nine." has one sentence instead of two.
    assert pipelines.sentences(
        nlp, [["Six. Seven"], ["Eight", "Nine."], ["Ten."]]
    ) == pytest.approx(100 * 2 * 1 / (4 + 4))
