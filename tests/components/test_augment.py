"""The augmenter of letter case and lines."""

import random

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.training.augment import make_lowercase_variant, make_whitespace_variant
from spacy.util import registry

WORDS = ["Do", "n't", "go", "to", "New", "York", ",", "he", "said", "in", "McLean", "."]
SPACES = [False, True, True, True, True, False, True, True, True, True, False, False]
LEMMAS = ["do", "not", "go", "to", "New", "York", ",", "he", "say", "in", "McLean", "."]
HEADS = [2, 2, 2, 5, 5, 2, 2, 8, 2, 10, 8, 2]
OFF = {"lower": 0.0, "upper": 0.0, "title": 0.0, "lines": 0.0}


@pytest.fixture
def example():
    nlp = spacy.blank("en")
    ents = ["O"] * 4 + ["B-LOC", "I-LOC"] + ["O"] * 4 + ["B-LOC", "O"]
    tags = [f"T{i}" for i in range(12)]
    gold = Doc(
        nlp.vocab, WORDS, SPACES, tags=tags, lemmas=LEMMAS, heads=HEADS, deps=["x"] * 12, ents=ents
    )
    return nlp, Example(nlp.make_doc(gold.text), gold)


def augmented(example, **settings):
    nlp, example = example
    make = registry.augmenters.get("spacy-elmo.case_and_lines.v1")
    (result,) = make(**OFF | settings)(nlp, example)
    return result


@pytest.mark.parametrize(
    ("case", "text", "lemmas"),
    [
        ("lower", "don't go to new york, he said in mclean.", [x.lower() for x in LEMMAS]),
        (
            "upper",
            "DON'T GO TO NEW YORK, HE SAID IN MCLEAN.",
            "do not go to NEW YORK , he say in MCLEAN .",
        ),
        ("title", "Don't Go To New York, He Said In McLean.", LEMMAS),
    ],
)
def test_a_text_changes_its_case_and_keeps_its_annotation(example, case, text, lemmas):
    """A lemma with a capital letter, a name's, changes with its word. Others are the lemmas of all forms."""
    result = augmented(example, **{case: 1.0})
    assert result.predicted.text == result.reference.text == text
    gold = result.reference
    assert [token.lemma_ for token in gold] == (
        lemmas if isinstance(lemmas, list) else lemmas.split()
    )
    assert [token.tag_ for token in gold] == [f"T{i}" for i in range(12)]
    assert [token.head.i for token in gold] == HEADS
    assert [(ent.start, ent.end, ent.label_) for ent in gold.ents] == [
        (4, 6, "LOC"),
        (10, 11, "LOC"),
    ]


def test_given_words_are_not_split_anew(example):
    """As by spaCy's corpus reader, the words of a text whose spaces are unknown stay."""
    nlp, _ = example
    gold = Doc(nlp.vocab, ["I", "don't", "know."])
    changed = augmented((nlp, Example(gold.copy(), gold)), upper=1.0)
    for doc in (changed.predicted, changed.reference):
        assert [token.text for token in doc] == ["I", "DON'T", "KNOW."]
    assert changed.reference.has_unknown_spaces


@pytest.mark.parametrize("seed", range(5))
def test_lines_break_between_words_and_change_nothing_else(example, seed):
    random.seed(seed)
    result = augmented(example, lines=1.0, width=4)
    words = [token for token in result.reference if not token.is_space]
    assert [token.text for token in words] == WORDS
    assert [token.tag_ for token in words] == [f"T{i}" for i in range(12)]
    assert [words.index(token.head) for token in words] == HEADS
    gaps = [len(line.split()) for line in result.reference.text.split("\n")]
    assert len(gaps) >= 3
    assert [ent.text.replace("\n", "") for ent in result.reference.ents] == ["New York", "McLean"]


def test_an_example_stays_as_often_as_the_probabilities_say(example):
    random.seed(0)
    texts = [augmented(example, lower=0.2, upper=0.3).reference.text for _ in range(2000)]
    assert 0.16 < sum(text.islower() for text in texts) / 2000 < 0.24
    assert 0.26 < sum(text.isupper() for text in texts) / 2000 < 0.34


