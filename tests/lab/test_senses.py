"""Text annotated with senses, and WordNet's list of them."""

import json

import pytest

from spacy_elmo.lab.documents import entry_of, read_first_senses, read_senses

BANK = "bank%1:17:01::"
TOOK = "take_place%2:30:00::"


def write(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_words_and_places(tmp_path):
    file = write(
        tmp_path / "a.jsonl",
        {"tokens": ["The", "bank", "took place", "."], "sense": [None, BANK, TOOK, None]},
        {"tokens": ["No", "sense"], "sense": [None, None], "lemma": ["no", "sense"]},
    )
    first, second = read_senses([file])
    assert first.words == ["The", "bank", "took", "place", "."]
    assert first.instances == [(1, 2, (BANK,)), (2, 4, (TOOK,))]
    assert second == (["No", "sense"], [])


def test_all_of_several_senses(tmp_path):
    other = "bank%1:14:00::"
    file = write(
        tmp_path / "a.jsonl",
        {"tokens": ["to", "bank"], "sense": [None, BANK], "gold_all": {"1": [BANK, other]}},
        {"tokens": ["bank"], "sense": [BANK], "gold_all": {}},
    )
    first, second = read_senses([file])
    assert first.instances[0].senses == (BANK, other)
    assert second.instances[0].senses == (BANK,)


@pytest.mark.parametrize(
    "record, problem",
    [
        ([], "expected"),
        ({"tokens": ["a"]}, "expected"),
        ({"tokens": ["a"], "sense": []}, "expected"),
        ({"tokens": [" "], "sense": [None]}, "expected"),
        ({"tokens": ["a"], "sense": [None], "gold_all": []}, "expected"),
        (
            {"tokens": ["a"], "sense": [BANK], "gold_all": {"0": []}},
            "gold_all of token 0 .* \\[\\]",
        ),
        ({"tokens": ["a"], "sense": [BANK], "gold_all": {"0": 5}}, "gold_all of token 0 .* 5"),
        ({"tokens": ["bank"], "sense": ["bank.n.01"]}, "'bank.n.01' is not a WordNet sense key"),
        ({"tokens": ["bank"], "sense": [3]}, "3 is not a WordNet sense key"),
    ],
)
def test_what_is_no_record(tmp_path, record, problem):
    good = {"tokens": ["a"], "sense": [None]}
    file = write(tmp_path / "a.jsonl", good, record)
    with pytest.raises(ValueError, match=f"a.jsonl, line 2: .*{problem}"):
        list(read_senses([file]))


@pytest.mark.parametrize(
    "key, entry",
    [
        (BANK, "bank%1"),
        (TOOK, "take_place%2"),
        ("recent%5:00:00:past:00", "recent%3"),
        ("recent%3:00:00::", "recent%3"),
        ("recently%4:02:00::", "recently%4"),
    ],
)
def test_entry(key, entry):
    assert entry_of(key) == entry


def test_first_senses(tmp_path):
    file = tmp_path / "index.sense"
    file.write_text(
        "bank%1:14:00:: 08420278 2 20\n"
        "bank%1:17:01:: 09213565 1 25\n"
        "bank%2:40:00:: 02310855 1 2\n"
        "recent%3:00:00:: 01730444 2 3\n"
        "recent%5:00:00:past:00 01642484 1 10\n"
    )
    assert read_first_senses(file) == {
        "bank%1": BANK,
        "bank%2": "bank%2:40:00::",
        "recent%3": "recent%5:00:00:past:00",
    }


def test_no_list_of_senses(tmp_path):
    file = tmp_path / "index.noun"
    file.write_text("bank n 10 7 @ ~ #p\n")
    with pytest.raises(ValueError, match="index.noun, line 1: .*index.sense"):
        read_first_senses(file)
