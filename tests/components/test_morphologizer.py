"""The morphologizer that remembers the analyses of words."""

import numpy as np
import pytest
import spacy
import srsly
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed

# Two nouns and two verbs, so that a part of speech can be more probable than each of its analyses.
WORDS = ["canes", "currunt", "cane", "currit", "et"]
PARTS = ["NOUN", "VERB", "NOUN", "VERB", "CCONJ"]
FEATURES = ["Number=Plur", "Number=Plur", "Number=Sing", "Number=Sing", ""]


def reference(vocab):
    return Doc(vocab, words=WORDS, pos=PARTS, morphs=FEATURES)


@pytest.fixture
def nlp():
    fix_random_seed()
    nlp = spacy.blank("la")
    pipe = nlp.add_pipe("lexicon_morphologizer", name="morphologizer")
    # A second analysis of "canes", and a word without annotations.
    second = Doc(nlp.vocab, words=["canes", "?"])
    second[0].pos_ = "VERB"
    second[0].set_morph("Number=Sing")
    examples = [
        Example(Doc(nlp.vocab, words=words), doc)
        for words, doc in [(WORDS, reference(nlp.vocab)), (["canes", "?"], second)]
    ]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(3):
        nlp.update(examples, sgd=optimizer)
    assert len(pipe.labels) == 5
    return nlp


def part(label):
    return label.split("POS=")[1]


def known(pipe):
    """Return the lexicon with parts of speech and features instead of numbers."""
    return {
        word: {pipe.labels[number] for number in numbers}
        for word, numbers in pipe.cfg["lexicon"].items()
    }


LEXICON = {
    "canes": {"Number=Plur|POS=NOUN", "Number=Sing|POS=VERB"},
    "currunt": {"Number=Plur|POS=VERB"},
    "cane": {"Number=Sing|POS=NOUN"},
    "currit": {"Number=Sing|POS=VERB"},
    "et": {"POS=CCONJ"},
}


def test_the_lexicon_has_each_analysis_of_each_word(nlp):
    assert known(nlp.get_pipe("morphologizer")) == LEXICON


def test_all_words_of_the_training_are_known(nlp, tmp_path):
    """With `max_epochs = -1`, spaCy shows `initialize` 100 Docs. A sourced component is not initialized again."""
    pipe = nlp.get_pipe("morphologizer")
    first = Example(Doc(nlp.vocab, words=WORDS), reference(nlp.vocab))
    optimizer = nlp.initialize(lambda: [first])
    canis = Doc(nlp.vocab, ["canis", "cane"], pos=["NOUN", "VERB"], morphs=["Number=Sing"] * 2)
    nlp.update([first], sgd=optimizer)
    nlp.update([Example(Doc(nlp.vocab, ["canis", "cane"]), canis)], sgd=optimizer)
    expected = LEXICON | {
        "canes": {"Number=Plur|POS=NOUN"},
        "canis": {"Number=Sing|POS=NOUN"},
        "cane": {"Number=Sing|POS=NOUN", "Number=Sing|POS=VERB"},
    }
    assert known(pipe) == expected
    nlp.to_disk(tmp_path)

    new = spacy.blank("la")
    sourced = new.add_pipe("morphologizer", source=spacy.load(tmp_path))
    canum = Doc(new.vocab, words=["canum"], pos=["NOUN"], morphs=["Number=Plur"])
    new.update([Example(Doc(new.vocab, words=["canum"]), canum)], sgd=new.resume_training())
    assert known(sourced) == expected | {"canum": {"Number=Plur|POS=NOUN"}}


def test_the_choice_has_the_highest_product(nlp):
    """The oracle computes the product label by label, with a network of random weights."""
    pipe = nlp.get_pipe("morphologizer")
    softmax = pipe.model.get_ref("softmax")
    random = np.random.default_rng(0)
    differs = 0
    for _ in range(20):
        for name in ("W", "b"):
            shape = softmax.get_param(name).shape
            softmax.set_param(name, random.normal(0, 0.2, shape).astype("float32"))
        doc = nlp(" ".join([*WORDS, "unknown"]))
        [rows] = pipe.model.predict([doc])
        for token, row in zip(doc, rows, strict=True):
            probability = dict(zip(pipe.labels, row.tolist(), strict=True))
            product = {}
            for label, p in probability.items():
                same = [other for other in probability if part(other) == part(label)]
                product[label] = p * sum(probability[other] for other in same)
                product[label] *= 10 if label in LEXICON.get(token.text, ()) else 1
            best = max(product, key=product.get)
            assert token.pos_ == part(best)
            assert str(token.morph) == best.split("POS=")[0].rstrip("|")
            differs += best != max(probability, key=probability.get)
    assert differs > 5


