"""`annotate`: the CoNLL-U that it writes for texts and for CoNLL-U."""

import functools
import gzip
import shutil
import subprocess
import sys
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.attrs import DEP, HEAD
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_elmo.lab.annotate import annotate
from tests import packages
from tests.commands import elmo

WEB = next((packages.MODELS / "en_elmo_web").glob("*/en_elmo_web-*"))
SAMPLE = Path(__file__).parents[2] / "corpus" / "sample"
UDVALIDATE = shutil.which("udvalidate", path=Path(sys.executable).parent)


def validate(*files, level=2):
    """Run the validator of Universal Dependencies, if it is installed."""
    if UDVALIDATE is not None:
        command = [UDVALIDATE, "--lang", "ud", "--level", str(level), *files]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@spacy.registry.tokenizers("spacy_elmo_tests.du")
def make_tokenizer():
    """A tokenizer that splits "du", as one that knows multiword tokens."""

    class Tokenizer:
        def __init__(self, vocab):
            self.vocab = vocab

        def __call__(self, text):
            words, offsets, end = [], [], 0
            for part in text.split():
                start = text.index(part, end)
                end = start + len(part)
                found = ["de", "le"] if part == "du" else [part]
                words += found
                offsets += [(start, end)] * len(found)
            doc = Doc(self.vocab, words)
            doc._.source_text, doc._.source_offsets = text, np.array(offsets, dtype="int32")
            return doc

        to_bytes = to_disk = lambda self, *_, **__: b""
        from_bytes = from_disk = lambda self, *_, **__: self

    return lambda nlp: Tokenizer(nlp.vocab)


def set_tree(doc, heads, labels):
    """Set the head of each token, by its index, and its label."""
    relative = (np.asarray(heads) - np.arange(len(doc))).astype("uint64")
    numbers = np.array([doc.vocab.strings.add(label) for label in labels], dtype="uint64")
    doc.from_array([HEAD, DEP], np.stack([relative, numbers], axis=1))


@Language.component("test_layers")
def all_layers(doc):
    """Annotate every layer. In a sentence, the last token is the head of all."""
    for token in doc:
        token.lemma_, token.tag_ = f" {token.lower_}\n", token.shape_
        token.pos_ = "SPACE" if token.is_space else "X"
        token.set_morph("NumType=Card|Number=Sing,Plur|Aspect=Perf" if token.is_title else "")
    last = np.array([sentence.end - 1 for sentence in doc.sents for _ in sentence])
    set_tree(doc, last, ["ROOT" if head == i else "dep" for i, head in enumerate(last)])
    doc.ents = [Span(doc, 2, 6, label="PER"), Span(doc, 0, 1, label="LOC")] if len(doc) > 4 else []
    return doc


@pytest.fixture
def layers(folder):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("test_layers")
    nlp.to_disk(folder / "layers")


def written(file):
    """Return the text of a file with spaces for tabs."""
    return Path(file).read_bytes().decode().replace("\t", " ")


FEATS = "Aspect=Perf|Number=Plur,Sing|NumType=Card"


def test_text(folder, layers):
    Path("my letters.txt").write_bytes(
        "\ufeffRome \r\n anD the  Cafe\u0301. So.\n \n\n\nA".encode()
    )
    assert elmo("annotate", "layers", "my letters.txt", "out.conllu")[0] == 0
    assert (
        written("out.conllu")
        == f"""\
# newdoc id = my_letters
# newpar
# sent_id = my_letters-1
# text = Rome anD the Café.
1 Rome rome X Xxxx {FEATS} 5 dep _ ner=B-LOC
2 anD and X xxX _ 5 dep _ ner=B-PER
3 the the X xxx _ 5 dep _ ner=I-PER
4 Café café X Xxxx {FEATS} 5 dep _ ner=I-PER|SpaceAfter=No
5 . . X . _ 0 root _ _

# sent_id = my_letters-2
# text = So.
1 So so X Xx {FEATS} 2 dep _ SpaceAfter=No
2 . . X . _ 0 root _ _

# newpar
# sent_id = my_letters-3
# text = A
1 A a X X {FEATS} 0 root _ _

"""
    )
    validate("out.conllu")


def test_what_the_pipeline_lacks_is_empty(folder):
    spacy.blank("en").to_disk("blank")
    Path("a.txt").write_text("It rains.Yes (so) !\n")
    assert elmo("annotate", "blank", "a.txt", "out.conllu")[0] == 0
    assert (
        written("out.conllu")
        == """\
# newdoc id = a
# newpar
# sent_id = a-1
# text = It rains.
1 It _ _ _ _ _ _ _ _
2 rains _ _ _ _ _ _ _ SpaceAfter=No
3 . _ _ _ _ _ _ _ SpaceAfter=No

# sent_id = a-2
# text = Yes (so) !
1 Yes _ _ _ _ _ _ _ _
2 ( _ _ _ _ _ _ _ SpaceAfter=No
3 so _ _ _ _ _ _ _ SpaceAfter=No
4 ) _ _ _ _ _ _ _ _
5 ! _ _ _ _ _ _ _ _

"""
    )
    validate("out.conllu", level=1)


