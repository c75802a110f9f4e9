"""Tokenized sentences of passages, compared with spaCy's own component and a plain implementation of the rule."""

import multiprocessing
import os
import pickle
import signal

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc

from spacy_elmo.pretraining import tokenize as tokenize_module
from spacy_elmo.pretraining.config import Prepare
from spacy_elmo.pretraining.tokenize import PassageTokenizer, TokenizedPassages, tokenize_files
from spacy_elmo.text.passages import Passage

NLP = spacy.blank("en")
NLP.add_pipe("sentencizer")
WHITESPACE = {"@tokenizers": "tests.whitespace.v1"}
PLAIN, TOKENIZED = PassageTokenizer(Prepare()), PassageTokenizer(Prepare(tokenized=True))


@spacy.registry.tokenizers("tests.whitespace.v1")
def make_whitespace_tokenizer():
    return lambda nlp: Tokenizer(nlp.vocab)


WORDS = st.sampled_from(
    ["a", "Mr.", ".", "!", '"', "(", "b", "don't", "\u2028", " ", "\n", "end.", "-", "é"]
)
texts = st.lists(st.lists(WORDS, min_size=1, max_size=8), max_size=6)
made = st.lists(
    st.one_of(
        texts.map(lambda lines: Passage([" ".join(line) for line in lines], is_tokenized=False)),
        texts.map(lambda lines: Passage(sum(lines, []), is_tokenized=True)),
    ),
    max_size=5,
)


def sentences_of(text: TokenizedPassages) -> list[list[list[str]]]:
    """Return passages of sentences of words."""
    words = [text.types[word] for word in text.words]
    sentences = [
        words[end - n : end] for end, n in zip(np.cumsum(text.lengths), text.lengths, strict=True)
    ]
    return [
        sentences[end - n : end]
        for end, n in zip(np.cumsum(text.passages), text.passages, strict=True)
    ]


def expected(passages: list[Passage], tokenized: bool) -> list[list[list[str]]]:
    actual = []
    for passage in passages:
        sentences: list[list[str]] = []
        docs = (
            [Doc(NLP.vocab, words=passage.parts)]
            if passage.is_tokenized
            else [NLP.make_doc(line) for line in passage.parts]
        )
        if tokenized and not passage.is_tokenized:
            sentences = [line.split() for line in passage.parts]
        else:
            for doc in docs:
                start = True
                for token in NLP.get_pipe("sentencizer")(doc):
                    if token.is_sent_start or start:
                        sentences.append([])
                    # A newline ends a sentence as well; whitespace is no word.
                    start = token.is_space and "\n" in token.text
                    sentences[-1] += [] if token.is_space else [token.text]
        if sentences := [sentence for sentence in sentences if sentence]:
            actual.append(sentences)
    return actual


@pytest.mark.parametrize("tokenized", [False, True])
@settings(max_examples=50)
@given(made)
def test_as_spacy_cuts(tokenized, passages):
    text = (TOKENIZED if tokenized else PLAIN)(passages)
    actual = sentences_of(text)
    assert actual == expected(passages, tokenized)
    # Types by first sight, each once.
    flat = [word for passage in actual for sentence in passage for word in sentence]
    assert text.types == list(dict.fromkeys(flat))


def test_digests_are_equal_for_equal_text():
    a, b, c = ([word] for word in ("a .", "b .", "c ."))
    passages = [Passage(text, is_tokenized=False) for text in (a + b, b, a + b, a, a + c)]
    digests = TOKENIZED(passages).digests.tolist()
    assert [digests.index(digest) for digest in digests] == [0, 1, 0, 3, 4]


def test_the_vocabulary_does_not_grow_with_the_text(monkeypatch):
    """Words that the vocabulary forgets are tokenized as before."""
    tokenizer = PassageTokenizer(Prepare())
    text = [Passage([f"word{number} runs, again!"], is_tokenized=False) for number in range(50)]
    whole = tokenizer(text)
    monkeypatch.setattr(tokenize_module, "_MAX_STRINGS", 0)
    known = len(tokenizer._nlp.vocab.strings)
    new = [Passage([f"other{number} runs, again!"], is_tokenized=False) for number in range(50)]
    actual = sentences_of(tokenizer(new))
    assert actual == [[[f"other{number}", "runs", ",", "again", "!"]] for number in range(50)]
    assert len(tokenizer._nlp.vocab.strings) == known
    assert sentences_of(tokenizer(text)) == sentences_of(whole)


def test_a_tokenizer_as_in_the_config_of_a_pipeline():
    # Pickled, as another process gets it.
    tokenizer = pickle.loads(pickle.dumps(PassageTokenizer(Prepare(tokenizer=WHITESPACE))))
    text = [Passage(["It's here."], is_tokenized=False)]
    assert sentences_of(tokenizer(text)) == [[["It's", "here."]]]
    with pytest.raises(ValueError, match=r"tokenizer = {'@tokenizers': 'none.v1'}"):
        PassageTokenizer(Prepare(tokenizer={"@tokenizers": "none.v1"}))
    with pytest.raises(ValueError, match=r"prepare\.lang = 'zz'.*Choose another"):
        PassageTokenizer(Prepare(lang="zz"))


class Dying(PassageTokenizer):
    """A tokenizer whose process is killed at one passage, or that has an error there."""

    def __reduce__(self):
        return Dying, (self.settings, self.spelling)

    def __call__(self, passages):
        if passages[0].parts == ["kill"]:
            os.kill(os.getpid(), signal.SIGKILL)
        if passages[0].parts == ["fail"]:
            raise ValueError("failed")
        return super().__call__(passages)


@pytest.mark.parametrize(
    "word, error, message",
    [("kill", ChildProcessError, "One of 2 processes died"), ("fail", ValueError, "failed")],
)
def test_a_process_that_fails_is_an_error(tmp_path, monkeypatch, word, error, message):
    """A `multiprocessing.Pool` would wait forever for a process that was killed."""
    monkeypatch.setattr(tokenize_module, "_CHARACTERS_PER_TASK", 1)
    (tmp_path / "a.txt").write_text(f"a\n\n{word}\n\nb\n")
    with pytest.raises(error, match=message):
        list(tokenize_files([tmp_path / "a.txt"], Dying(Prepare(tokenized=True, n_process=2))))
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("n_process", [1, 2])
def test_text_is_read_as_it_is_needed(tmp_path, monkeypatch, n_process):
    monkeypatch.setattr(tokenize_module, "_CHARACTERS_PER_TASK", 1)
    read, original = [], tokenize_module.passages

    def passages(*args):
        for passage in original(*args):
            read.append(passage)
            yield passage

    monkeypatch.setattr(tokenize_module, "passages", passages)
    (tmp_path / "a.txt").write_text("".join(f"w{number}\n\n" for number in range(1000)))
    chunks = tokenize_files(
        [tmp_path / "a.txt"], PassageTokenizer(Prepare(tokenized=True, n_process=n_process))
    )
    for number in range(5):
        assert next(chunks).types == [f"w{number}"]
        assert len(read) <= number + 2 * n_process + 2
    chunks.close()
    assert not multiprocessing.active_children()
