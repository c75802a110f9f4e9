"""The picture of all languages has the gains of their reports."""

import dataclasses

import pytest
from experiments.overview import read_gains
from experiments.report import sections, write
from experiments.results import Result, Results


def result(variant: str, score: float, seed: int = 0) -> Result:
    """Return a result on WNUT17."""
    return Result(
        task="ner",
        data="wnut17",
        share=100,
        variant=variant,
        seed=seed,
        score=score,
        minutes=1.0,
        documents=10,
        dev=((10, score),),
    )


@pytest.mark.parametrize(
    ("title", "label"),
    [
        ("What ELMo brings to spaCy", "English, named entities: wnut17"),
        ("What ELMo brings to spaCy: Latin", "Latin, named entities: wnut17"),
    ],
)
def test_gains_are_those_of_the_first_table(tmp_path, title, label):
    scores = {"baseline": (40, 44), "vectors": (35, 35), "elmo": (57, 59)}
    both = [
        result(name, score, seed) for name, of in scores.items() for seed, score in enumerate(of)
    ]
    # Of this set neither the baseline nor the vectors have a score yet.
    results = Results([*both, dataclasses.replace(both[-1], data="gum")])
    size = {"raw_words": None}
    write(sections(results, size, {}, tmp_path), tmp_path, "All of it.", title)
    # Errors: 58 of 100 in the baseline, 42 and 65.
    assert read_gains(tmp_path) == [
        {"set": label, "model": "ELMo", "gain": pytest.approx(100 * 16 / 58)},
        {"set": label, "model": "static vectors", "gain": pytest.approx(100 * -7 / 58)},
    ]


def test_a_page_without_scores_is_named(tmp_path):
    (tmp_path / "report.md").write_text("", "utf8")
    with pytest.raises(ValueError, match=r"report\.md has no table of scores"):
        read_gains(tmp_path)
