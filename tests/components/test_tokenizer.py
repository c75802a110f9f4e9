"""The tokenizer of a treebank: the words, the sentences and the characters of the text that they stand for."""

import copy
import multiprocessing
import pickle
import random
import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from confection import Config
from hypothesis import given
from hypothesis import strategies as st
from spacy.cli.package import get_meta
from spacy.tokens import Doc, DocBin
from spacy.training import Example

CONFIG = {"nlp": {"tokenizer": {"@tokenizers": "spacy-elmo.UDPipeTokenizer.v1"}}}
SCRIPT = Path(__file__).parents[2] / "projects/treebank/train_tokenizer.py"
MULTIWORD = {"al": ["a", "el"], "del": ["de", "el"], "dámelo": ["dá", "me", "lo"]}


def treebank(seed, size=300):
    """Return sentences of a small language in CoNLL-U. Some of its tokens are two or three words."""
    draw = random.Random(seed)
    blocks = []
    for _ in range(size):
        tokens = [
            draw.choice(["Ana", "Eva", "El gato"]),
            draw.choice(["ve", "mira"]),
            draw.choice(["al", "del", "dámelo", "la", "un"]),
            draw.choice(["gato", "casa", "perro"]),
        ]
        rows = []
        for token in [*" ".join(tokens).split(), "."]:
            words = MULTIWORD.get(token, [token])
            number = len([row for row in rows if "-" not in row[0]]) + 1
            misc = "SpaceAfter=No" if token in ("gato", "casa", "perro") and len(rows) > 2 else "_"
            if len(words) > 1:
                rows.append([f"{number}-{number + len(words) - 1}", token, *"________"])
            for index, word in enumerate(words, number):
                head = [str(int(index > 1)), "dep" if index > 1 else "root"]
                rows.append([str(index), word, *"____", *head, "_", misc])
        text = " ".join(tokens) + "."
        blocks.append("\n".join([f"# text = {text}", *map("\t".join, rows)]) + "\n\n")
    return "".join(blocks)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The file of a model that knows the small language."""
    train = runpy.run_path(str(SCRIPT))["train"]
    path = tmp_path_factory.mktemp("model") / "tiny.udpipe"
    path.write_bytes(train(treebank(0), treebank(1, 30), "epochs=2;segment_size=10;dimension=16"))
    return path


@pytest.fixture(scope="module")
def nlp(path):
    nlp = spacy.blank("xx", config=CONFIG)
    nlp.config["initialize"]["tokenizer"] = {"path": str(path)}
    nlp.initialize()
    return nlp


@pytest.fixture
def words_only(path):
    """A pipeline whose tokenizer leaves the sentences to a component."""
    tokenizer = {**CONFIG["nlp"]["tokenizer"], "sentences": False}
    nlp = spacy.blank("xx", config={"nlp": {"tokenizer": tokenizer}})
    nlp.tokenizer.initialize(path=path)
    return nlp


def found(doc):
    """Return the sentences of a Doc: their words, each with the characters of the text that it stands for."""
    source = doc._.source_text
    pairs = zip(doc, doc._.source_offsets.tolist(), strict=True)
    words = [(token.text, source[start:end]) for token, (start, end) in pairs]
    return [words[sentence.start : sentence.end] for sentence in doc.sents]


def test_words_and_sentences_are_those_of_the_treebank(nlp):
    doc = nlp("Ana ve al gato. Eva mira dámelo casa.")
    assert found(doc) == [
        [("Ana", "Ana"), ("ve", "ve"), ("a", "al"), ("el", "al"), ("gato", "gato"), (".", ".")],
        [
            *[("Eva", "Eva"), ("mira", "mira")],
            *[("dá", "dámelo"), ("me", "dámelo"), ("lo", "dámelo")],
            *[("casa", "casa"), (".", ".")],
        ],
    ]
    # The words of "al" are not its parts, so they stand apart.
    assert doc.text == "Ana ve a el gato. Eva mira dámelo casa."
    assert doc._.source_text == "Ana ve al gato. Eva mira dámelo casa."
    assert doc._.source_offsets.dtype == "int32"
    assert [token.is_sent_start for token in doc] == [True, *[False] * 5, True, *[False] * 6]


@pytest.mark.parametrize(
    ("text", "words", "shown"),
    [
        ("Ana ve\nla  casa.", [["Ana", "ve", "la", "casa", "."]], "Ana ve la casa."),
        ("\t Ana\u00a0ve la\fcasa.\n", [["Ana", "ve", "la", "casa", "."]], "Ana ve la casa. "),
        ("Ana ve\n\nla casa", [["Ana", "ve"], ["la", "casa"]], "Ana ve la casa"),
        ("Ana ve\r\n \r\nla casa", [["Ana", "ve"], ["la", "casa"]], "Ana ve la casa"),
        ("", [], ""),
        (" \n", [], ""),
        ("a" * 100_000, [["a" * 100_000]], "a" * 100_000),
    ],
)
def test_whitespace_is_never_a_token(nlp, text, words, shown):
    doc = nlp(text)
    assert [[token.text for token in sentence] for sentence in doc.sents] == words
    assert (doc.text, doc._.source_text) == (shown, text)
    assert doc._.source_offsets.shape == (len(doc), 2)


# Letters of the small language, and what a file may contain besides.
LETTERS = st.sampled_from(
    [*"Anavelgto. dám\n\r\t", "al", "\n\n", "\0", "\x85", "\u2028", "😀", "́", "￿"]
)


@given(st.one_of(st.lists(LETTERS).map("".join), st.text()))
def test_each_character_but_whitespace_belongs_to_one_token(nlp, text):
    doc = nlp(text)
    tokens = sorted(set(map(tuple, doc._.source_offsets.tolist())))
    for (_, end), (start, _) in zip([(0, 0), *tokens], [*tokens, (len(text), 0)], strict=True):
        assert end <= start and not text[end:start].strip()
    assert all(len(words) > 0 for words in doc.sents)
    parts = [text[start:end] for start, end in tokens]
    assert len(doc) >= len(parts) == sum(len(part.split()) > 0 for part in parts)
    if len(doc) == len(parts):
        assert doc.text.strip() == " ".join(text.split())


def test_surrogates_are_refused_as_by_spacy(nlp):
    for pipeline in (nlp, spacy.blank("xx")):
        with pytest.raises(UnicodeEncodeError):
            pipeline("a\ud800b")


TEXTS = ["Ana ve al gato.", "", "Eva mira\nla casa. El gato ve un perro.", "dámelo"] * 5


def test_copies_tokenize_the_same(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    copies = [
        spacy.load(tmp_path),
        spacy.blank("xx", config=CONFIG).from_bytes(nlp.to_bytes()),
        pickle.loads(pickle.dumps(nlp)),
        copy.deepcopy(nlp),
    ]
    for other in copies:
        assert other.tokenizer.vocab is other.vocab
        assert [found(doc) for doc in other.pipe(TEXTS)] == [found(doc) for doc in map(nlp, TEXTS)]


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_processes(nlp, method, monkeypatch):
    monkeypatch.setattr(spacy.language, "mp", multiprocessing.get_context(method))
    docs = list(nlp.pipe(TEXTS, n_process=2, batch_size=3))
    assert list(map(found, docs)) == [found(nlp(text)) for text in TEXTS]


def test_threads(nlp):
    texts = [text * 20 for text in TEXTS]
    expected = [found(nlp(text)) for text in texts]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda text: found(nlp(text)), texts)) == expected


def test_offsets_are_kept_in_a_file_of_docs(nlp, tmp_path):
    docs = [nlp(text) for text in TEXTS]
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "docs.spacy")
    loaded = DocBin().from_disk(tmp_path / "docs.spacy").get_docs(nlp.vocab)
    assert list(map(found, loaded)) == list(map(found, docs))


def test_a_pipeline_that_is_trained_again_keeps_its_model(nlp):
    before = nlp.tokenizer.to_bytes()
    again = copy.deepcopy(nlp)
    again.config["initialize"]["tokenizer"] = {}
    again.initialize()
    assert again.tokenizer.to_bytes() == before


def test_sentences_from_another_component(nlp, words_only):
    """Only an empty line starts a sentence. The sentencizer sets the others, and none that are known."""
    text = "Ana ve al gato. Eva\nmira\n\nun perro. \n \n\tAna ve."
    for other in (words_only, pickle.loads(pickle.dumps(words_only))):
        doc, expected = other(text), nlp(text)
        assert [token.text for token in doc] == [token.text for token in expected]
        assert np.array_equal(doc._.source_offsets, expected._.source_offsets)
        assert [token.text for token in doc if token.is_sent_start] == ["Ana", "un", "Ana"]
        unknown = [token.text for token in doc if token.is_sent_start is None]
        assert unknown == ["ve", "a", "gato", ".", "Eva", "mira", "perro", ".", "ve", "."]
    words_only.add_pipe("sentencizer")
    ends = [sentence[-1].text for sentence in words_only(text).sents]
    assert ends == [".", "mira", ".", "."]


def test_the_parser_keeps_to_the_sentences(nlp):
    """It has learned that the words are one sentence, and that they are sentences of two words."""
    nlp = copy.deepcopy(nlp)
    nlp.add_pipe("parser", config={"min_action_freq": 1})
    words = "Ana ve la casa . Eva mira un perro .".split()
    parses = [
        ([0] * 10, ["ROOT", *["dep"] * 9]),
        ([index - index % 2 for index in range(10)], ["ROOT", "dep"] * 5),
    ]
    examples = [
        Example(Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words, heads=heads, deps=deps))
        for heads, deps in parses
    ]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(5):
        nlp.update(examples, sgd=optimizer)
    doc = nlp("Ana ve la casa. Eva mira un perro.")
    assert doc.has_annotation("DEP")
    assert [sentence.text for sentence in doc.sents] == ["Ana ve la casa.", "Eva mira un perro."]
    given = Doc(nlp.vocab, words=words, sent_starts=[True, False] * 5)
    assert [len(sentence) for sentence in nlp(given).sents] == [2] * 5


def test_a_package_requires_the_library(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    meta = get_meta(tmp_path, srsly.read_json(tmp_path / "meta.json"))
    names = [spacy.util.split_requirement(entry)[0] for entry in meta["requirements"]]
    assert sorted(names) == ["spacy-elmo", "ufal.udpipe"]


def test_what_is_missing_is_named(path, nlp, monkeypatch):
    empty = spacy.blank("xx", config=CONFIG)
    assert empty.to_bytes()
    with pytest.raises(ValueError, match=r"path = FILE in \[initialize.tokenizer\]"):
        empty("Ana")
    with pytest.raises(ValueError, match="3 bytes are not a model"):
        empty.tokenizer.from_bytes(b"abc")
    monkeypatch.setitem(sys.modules, "ufal.udpipe", None)
    with pytest.raises(ImportError, match='pip install "ufal.udpipe'):
        empty.tokenizer.from_disk(path)


def script(folder, train, dev):
    """Run the script as a user does, and return the model's path and what was printed."""
    (folder / "train.conllu").write_text(train, "utf8")
    (folder / "dev.conllu").write_text(dev, "utf8")
    command = [sys.executable, str(SCRIPT), "train.conllu", "dev.conllu", "out.udpipe"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return folder / "out.udpipe", done.stdout + done.stderr


def test_a_pipeline_with_another_tokenizer_needs_no_model(tmp_path):
    """The model of another treebank, which the script finds, is removed."""
    (tmp_path / "out.udpipe").touch()
    (tmp_path / "training").mkdir()
    Config({"nlp": {"lang": "en"}}).to_disk(tmp_path / "training/pipeline.cfg")
    out, printed = script(tmp_path, treebank(0, 5), treebank(1, 5))
    assert not out.exists() and "nothing to train" in printed


def test_no_sentence_starts_in_a_multiword_token(words_only):
    """A component that starts a sentence at each word where it may."""
    doc = words_only("Ana ve al gato. Eva mira dámelo.")
    for token in doc:
        if token.is_sent_start is None:
            token.is_sent_start = True
    offsets = doc._.source_offsets.tolist()
    starts = [token.is_sent_start for token in doc]
    inside = [i > 0 and offsets[i] == offsets[i - 1] for i in range(len(doc))]
    assert sum(inside) == 3 and starts == [not each for each in inside]


@pytest.mark.slow
def test_a_tokenizer_is_trained_by_the_script(tmp_path):
    out, printed = script(tmp_path, treebank(0), treebank(1, 30))
    nlp = spacy.blank("xx", config=CONFIG)
    nlp.tokenizer.from_disk(out)
    text = "Ana ve al gato. Eva mira la casa."
    assert [len(sentence) for sentence in nlp(text).sents] == [6, 5]
    assert "Epoch 1" in printed
