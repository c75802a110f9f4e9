"""Noun chunks of UD trees that are written out by hand."""

import pytest
import spacy
from spacy.tokens import Doc

from spacy_elmo.components.conventions import CLEARNLP
from spacy_elmo.components.noun_chunks import noun_chunks

# A word, its part of speech, its head (index) and its relation; the chunks.
SENTENCES = [
    (
        "en",
        "The/DET/1/det book/NOUN/3/nsubj:pass was/AUX/3/aux:pass written/VERB/3/ROOT by/ADP/7/case an/DET/7/det"
        " unknown/ADJ/7/amod author/NOUN/3/obl:agent ./PUNCT/3/punct",
        ["The book", "an unknown author"],
    ),
    (
        "en",
        "Dogs/NOUN/5/nsubj ,/PUNCT/2/punct cats/NOUN/0/conj and/CCONJ/4/cc birds/NOUN/0/conj live/VERB/5/ROOT"
        " in/ADP/8/case the/DET/8/det house/NOUN/5/obl of/ADP/11/case my/PRON/11/nmod:poss friend/NOUN/8/nmod",
        ["Dogs", "cats", "birds", "the house", "my friend"],
    ),
    (  # a possessor is part of the chunk, and the subject of a nominal predicate is not
        "en",
        "He/PRON/5/nsubj is/AUX/5/cop Tim/PROPN/5/nmod:poss Cook/PROPN/2/flat 's/PART/2/case cousin/NOUN/5/ROOT",
        ["He", "Tim Cook 's cousin"],
    ),
    (  # coordinated modifiers are part of the chunk, with the comma between them
        "en",
        "big/ADJ/3/amod ,/PUNCT/2/punct bad/ADJ/0/conj wolves/NOUN/3/ROOT saw/VERB/3/acl Formula/PROPN/4/obj"
        " One/PROPN/5/flat",
        ["big , bad wolves", "Formula One"],
    ),
    (  # a wrong tree puts the preposition into the name
        "en",
        "links/NOUN/0/ROOT to/ADP/2/case AQ/PROPN/3/compound Kahn/PROPN/0/nmod",
        ["links", "AQ Kahn"],
    ),
    (  # line breaks inside a phrase, and after it
        "en",
        "Tim/PROPN/3/nsubj \n/SPACE/0/dep Cook/PROPN/0/flat opened/VERB/3/ROOT Chapter/NOUN/3/obj \n/SPACE/4/dep"
        " 5/NUM/4/nummod of/ADP/8/case it/PRON/4/nmod \n/SPACE/8/dep",
        ["Tim \n Cook", "Chapter \n 5", "it"],
    ),
    (  # the cells of a table, and a bullet, whose words a wrong tree joins
        "en",
        "Anna/PROPN/0/ROOT \t/SPACE/0/dep Oslo/PROPN/0/flat saw/VERB/0/acl Kate/PROPN/3/obj \n/SPACE/4/dep"
        " -/PUNCT/7/punct Mary/PROPN/4/flat",
        ["Anna", "Kate"],
    ),
    (  # "there" refers to nothing
        "en",
        "There/PRON/1/expl is/VERB/1/ROOT hope/NOUN/1/nsubj",
        ["hope"],
    ),
    (  # the subtree of a describing word ends with a line break
        "en",
        "Tim/PROPN/3/nsubj Cook/PROPN/0/flat \n/SPACE/1/dep opened/VERB/3/ROOT May/PROPN/3/obl:unmarked"
        " 2012/NUM/4/nmod:unmarked",
        ["Tim Cook", "May 2012"],
    ),
    (
        "la",
        "populus/NOUN/3/nsubj Romanus/ADJ/0/amod \n/SPACE/1/dep vicit/VERB/3/ROOT",
        ["populus Romanus"],
    ),
    (
        "la",
        "populus/NOUN/2/nsubj Romanus/ADJ/0/amod vicit/VERB/2/ROOT hostes/NOUN/2/obj omnes/DET/3/det",
        ["populus Romanus", "hostes omnes"],
    ),
    (  # a participle with words of its own is a clause
        "la",
        "exercitus/NOUN/4/nsubj missus/ADJ/0/amod a/ADP/3/case Caesare/NOUN/1/obl venit/VERB/4/ROOT",
        ["exercitus", "Caesare"],
    ),
    (  # a verb between the words of a phrase
        "la",
        "cerasina/ADJ/2/amod appareret/VERB/1/ROOT tunica/NOUN/1/nsubj et/CCONJ/4/cc periscelides/NOUN/2/conj",
        ["tunica", "periscelides"],
    ),
    (  # a phrase inside another one
        "de",
        "das/DET/4/det von/ADP/2/case Anna/PROPN/3/obl:agent gekaufte/ADJ/4/amod Buch/NOUN/5/nsubj:pass"
        " verschwand/VERB/5/ROOT",
        ["das von Anna gekaufte Buch"],
    ),
    (  # the reflexive pronoun of a verb
        "cs",
        "výkaz/NOUN/2/nsubj:pass se/PRON/2/expl:pass provádí/VERB/2/ROOT každý/DET/4/det rok/NOUN/2/obl",
        ["výkaz", "každý rok"],
    ),
]  # fmt: skip


@pytest.mark.parametrize("labels", [{}, CLEARNLP], ids=["ud", "spacy"])
@pytest.mark.parametrize("lang, sentence, expected", SENTENCES)
def test_chunks(lang, sentence, expected, labels):
    """Renamed labels do not change the chunks."""
    words, pos, heads, deps = zip(*(word.split("/") for word in sentence.split(" ")), strict=True)
    vocab, deps = spacy.blank(lang).vocab, [labels.get(dep, dep) for dep in deps]
    tags = ["EX" if word == "There" else "" for word in words]
    heads = list(map(int, heads))
    doc = Doc(vocab, list(words), pos=list(pos), tags=tags, heads=heads, deps=deps)
    assert [doc[start:end].text for start, end, _ in noun_chunks(doc)] == expected


@pytest.mark.parametrize("lang", ["en", "la"])
@pytest.mark.parametrize("heads", [[0, 0], [1, 1]])
@pytest.mark.parametrize("relation", CLEARNLP)
def test_a_renamed_relation_means_the_same(lang, heads, relation):
    vocab = spacy.blank(lang).vocab
    one, other = (
        Doc(vocab, ["a", "b"], pos=["NOUN"] * 2, heads=heads,
            deps=["ROOT" if head == token else name for token, head in enumerate(heads)])
        for name in (relation, CLEARNLP[relation])
    )  # fmt: skip
    assert list(noun_chunks(one)) == list(noun_chunks(other))


def test_no_tree():
    with pytest.raises(ValueError, match="E029"):
        list(noun_chunks(spacy.blank("en")("a b")))
