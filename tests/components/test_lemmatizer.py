"""The lemmatizer whose edit trees apply to normalized words."""

import pickle

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.strings import StringStore
from spacy.tokens import Doc
from spacy.training import Example

from spacy_elmo.bilm.spelling import Spelling
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.components.lemmatizer import NormalizedEditTrees
from tests import tiny

SENTENCES = [
    ("Books are here .", "book be here ."),
    ("the books of Anna", "the book of Anna"),
    ("THE CAT saw a cat", "the cat see a cat"),
]

KNOWN = {lemma for _, lemmas in SENTENCES for lemma in lemmas.split()}


def examples(vocab, sentences):
    return [
        Example(
            Doc(vocab, words=words.split()),
            Doc(vocab, words=words.split(), lemmas=lemmas.split()),
        )
        for words, lemmas in sentences
    ]


def trained(sentences=SENTENCES, **options):
    nlp = spacy.blank("en")
    nlp.add_pipe("normalizing_lemmatizer", config={"min_tree_freq": 1, **options})
    optimizer = nlp.initialize(lambda: examples(nlp.vocab, sentences))
    for _ in range(60):
        nlp.update(examples(nlp.vocab, sentences), sgd=optimizer)
    return nlp


def lemmas(nlp, text):
    return [token.lemma_ for token in nlp(text)]


LATIN = Spelling("NFD", (("v", "u"), ("V", "U"), ("\u0304", "")))


@given(st.text(max_size=8), st.text(max_size=8), st.sampled_from([Spelling(), LATIN]))
def test_a_tree_makes_the_lemma_it_was_added_for(form, lemma, spelling):
    trees = NormalizedEditTrees(StringStore(), spelling)
    assert trees.apply(trees.add(form, lemma), form) == lemma


def test_words_share_a_tree_whatever_their_capital_letters():
    trees = NormalizedEditTrees(StringStore())
    assert trees.add("Books", "book") == trees.add("CATS", "cat") == trees.add("dogs", "dog")
    assert trees.add("Anna", "Anna") == trees.add("NASA", "NASA") != trees.add("The", "the")
    assert trees.apply(trees.add("Books", "book"), "DOGS") == "dog"
    assert trees.apply(trees.add("Saw", "see"), "Was") is None


def test_words_share_a_tree_whatever_their_spelling():
    trees = NormalizedEditTrees(StringStore(), LATIN)
    tree = trees.add("Veritatis", "ueritas")
    assert trees.add("ueritātis", "ueritas") == trees.add("civitatis", "ciuitas") == tree
    assert trees.apply(tree, "NOVITATIS") == "nouitas"
    # The rule is in NFD, but the lemmas are in NFC.
    assert trees.add("café", "café") == trees.add("domus", "domus")


@pytest.mark.parametrize("top_k", [1, 3, 30])
def test_it_learns_lemmas_and_capital_letters(top_k):
    nlp = trained(top_k=top_k)
    for words, expected in SENTENCES:
        assert lemmas(nlp, words) == expected.split()


def test_the_lemma_of_the_rest_of_a_split_word_is_not_known():
    nlp = trained([("the c at s", "the cat _ s")])
    assert nlp.get_pipe("normalizing_lemmatizer").trees.lemmas == {"the", "cat", "s"}


def test_a_tree_that_makes_a_known_lemma_goes_first():
    trees = NormalizedEditTrees(StringStore())
    cut, same, other = trees.add("cats", "cat"), trees.add("a", "a"), trees.add("went", "go")
    assert trees.choose([other, same, cut], "dogs") == same
    trees.lemmas = {"dog"}
    assert trees.choose([other, same, cut], "dogs") == cut
    assert trees.choose([other, same, cut], "birds") == same
    assert trees.choose([other], "birds") == -1


def test_no_tree_makes_an_empty_lemma():
    trees = NormalizedEditTrees(StringStore())
    cut, same = trees.add("as", "a"), trees.add("a", "a")
    assert trees.apply(cut, "s") == ""
    assert trees.choose([cut, same], "s") == same
    assert trees.choose([cut], "s") == -1


def test_proper_nouns_keep_their_case():
    nlp = trained([("the python bites a Bob", "the python bite a Bob")], top_k=30)
    doc = Doc(nlp.vocab, ["the", "Python", "PYTHON"], pos=["DET", "PROPN", "PROPN"])
    nlp.get_pipe("normalizing_lemmatizer")(doc)
    assert [token.lemma_ for token in doc] == ["the", "Python", "python"]