def test_multiword_tokens_of_a_tokenizer(folder):
    config = {"nlp": {"tokenizer": {"@tokenizers": "spacy_elmo_tests.du"}}}
    spacy.blank("xx", config=config).to_disk("split")
    Path("a.txt").write_text("vient du\nnord du")
    assert elmo("annotate", "split", "a.txt", "out.conllu")[0] == 0
    rows = [row.split() for row in written("out.conllu").splitlines()[4:-1]]
    words = ["vient", "du", "de", "le", "nord", "du", "de", "le"]
    assert written("out.conllu").splitlines()[3] == "# text = vient du nord du"
    assert [row[:2] for row in rows] == [
        list(pair) for pair in zip(["1", "2-3", "2", "3", "4", "5-6", "5", "6"], words, strict=True)
    ]
    assert {row[9] for row in rows} == {"_"}


def test_words_that_a_component_merged(folder):
    config = {"nlp": {"tokenizer": {"@tokenizers": "spacy_elmo_tests.du"}}}
    nlp = spacy.blank("xx", config=config)
    patterns = [{"label": "LOC", "pattern": "New York"}]
    nlp.add_pipe("entity_ruler").add_patterns(patterns)
    nlp.add_pipe("merge_entities")
    nlp.to_disk("merged")
    Path("a.txt").write_text("New York is large")
    assert elmo("annotate", "merged", "a.txt", "out.conllu")[0] == 0
    names = [
        "1 New York _ _ _ _ _ _ _ ner=B-LOC",
        "2 is _ _ _ _ _ _ _ _",
        "3 large _ _ _ _ _ _ _ _",
    ]
    assert written("out.conllu").splitlines()[4:-1] == names


TREEBANK = """\
# newdoc id = d
#a comment
# sent_id = one
# text = something else
# text_en = At the house.
1-2\tAm\t_\t_\t_\tTypo=Yes\t_\t_\t_\tSpaceAfter=No
1\tan\tgold\tADP\tgold\tA=B\t3\tcase\t3:case\tGloss=on
2\tdem\tgold\tDET\tgold\tA=B\t3\tdet\t_\t_
3\t1 000\tgold\tNOUN\tgold\tA=B\t0\troot\t_\tSpaceAfter=No
3.1\tgeht\t_\t_\t_\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\tSpaceAfter=No

# a comment without a sentence

1-2\tZum\t_\t_\t_\t_\t_\t_\t_\t_
1\tzu\t_\t_\t_\t_\t_\t_\t_\t_
2\tdem\t_\t_\t_\t_\t_\t_\t_\t_
"""


def test_conllu_keeps_words_sentences_and_comments(folder, layers):
    with gzip.open("tb.conllu.gz", "wt") as file:
        file.write(TREEBANK)
    assert elmo("annotate", "layers", "tb.conllu.gz", "out.conllu")[0] == 0
    assert (
        written("out.conllu")
        == """\
# newdoc id = d
#a comment
# sent_id = one
# text = Am1 000.
# text_en = At the house.
1-2 Am _ _ _ _ _ _ _ SpaceAfter=No
1 an an X xx _ 4 dep _ _
2 dem dem X xxx _ 4 dep _ _
3 1 000 1 000 X d ddd _ 4 dep _ SpaceAfter=No
4 . . X . _ 0 root _ SpaceAfter=No

# a comment without a sentence
# sent_id = tb-2
# text = Zum
1-2 Zum _ _ _ _ _ _ _ _
1 zu zu X xx _ 2 dep _ _
2 dem dem X xxx _ 0 root _ _

"""
    )


ROW = "\t{}" + "\t_" * 8 + "\n"