def test_impossible_probabilities_are_refused(example):
    with pytest.raises(ValueError, match=r"1\.2"):
        augmented(example, lower=0.6, upper=0.6)


def test_names_are_found_again_where_capitals_are_longer():
    nlp = spacy.blank("de")
    gold = Doc(nlp.vocab, ["Die", "Stra\xdfe", "in", "Wien"], [True, True, True, False])
    vienna = Span(gold, 3, 4, "LOC", kb_id="Q1741")
    gold.set_ents([vienna], outside=[gold[0:1]], missing=[gold[1:3]])
    gold.spans["sc"] = [vienna]
    result = augmented((nlp, Example(nlp.make_doc(gold.text), gold)), upper=1.0)
    assert result.reference.text == "DIE STRASSE IN WIEN"
    assert result.get_aligned_ner() == ["O", None, None, "U-LOC"]
    for spans in (result.reference.ents, result.reference.spans["sc"]):
        assert [(span.text, span.label_, span.kb_id_) for span in spans] == [
            ("WIEN", "LOC", "Q1741")
        ]


# Lower case makes one letter of "\u0130" two, capitals one letter of the others.
FORMS = ["Anna", "NASA", "says", "n't", ",", "stra\xdfe", "\u0149", "\ufb01n", "\u0130zmir", "Wien"]


def random_doc(vocab, draw):
    """Make a Doc with some kinds of annotation, each missing on some tokens or none."""
    words = draw.choices(FORMS, k=draw.randint(0, 10))
    doc = Doc(vocab, words, [draw.random() < 0.8 for _ in words])

    def some():
        chance = draw.choice([0.0, 0.5, 1.0])
        return [token for token in doc if draw.random() < chance]

    for token in some():
        token.tag_ = draw.choice(["NN", "VB"])
    for token in some():
        token.pos_ = draw.choice(["NOUN", "VERB"])
    for token in some():
        token.set_morph(draw.choice(["", "Case=Nom"]))
    for token in some():
        token.lemma_ = draw.choice([token.text, token.text.lower()])
    for token in some():
        token.is_sent_start = draw.choice([True, False])
    if words and draw.random() < 0.5:
        labelled = {token.i for token in some()}
        heads = [draw.randint(0, i) if i in labelled else i for i in range(len(words))]
        deps = [draw.choice(["nsubj", "obj"]) if i in labelled else "" for i in range(len(words))]
        doc = Doc(vocab, words, [bool(token.whitespace_) for token in doc], heads=heads, deps=deps).from_array(
            ["TAG", "POS", "MORPH", "LEMMA"], doc.to_array(["TAG", "POS", "MORPH", "LEMMA"])
        )  # fmt: skip
    spans = []
    for _ in range(draw.randint(0, 3) if words else 0):
        start = draw.randrange(len(words))
        end = draw.randint(start + 1, min(len(words), start + 3))
        kb_id, span_id = draw.choice(["", "Q1"]), draw.choice(["", "id"])
        spans.append(Span(doc, start, end, draw.choice("XY"), kb_id=kb_id, span_id=span_id))
    if draw.random() < 0.5:
        doc.spans["sc"] = spans
    if draw.random() < 0.7:
        ents = spacy.util.filter_spans(spans)
        inside = {token.i for ent in ents for token in ent}
        rest = [doc[token.i : token.i + 1] for token in some() if token.i not in inside]
        kind = draw.choice(["missing", "blocked"])
        doc.set_ents(ents, **{kind: rest}, default=draw.choice(["outside", "missing"]))
    doc.cats = draw.choice([{}, {"A": 1.0, "B": 0.0}])
    return doc


def tokens(doc):
    """Return what is known about each token."""
    return [
        {
            "text": (token.text, token.whitespace_),
            "tag": (token.tag_, token.pos_, token.dep_, token.head.i),
            "morph": str(token.morph) if token.has_morph() else None,
            "lemma": token.lemma_,
            "starts": token.is_sent_start,
            "entity": (token.ent_iob_, token.ent_type_, token.ent_kb_id_),
            "id": token.ent_id_,
        }
        for token in doc
    ]