def test_rare_trees_are_left_out():
    """Three of the words keep their letters, after lowercasing. Each other word needs a tree of its own."""
    sentences = [("The A it", "the a it"), ("Books are Anna", "book be Anna")]
    assert len(trained(sentences, min_tree_freq=3).get_pipe("normalizing_lemmatizer").labels) == 1


def test_the_spelling_is_that_of_the_upstream_biLM(tmp_path):
    config = tiny.config(unicode_form=LATIN.form, replace=LATIN.replace)
    Weights.from_bilm(tiny.bilm(config)).save(tmp_path / "tiny.safetensors")
    nlp = spacy.blank("la")
    nlp.add_pipe("elmo", config={"weights": str(tmp_path / "tiny.safetensors")})
    listener = {"@architectures": "spacy-elmo.ElmoListener.v1", "upstream": "elmo"}
    tagger = {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}
    options = {"upstream": "elmo", "min_tree_freq": 1, "model": tagger}
    pipe = nlp.add_pipe("normalizing_lemmatizer", config=options)
    nlp.initialize(
        lambda: examples(nlp.vocab, [("Veritatis ueritatis Vīta", "ueritas ueritas uita")])
    )
    # One tree for both spellings of "truth", and one that keeps the letters.
    assert len(pipe.labels) == 2
    nlp.to_disk(tmp_path / "nlp")
    assert spacy.load(tmp_path / "nlp").get_pipe("normalizing_lemmatizer").trees.spelling == LATIN


def test_the_upstream_component_must_be_an_elmo():
    nlp = spacy.blank("la")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("normalizing_lemmatizer", config={"upstream": "sentencizer"})
    with pytest.raises(ValueError, match="upstream = 'sentencizer', which is not an elmo"):
        nlp.initialize(lambda: examples(nlp.vocab, SENTENCES))


def test_a_loaded_copy_can_be_trained_further(tmp_path):
    trained().to_disk(tmp_path)
    nlp = spacy.load(tmp_path)
    optimizer = nlp.resume_training()
    for _ in range(10):
        nlp.update(examples(nlp.vocab, SENTENCES), sgd=optimizer)
    for words, expected in SENTENCES:
        assert lemmas(nlp, words) == expected.split()
    pipe = nlp.get_pipe("normalizing_lemmatizer")
    pipe.initialize(lambda: examples(nlp.vocab, SENTENCES), nlp=nlp)
    assert len(pipe.labels) == len(set(pipe.labels))


def test_all_lemmas_of_the_training_are_known(tmp_path):
    """With `max_epochs = -1`, spaCy shows `initialize` 100 Docs. A sourced component is not initialized again."""
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("normalizing_lemmatizer", config={"min_tree_freq": 1})
    optimizer = nlp.initialize(lambda: examples(nlp.vocab, SENTENCES[:1]))
    for sentence in SENTENCES:
        nlp.update(examples(nlp.vocab, [sentence]), sgd=optimizer)
    assert pipe.trees.lemmas == KNOWN
    nlp.to_disk(tmp_path)

    new = spacy.blank("en")
    sourced = new.add_pipe("normalizing_lemmatizer", source=spacy.load(tmp_path))
    new.update(examples(new.vocab, [("a dog", "a dog")]), sgd=new.resume_training())
    assert sourced.trees.lemmas == KNOWN | {"dog"}


def test_saved_copies_lemmatize_the_same(tmp_path):
    nlp = trained()
    nlp.to_disk(tmp_path)
    copies = [
        spacy.load(tmp_path),
        spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes()),
        pickle.loads(pickle.dumps(nlp)),
    ]
    for copy in copies:
        assert copy.get_pipe("normalizing_lemmatizer").trees.lemmas == KNOWN
        assert lemmas(copy, "THE books of Cat") == lemmas(nlp, "THE books of Cat")


def test_labels_of_a_file_make_the_same_component():
    """`spacy init labels` writes `label_data`, and `initialize` reads it."""
    label_data = trained().get_pipe("normalizing_lemmatizer").label_data
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("normalizing_lemmatizer", config={"min_tree_freq": 1})
    pipe.initialize(lambda: examples(nlp.vocab, SENTENCES), nlp=nlp, labels=label_data)
    assert pipe.label_data == label_data