@pytest.mark.parametrize(
    "rows, number, expected",
    [
        ("1\tone\n", 2, "ID 1"),
        ("1" + ROW.format(" "), 2, "ID 1"),
        ("1" + ROW.format("one") + "1" + ROW.format("new"), 3, "ID 2"),
        ("1" + ROW.format("one") + "3" + ROW.format("new"), 3, "ID 2"),
        ("1-2" + ROW.format("one") + "1" + ROW.format("o"), 4, "ID 2"),
        ("1-2" + ROW.format("one") + "1-3" + ROW.format("o"), 3, "ID 1"),
        ("1-1" + ROW.format("one"), 2, "ID 1"),
        ("one two\n", 2, "ID 1"),
    ],
)
def test_malformed_conllu(folder, rows, number, expected):
    Path("bad.conllu").write_text(f"# sent_id = s-7\n{rows}")
    code, output = elmo("annotate", "no-elmo", "bad.conllu", "out.conllu")
    place = f"bad.conllu, line {number} (sent_id = s-7) is not CoNLL-U: expected the {expected},"
    assert code == 1 and place in output
    assert not Path("out.conllu").exists()


@pytest.mark.parametrize("command", [("texts/a.conllu", "texts/a.conllu"), ("texts", "texts")])
def test_texts_are_not_replaced(folder, command):
    Path("texts").mkdir()
    gold = "1" + ROW.format("One")
    Path("texts/a.conllu").write_text(gold)
    code, printed = elmo("annotate", "no-elmo", *command, "--force")
    assert code == 1 and "another output" in printed
    assert Path("texts/a.conllu").read_text() == gold


def test_a_folder_is_resumed(folder):
    texts = Path("texts")
    texts.mkdir()
    (texts / "a.txt").write_text("One.")
    (texts / "b.conllu").write_text("1" + ROW.format("Two"))
    (texts / "c.conllu").write_text("1\tThree\n")
    command = ("annotate", "no-elmo", "texts", "out")
    assert elmo(*command)[0] == 1
    assert sorted(path.name for path in Path("out").iterdir()) == ["a.conllu", "b.conllu"]
    Path("out/a.conllu").write_text("kept")
    (texts / "c.conllu").write_text("1" + ROW.format("Three"))
    assert "1 sentences in 1 new files" in elmo(*command)[1]
    assert [Path(f"out/{name}.conllu").read_text().count("\n") for name in "abc"] == [0, 4, 4]
    assert "--force" in elmo(*command)[1]
    assert "3 sentences in 3 new files" in elmo(*command, "--force")[1]
    assert "# text = One." in Path("out/a.conllu").read_text()


def test_sample_by_the_english_pipeline(folder):
    """udvalidate accepts text, and words with sentences, that a pipeline of every layer has annotated."""
    text = SAMPLE / "pretrain-en" / "train-00.txt"
    lines = text.read_text(encoding="utf8").splitlines(keepends=True)
    Path("a.txt").write_text("".join([*lines[:60], "\n", *ODD]), encoding="utf8")
    words = (SAMPLE / "pos" / "sample-dev.conllu").read_text(encoding="utf8")
    Path("b.conllu").write_text("\n\n".join(words.split("\n\n")[:30]) + "\n\n", encoding="utf8")
    for file in ("a.txt", "b.conllu"):
        assert elmo("annotate", WEB, file, f"out-{file}.conllu")[0] == 0
        validate(f"out-{file}.conllu")
    assert columns("out-b.conllu.conllu", 1) == columns("b.conllu", 1)


def columns(file, number):
    """Return a column of the lines of a CoNLL-U file, an empty one after each sentence."""
    rows = Path(file).read_text(encoding="utf8").split("\n")
    return [(row.split("\t") + [""] * 9)[number] for row in rows if not row.startswith("#")]


class Parsed:
    """A CoNLL-U file, read as its definition says, with checks."""

    def __init__(self, text):
        assert text.endswith("\n\n") or not text
        self.texts, self.words, self.tokens = [], [], []
        for block in text.split("\n\n")[:-1]:
            comments = [row for row in block.split("\n") if row.startswith("#")]
            rows = [row.split("\t") for row in block.split("\n") if not row.startswith("#")]
            (text,) = [row.removeprefix("# text = ") for row in comments if "# text = " in row]
            words = [row for row in rows if "-" not in row[0]]
            assert [row[0] for row in words] == [str(n) for n in range(1, len(words) + 1)]
            assert all(len(row) == 10 and all(row) for row in rows)
            tokens, covered = [], 0
            for row in rows:
                first, _, last = row[0].partition("-")
                if int(first) > covered:
                    tokens.append((row[1], "SpaceAfter=No" not in row[9].split("|")))
                    covered = int(last or first)
            assert "".join(word + " " * space for word, space in tokens).rstrip() == text
            self.check_tree([row[6] for row in words], [row[7] for row in words])
            self.texts.append(text)
            self.tokens += tokens
            self.words.append([row[1] for row in words])

    @staticmethod
    def check_tree(heads, labels):
        if set(heads) == {"_"}:
            return
        assert [label for head, label in zip(heads, labels, strict=True) if head == "0"] == ["root"]
        for number in range(1, len(heads) + 1):
            for _ in heads:
                number = number and int(heads[number - 1])
            assert number == 0


