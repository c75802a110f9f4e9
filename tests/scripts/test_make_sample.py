"""The sample corpus is what its generator writes, and no name of its test part can be learned by heart."""

import re
import sys
from pathlib import Path

import pytest
from spacy.training.converters import conllu_to_docs

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from make_sample import SAMPLE, Expander, make_sample, read_rules, tagged

AMBIGUOUS = "bank bark bat crane light match mouse play right spring".split()


class FirstPhrase:
    """Stands in for the random generator: takes phrases in the order of the grammar."""

    def sample(self, phrases, count):
        return phrases[::-1]


def names(part: str) -> set[str]:
    actual, name = set(), []
    for line in [*(SAMPLE / "ner" / f"sample-{part}.tsv").read_text().splitlines(), ""]:
        word, _, tag = line.partition("\t")
        if name and not tag.startswith("I-"):
            actual.add(" ".join(name))
            name = []
        if tag.startswith(("B-", "I-")):
            name.append(word)
    return actual


def test_committed_files_are_what_the_script_writes(tmp_path):
    make_sample(tmp_path)
    written = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*.*")}
    # The quiz of word senses is written by hand.
    paths = [p for p in SAMPLE.rglob("*.*") if p.parent.name != "senses" and p.suffix != ".md"]
    committed = {p.relative_to(SAMPLE): p.read_bytes() for p in paths}
    assert written == committed
    assert sum(map(len, committed.values())) < 1_000_000


def test_test_names_are_new():
    train, dev, test = names("train"), names("dev"), names("test")
    assert len(train) > 100 and len(test) > 150
    assert not (train | dev) & test
    # Not a first name, last name or town either; what is shared are words such as Bank, Lake and University.
    words = {word for name in train | dev for word in name.split()}
    shared = {word for name in test for word in name.split()} & words
    assert shared <= set(
        "& Bank Club East Hospital Lake Ltd. Port River University and for of".split()
    )


def test_raw_text_is_as_described():
    text = (SAMPLE / "pretrain-en" / "train-00.txt").read_text()
    documents = text.split("\n\n")
    assert 300 < len(documents) < 500
    assert len(re.findall(r"[.!?]\"?(?:\s|$)", text)) == pytest.approx(5000, rel=0.02)
    counts = {word: len(re.findall(rf"\b{word}s?\b", text, re.IGNORECASE)) for word in AMBIGUOUS}
    assert min(counts.values()) >= 40, counts
    # A slot that was not filled, and an article that does not fit its noun.
    assert not re.findall(r"[{}@\[\]]", text)
    assert not re.findall(r"\b[Aa] (?!one\b)[aeiou]\w+", text)


def test_the_treebank_is_a_tree_of_words_that_agree():
    """Every sentence has one root, above which no word stands, and its verb has the number of its subject."""
    docs = conllu_to_docs((SAMPLE / "pos/sample-train.conllu").read_text("utf8"), n_sents=1)
    docs = list(docs)
    assert (
        len(docs) == 200 and docs[0].text.strip() == "The small ships sing beside the old farmers."
    )
    for doc in docs:
        (root,) = (token for token in doc if token.dep_ == "ROOT")
        assert all(root in (token, *token.ancestors) for token in doc)
        (subject,) = (token for token in root.children if token.dep_ == "nsubj")
        if root.tag_ != "VBD":
            assert (root.tag_ == "VBP") == (subject.tag_ == "NNS")
            assert (root.text == root.lemma_) == (subject.morph.get("Number") == ["Plur"])
        assert doc[-1].head == root and doc[-1].tag_ == "."
        assert {token.head.tag_[:2] for token in doc if token.dep_ in ("det", "case")} == {"NN"}


def test_slots_are_filled_and_bound_per_document():
    rules = {"s": ["{@who} saw {who} and {@who}"], "who": ["Ann", "Bob"]}
    expander = Expander(rules, FirstPhrase())
    assert "".join(text for text, _ in expander.sentence("s")) == "Ann saw Bob and Ann"


def test_tags_follow_the_outermost_entity():
    rules = {
        "s": ["{ORG} and {PLACE} {PLACE} met {PERSON.first} 's dog"],
        "ORG": ["the Bank of {PLACE}"],
        "PLACE": ["Ulm", "Bad Orb", "Ey"],
        "PERSON.first": ["May"],
    }
    rows = tagged(Expander(rules, FirstPhrase()).sentence("s"))
    assert " ".join(f"{word}/{tag}" for word, tag in rows) == (
        "The/O Bank/B-ORG of/I-ORG Ulm/I-ORG and/O Bad/B-PLACE Orb/I-PLACE Ey/B-PLACE "
        "met/O May/B-PERSON 's/O dog/O"
    )


def test_used_up_rule_is_an_error():
    expander = Expander({"s": ["one", "two"]}, FirstPhrase())
    assert [expander.sentence("s"), expander.sentence("s")] == [[("one", "")], [("two", "")]]
    with pytest.raises(ValueError, match=r"\[s\] generates no new sentence"):
        expander.sentence("s")


@pytest.mark.parametrize(
    "text, message",
    [
        ("Ann\n", r":1: the phrase 'Ann' is before the first"),
        ("[a]\nx\n\n[a]\n", r":4: the rule \[a\] occurs twice"),
    ],
)
def test_bad_grammar_names_file_and_line(tmp_path, text, message):
    path = tmp_path / "words.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"words.txt{message}"):
        read_rules(path)


def test_unknown_slot_names_it():
    with pytest.raises(ValueError, match=r"no rule \[boat\]"):
        Expander({"s": ["a {boat}"]}, FirstPhrase()).sentence("s")