def whole(doc):
    """Return what is known about a Doc as a whole."""
    spans = {
        name: [(s.start, s.end, s.label_, s.kb_id_, s.id_) for s in group]
        for name, group in doc.spans.items()
    }
    return dict(doc.cats), spans


def with_examples(count):
    nlp, draw = spacy.blank("en"), random.Random(0)
    random.seed(0)
    for _ in range(count):
        doc = random_doc(nlp.vocab, draw)
        yield nlp, Example(nlp.make_doc(doc.text), doc)


@pytest.mark.parametrize("case", ["lower", "upper", "title"])
def test_all_annotation_stays_and_what_is_missing_stays_missing(case):
    change = {"lower": str.lower, "upper": str.upper}.get(case)
    for nlp, example in with_examples(300):
        gold = example.reference
        before = tokens(gold)
        result = augmented((nlp, example), **{case: 1.0})
        after = tokens(result.reference)
        assert whole(result.reference) == whole(gold)
        assert result.predicted.text == result.reference.text
        for old, new in zip(before, after, strict=True):
            if change:
                assert new["text"] == (change(old["text"][0]), old["text"][1])
            has_capital = old["lemma"] != old["lemma"].lower()
            if change and has_capital:
                assert new["lemma"] == change(old["lemma"])
            assert {**new, "text": "", "lemma": ""} == {**old, "text": "", "lemma": ""}


def kept_by_spacy(doc):
    """Return what spaCy's augmenters keep about each token. They change missing features to no features, "no entity
    is possible" to unknown, and "begins no sentence" to unknown, and drop ids of entities and, if there is no name, all
    entity annotation. They call a line break "no entity" also beside unknown words."""
    kept = tokens(doc)
    has_names = any(token["entity"][1] for token in kept)
    for token in kept:
        token["morph"] = token["morph"] or ""
        token["lemma"] = token["lemma"].lower()  # spaCy does not change it
        if not doc.has_annotation("DEP"):
            del token["starts"]
        iob, label, kb_id = token.pop("entity")
        if has_names:
            outside = token["text"][0] == "\n" and iob != "I"
            unknown = iob == "B" and not label
            token["entity"] = ("O" if outside else "" if unknown else iob, label, kb_id)
        del token["id"]
    return kept


def test_only_what_spacys_augmenters_lose_differs_from_theirs():
    compared = 0
    for nlp, example in with_examples(300):
        gold = example.reference
        if all(len(token.lower_) == len(token) for token in gold):
            lower = augmented((nlp, example), lower=1.0).reference
            theirs = make_lowercase_variant(nlp, example).reference
            assert kept_by_spacy(lower) == kept_by_spacy(theirs)
            assert lower.cats == theirs.cats
            compared += 1
        # spaCy breaks no line of a Doc with these annotations.
        has_links = any(token.ent_kb_id for token in gold) or gold.spans
        has_dep, has_all = (gold.has_annotation("DEP", require_complete=x) for x in (False, True))
        if has_links or has_dep != has_all:
            continue
        ours = augmented((nlp, example), lines=1.0, width=3).reference
        for token in ours:
            if token.text == "\n":
                example = make_whitespace_variant(nlp, example, "\n", token.i)
        assert kept_by_spacy(ours) == kept_by_spacy(example.reference)
        compared += 1
    assert compared > 200


def test_a_line_break_changes_no_annotation_of_words():
    for nlp, example in with_examples(300):
        gold = example.reference
        after = augmented((nlp, example), lines=1.0, width=3).reference
        words = [token.i for token in after if token.text != "\n"]
        assert len(words) < len(after) or len(gold) <= 3
        got = [tokens(after)[place] for place in words]
        for token in got:
            *labels, head = token["tag"]
            token["tag"] = (*labels, words.index(head))
        assert got == tokens(gold)
        cats, groups = whole(after)
        for name, spans in groups.items():
            groups[name] = [
                (words.index(s), words.index(e - 1) + 1, *rest) for s, e, *rest in spans
            ]
        assert (cats, groups) == whole(gold)