@Language.component("test_any_tree")
def any_tree(doc):
    """Add random trees, in which whitespace can have children. They depend on the text."""
    random = np.random.default_rng(len(doc.text))
    order = random.permutation(len(doc))
    heads, labels = np.arange(len(doc)), ["ROOT"] * len(doc)
    for place, token in enumerate(order):
        if place and random.random() < 0.9:
            heads[token], labels[token] = order[random.integers(place)], "obj"
    set_tree(doc, heads, labels)
    return doc


ODD = ["The", "dog", ".", "!", " ", "\n", "\n\n", "\r\n", "\t", "\u2028", "\xa0", "\x1c", "e\u0301"]
ODD += ["\u0301", "\u200b", "#", "_", "|", "=", "isn't", "鳥", "。", "😀", "\ufeff", "\r", "\x85"]


@pytest.fixture(scope="module")
def anywhere(tmp_path_factory):
    return tmp_path_factory.mktemp("any")


@functools.cache
def pipeline(component):
    nlp = spacy.blank("en")
    nlp.add_pipe(component)
    return nlp


@given(text=st.lists(st.sampled_from(ODD), max_size=60).map("".join))
@pytest.mark.parametrize("component", ["sentencizer", "test_any_tree"])
def test_any_text_is_kept_but_for_whitespace(anywhere, component, text):
    source, out = anywhere / "a.txt", anywhere / "a.conllu"
    source.write_bytes(text.encode())
    annotate(pipeline(component), source, out)
    parsed = Parsed(out.read_bytes().decode())
    expected = normalize("NFC", text.replace("\ufeff", ""))
    assert "".join("".join(parsed.texts).split()) == "".join(expected.split())
    if component == "sentencizer":
        spaced = "".join(word + " " * space for word, space in parsed.tokens)
        assert spaced.split() == expected.split()


# Not an accent first, which would belong to the word before.
WORDS = st.text("aé\u0301鳥-#_|=.", min_size=1, max_size=4).filter(lambda word: word[0] != "\u0301")
TOKENS = st.tuples(WORDS, st.lists(WORDS, max_size=3), st.booleans())


@given(sentences=st.lists(st.lists(TOKENS, min_size=1, max_size=8), min_size=1, max_size=4))
def test_any_words_are_kept(anywhere, sentences):
    source, out = anywhere / "b.conllu", anywhere / "c.conllu"
    rows = []
    for tokens in sentences:
        number = 1
        for surface, words, space in tokens:
            misc = "_" if space else "SpaceAfter=No"
            words = words if len(words) > 1 else []
            numbers = f"{number}-{number + len(words) - 1}" if words else str(number)
            rows.append(f"{numbers}\t{surface}" + "\t_" * 7 + f"\t{misc}")
            for place, word in enumerate(words):
                rows.append(f"{number + place}\t{word}" + "\t_" * 8)
            number += len(words) or 1
        rows.append("")
    source.write_text("\n".join(rows) + "\n", encoding="utf8")
    assert annotate(pipeline("test_any_tree"), source, out) == len(sentences)
    given = normalize("NFC", "\n".join(rows)).split("\n")
    kept = [row for row in out.read_text(encoding="utf8").split("\n") if not row.startswith("#")]
    cells = [[(row.split("\t") + [""] * 9)[n] for n in (0, 1, 9)] for row in (*given, "")]
    assert [[(row.split("\t") + [""] * 9)[n] for n in (0, 1, 9)] for row in kept] == cells
    Parsed(out.read_text(encoding="utf8"))


LENGTHS = []


@Language.component("test_lengths")
def record_length(doc):
    """Record the number of characters of a Doc."""
    LENGTHS.append(len(doc.text))
    return doc


@pytest.mark.parametrize("line", ["It rains, so he says. " * 2000, "rain " * 6000, "鳥" * 30_000])
def test_a_long_line_is_many_docs(anywhere, line):
    nlp = spacy.blank("xx")
    nlp.add_pipe("test_lengths")
    LENGTHS.clear()
    (anywhere / "a.txt").write_text(f"{line}\n\nEnd", encoding="utf8")
    annotate(nlp, anywhere / "a.txt", anywhere / "a.conllu")
    parsed = Parsed((anywhere / "a.conllu").read_text(encoding="utf8"))
    assert 3 < len(LENGTHS) < 15 and max(LENGTHS) <= 10_000
    assert "".join(word + " " * space for word, space in parsed.tokens) == f"{line.rstrip()} End "
    if "says" in line:
        assert parsed.texts == ["It rains, so he says."] * 2000 + ["End"]
