"""The tables of the pages are those of evidence/scores, and a table has the means of its runs."""

import pytest
import srsly

from scripts import tables


def test_the_pages_have_the_tables_of_today():
    settings = srsly.read_yaml(tables.ROOT / "evidence" / "tables.yml")
    for path in tables.pages():
        text = path.read_text("utf8")
        assert tables.page(text, settings) == text, f"{path}: run make tables"


@pytest.fixture
def settings(tmp_path, monkeypatch):
    scores = tmp_path / "evidence" / "scores"
    scores.mkdir(parents=True)
    runs = [
        ("a", "hash", 50, 40),
        ("a", "hash", 60, 30),
        ("a", "elmo", 70, 20),
        ("a", "elmo", 80, 25),
    ]
    runs += [("b", "hash", 90, 10), ("b", "elmo", 90, 0), ("b", "other", 1, 1)]
    srsly.write_jsonl(
        scores / "runs.jsonl",
        [{"set": s, "network": n, "scores": {"f": f, "g": g}} for s, n, f, g in runs],
    )
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    return {"of": ["runs"], "where": {"metric": "f"}, "rows": ["set"], "columns": "network"}


def test_a_cell_is_the_mean_of_its_runs(settings):
    assert tables.table(settings) == (
        "|  | hash | elmo | other |\n| --- | ---: | ---: | ---: |\n| a | 55.0 | 75.0 |  |\n| b | 90.0 | 90.0 | 1.0 |\n"
    )


def test_errors_bold_means_labels_and_order(settings):
    """Of the 45 errors, 20 are gone. All runs of elmo are better than all without it on a, not on b."""
    settings |= {
        "show": {"set": {"b": "B", "a": "A"}, "network": {"hash": "without", "elmo": "with"}},
        "fewer_errors": ["fewer", "hash", "elmo"],
        "bold": ["elmo", "hash"],
        "digits": 0,
    }
    assert tables.table(settings).splitlines() == [
        "|  | without | with | fewer |",
        "| --- | ---: | ---: | ---: |",
        "| B | 90 | 90 | 0.0 % |",
        "| A | 55 | **75** | 44.4 % |",
    ]


def test_metrics_are_columns_and_a_label_stands_once(settings):
    """Without `show`, the rows are in the order of the runs."""
    settings = {"of": ["runs"], "where": {"network": ["hash", "elmo"]}, "rows": ["set", "network"]}
    assert tables.table(settings).splitlines()[2:] == [
        "| a | hash | 55.0 | 35.0 |",
        "|  | elmo | 75.0 | 22.5 |",
        "| b | hash | 90.0 | 10.0 |",
        "|  | elmo | 90.0 | 0.0 |",
    ]


def test_heads_and_a_list_of_what_is_shown(settings):
    settings |= {"heads": ["data"], "show": {"set": ["b"], "network": ["other", "hash"]}}
    assert tables.table(settings).splitlines() == [
        "| data | other | hash |",
        "| --- | ---: | ---: |",
        "| b | 1.0 | 90.0 |",
    ]


def test_a_page_keeps_its_text(settings):
    text = "Before\n\n<!-- table x -->\nold\n<!-- end -->\nafter\n"
    made = tables.page(text, {"x": settings})
    assert made == text.replace("old\n", tables.table(settings))
    assert tables.page(made, {"x": settings}) == made