def test_a_network_that_was_saved_by_a_morphologizer_of_spacy(nlp):
    """Its scores were not normalized. Without a lexicon, the part of speech with the highest sum comes first."""
    theirs = nlp.get_pipe("morphologizer")
    plain = nlp.add_pipe("morphologizer", name="plain")
    plain.cfg.update({name: theirs.cfg[name] for name in ("labels_morph", "labels_pos")})
    plain.model.initialize([nlp.make_doc("et")], [np.zeros((1, 5), "f")])
    softmax = plain.model.get_ref("softmax")
    # Two analyses with 0.3 each are both verbs. The noun with 0.4 is the most probable analysis.
    chances = {
        "Number=Sing|POS=NOUN": 0.4,
        "Number=Plur|POS=VERB": 0.3,
        "Number=Sing|POS=VERB": 0.29,
    }
    rows = [np.log(chances.get(label, 0.005)) for label in plain.labels]
    softmax.set_param("W", np.zeros_like(softmax.get_param("W")))
    softmax.set_param("b", np.array(rows, "f"))
    assert not softmax.attrs["softmax_normalize"]
    ours = nlp.add_pipe("lexicon_morphologizer").from_bytes(plain.to_bytes())
    doc = nlp.make_doc("unknown")
    assert plain.labels[plain.predict([doc])[0][0]] == "Number=Sing|POS=NOUN"
    assert ours.labels[ours.predict([doc])[0][0]] == "Number=Plur|POS=VERB"


def test_documents_without_words(nlp):
    empty, one = nlp.pipe(["", "currit"])
    assert (len(empty), one[0].pos_) == (0, "VERB")
    assert len(nlp("")) == 0


@pytest.mark.parametrize("copy", ["disk", "bytes"])
def test_a_copy_chooses_the_same(nlp, tmp_path, copy):
    if copy == "disk":
        nlp.to_disk(tmp_path)
        loaded = spacy.load(tmp_path)
    else:
        loaded = spacy.blank("la")
        loaded.add_pipe("lexicon_morphologizer", name="morphologizer")
        loaded.from_bytes(nlp.to_bytes())
    pipe = loaded.get_pipe("morphologizer")
    assert known(pipe) == LEXICON
    text = " ".join([*WORDS, "unknown"])
    expected = [(token.pos_, token.morph) for token in nlp(text)]
    assert [(token.pos_, token.morph) for token in loaded(text)] == expected


def test_an_empty_analysis_is_not_a_missing_one():
    nlp = spacy.blank("la")
    pipe = nlp.add_pipe("lexicon_morphologizer")
    doc = Doc(nlp.vocab, words=["et", "canes", "?"])
    doc[0].set_morph("")
    doc[1].set_morph("Number=Plur")
    examples = [Example(Doc(nlp.vocab, words=["et", "canes", "?"]), doc)]
    nlp.update(examples, sgd=nlp.initialize(lambda: examples))
    assert known(pipe) == {"et": {"_"}, "canes": {"Number=Plur"}}


def test_labels_that_are_given(nlp, tmp_path):
    """Analyses of the training data that have no label are not in the lexicon."""
    data = nlp.get_pipe("morphologizer").label_data
    fewer = {name: dict(list(values.items())[:2]) for name, values in data.items()}
    other = spacy.blank("la")
    pipe = other.add_pipe("lexicon_morphologizer")
    example = Example(Doc(other.vocab, words=WORDS), reference(other.vocab))
    srsly.write_json(tmp_path / "labels.json", fewer)
    reader = {"@readers": "spacy.read_labels.v1", "path": str(tmp_path / "labels.json")}
    other.config["initialize"]["components"] = {"lexicon_morphologizer": {"labels": reader}}
    other.initialize(lambda: [example])
    pipe.update([example])
    assert known(pipe) == {
        "canes": LEXICON["canes"] - {"Number=Sing|POS=VERB"},
        "currunt": LEXICON["currunt"],
    }
