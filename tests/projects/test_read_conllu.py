"""projects/treebank/read_conllu.py: what is wrong with a file is found, and nothing else is changed."""

import lzma
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

SAMPLE = Path(__file__).parents[2] / "corpus/sample/pos/sample-train.conllu"
LINES = """\
# newdoc id = d
# sent_id = one
# text = Wo ist's?
1	Wo	wo	ADV	W	_	0	root	_	_
2-3	ist's	_	_	_	_	_	_	_	SpaceAfter=No
2	ist	sein	AUX	V	Mood=Ind|Number=Sing	1	cop	_	_
3	es	es	PRON	P	Case=Nom	1	nsubj	_	_
4	?	?	PUNCT	$	_	1	punct	_	_

# sent_id = two
# text = Da!
1	Da	da	ADV	W	_	0	root	_	SpaceAfter=No
2	!	!	PUNCT	$	_	1	punct	_	_
""".split("\n")


@pytest.fixture
def read(tmp_path):
    from read_conllu import read_conllu

    def read_text(text, name="a.conllu"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_conllu(tmp_path / name)

    return read_text


def changed(number, line):
    """The file with another line; None: without it."""
    return "\n".join([*LINES[: number - 1], *([] if line is None else [line]), *LINES[number:]])


WRONG = {
    "nine columns": (7, "3	es	es	PRON	P	Case=Nom	1	nsubj	_"),
    "eleven columns": (7, "3	es	es	PRON	P	Case=Nom	1	nsubj	_	_	_"),
    "spaces instead of tabs": (7, "3 es es PRON P Case=Nom 1 nsubj _ _"),
    "an empty column": (7, "3	es		PRON	P	Case=Nom	1	nsubj	_	_"),
    "features": (7, "3	es	es	PRON	P	Sing	1	nsubj	_	_"),
    "part of speech": (7, "3	es	es	N	P	_	1	nsubj	_	_"),
    "a head outside": (7, "3	es	es	PRON	P	_	99	nsubj	_	_"),
    "a head that is no number": (7, "3	es	es	PRON	P	_	-1	nsubj	_	_"),
    "its own head": (7, "3	es	es	PRON	P	_	3	nsubj	_	_"),
    "two roots": (7, "3	es	es	PRON	P	_	0	root	_	_"),
    "a skipped number": (7, "4	es	es	PRON	P	_	1	nsubj	_	_"),
    "a range of one word": (7, "3-3	es	_	_	_	_	_	_	_	_"),
    "a range of other words": (5, "3-4	ist's	_	_	_	_	_	_	_	_"),
    "Latin-1": (8, "4	?	?	PUNCT	$	_	1	punct	_	\udce4"),
}


@pytest.mark.parametrize("number, line", WRONG.values(), ids=list(WRONG))
def test_wrong_lines_are_named(read, tmp_path, number, line):
    """Each with file, line and sentence; the other sentence is read."""
    sentences, _, problems = read(changed(number, line).encode("utf-8", "surrogateescape"))
    (problem,) = problems
    assert problem.startswith(f"{tmp_path / 'a.conllu'}, line {number}, sentence one: ")
    assert [word[1] for sentence in sentences for word in sentence.words] == ["Da", "!"]


def test_missing_empty_line_and_a_cycle(read):
    (problem,) = read(changed(9, None))[2]
    assert ", line 11, sentence two: " in problem
    text = "\n".join(LINES).replace("\t0\troot\t_\t_", "\t4\troot\t_\t_")
    (problem,) = read(text)[2]
    assert ", line 4, sentence one: " in problem and "1, 4" in problem


def test_each_sentence_has_one_problem(read):
    text = "\n".join(LINES).replace("\tPUNCT\t", "\tP\t").replace("\tADV\t", "\tA\t")
    assert [problem.split(":")[0].split(", ")[1:] for problem in read(text)[2]] == [
        ["line 4", "sentence one"],
        ["line 12", "sentence two"],
    ]


HARMLESS = {
    "comments between words": changed(7, f"# a comment\n{LINES[6]}"),
    "blocks without words": "# alone\n\n" + "\n".join(LINES),
    "spaces in empty lines": changed(9, " \t"),
    "texts (# text) that differ from their words": changed(3, "# text = Wo ist?"),
}


@pytest.mark.parametrize("what", HARMLESS)
def test_harmless_lines_are_dropped_and_counted(read, what):
    clean, nothing, _ = read("\n".join(LINES))
    assert not nothing
    sentences, dropped, problems = read(HARMLESS[what])
    assert dropped == {what: 1} and not problems
    assert [sentence.rows for sentence in sentences] == [sentence.rows for sentence in clean]
    assert [sentence.text for sentence in sentences] == ["Wo ist's?", "Da!"]


def test_other_forms_of_a_file(read):
    """A byte order mark, Windows line ends, no line end at the end, xz, letters in NFD, an empty node."""
    clean, _, _ = read("\n".join(LINES).replace("Da", "Dä"))
    node = "4.1\tja\t_\t_\t_\t_\t_\t_\t1:advmod\t_"
    text = "\n".join([*LINES[:8], node, *LINES[8:]]).replace("Da", "Da\u0308").rstrip("\n")
    forms = {"b.conllu": b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()}
    forms["c.conllu.xz"] = lzma.compress(text.encode())
    for name, content in forms.items():
        assert read(content, name) == (clean, {}, [])


def test_words_texts_and_spaces(read):
    from read_conllu import FEATS, HEAD, LEMMA, lacks

    one, two = read("\n".join(LINES))[0]
    assert [word[1] for word in one.words] == ["Wo", "ist", "es", "?"]
    # "ist's" is not "istes".
    assert one.spaces == [True, True, False, True] and two.spaces == [False, True]
    parts = "\n".join(LINES).replace("\tes\tes", "\t's\tes")
    assert read(parts)[0][0].spaces == [True, False, False, True]
    assert one.starts_paragraph and not two.starts_paragraph and one.is_tree
    assert one.tokens_text() == one.text and two.has_text
    for change in ("# text = Da!\n", "SpaceAfter=No"):
        text = "\n".join(LINES).replace(change, "" if change[0] == "#" else "_")
        assert read(text)[0][1].has_text
    bare = (
        "\n".join(LINES)
        .replace("# text = Da!\n", "")
        .replace("\troot\t_\tSpaceAfter=No", "\t_\t_\t_")
    )
    two = read(bare)[0][1]
    assert not two.has_text and two.text == "Da !" and not two.is_tree
    assert lacks(two.words[0], HEAD) and not lacks(two.words[1], HEAD)
    assert lacks(two.words[0], FEATS) and not lacks(two.words[0], LEMMA)
    # The underscore has a lemma.
    (sign,) = read("1\t_\t_\tSYM\t_\t_\t0\troot\t_\t_\n")[0]
    assert not lacks(sign.words[0], LEMMA)


def is_tree(heads):
    """Whether all words are below one root, by a search from the root."""
    roots = [word for word, head in enumerate(heads, 1) if head == 0]
    reached, queue = set(roots), deque(roots)
    while queue:
        above = queue.popleft()
        below = {word for word, head in enumerate(heads, 1) if head == above} - reached
        reached |= below
        queue.extend(below)
    return len(roots) == 1 and len(reached) == len(heads)


@given(heads=st.lists(st.one_of(st.none(), st.integers(0, 6)), min_size=1, max_size=6))
def test_trees(tmp_path_factory, heads):
    """A sentence is refused if and only if no tree has its heads; words without a head could have any."""
    from read_conllu import read_conllu

    path = tmp_path_factory.getbasetemp() / "trees.conllu"
    rows = [
        f"{i}\tw\tw\tX\t_\t_\t{'_' if head is None else head}\t{'_' if head is None else 'dep'}\t_\t_\n"
        for i, head in enumerate(heads, 1)
    ]
    path.write_text("".join(rows))
    sentences, _, problems = read_conllu(path)
    missing = [i for i, head in enumerate(heads) if head is None]
    # The first word without a head is the root, unless there is one, and the others are below it.
    filled = list(heads)
    for i in missing:
        filled[i] = heads.index(0) + 1 if 0 in heads else 0 if i == missing[0] else missing[0] + 1
    assert (not problems) == is_tree(filled)
    assert [sentence.is_tree for sentence in sentences] == [not missing] * (not problems)


def test_sample_is_read_as_it_is(tmp_path):
    from read_conllu import read_conllu

    sentences, dropped, problems = read_conllu(SAMPLE)
    assert "".join(map(str, sentences)).rstrip() == SAMPLE.read_text("utf8").rstrip()
    assert (len(sentences), dict(dropped), problems) == (200, {}, [])
