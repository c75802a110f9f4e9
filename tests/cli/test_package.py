"""`python -m spacy elmo package`."""

import json

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from tests import tiny
from tests.commands import elmo

NAME = "la_elmo_tiny_v1"


def invoke(folder, *options):
    return elmo("package", folder / "la.safetensors", folder / "models", "--name", NAME, *options)


def write(folder, head):
    bilm = tiny.bilm(tiny.config())
    made = Head(len(tiny.VOCABULARY), bilm.config.projection) if head else None
    vocabulary = tiny.VOCABULARY if head else []
    card = {"name": "a run", "language": "la"}
    Weights.from_bilm(bilm, made, vocabulary=vocabulary, card=card).save(folder / "la.safetensors")


def test_the_card_is_completed_and_the_head_stands_beside_the_package(tmp_path):
    write(tmp_path, head=True)
    more = {"licence": "CC0 1.0", "sources": ["a book"]}
    (tmp_path / "card.json").write_text(json.dumps(more))
    code, output = invoke(tmp_path, "--card", tmp_path / "card.json", "--head")
    assert code == 0 and "Train the weights further" in output
    package = tmp_path / "models" / "la_elmo_tiny" / "la_elmo_tiny" / f"{NAME}.safetensors"
    with_head = tmp_path / "models" / f"{NAME}_with_head.safetensors"
    for file in (package, with_head):
        assert Weights.load(file).card == {"name": "a run", "language": "la", **more}
    assert Weights.load(with_head).build_head() is not None


def test_what_cannot_be_packaged_is_one_message(tmp_path):
    write(tmp_path, head=False)
    code, output = invoke(tmp_path, "--licence", "CC0 1.0", "--head")
    assert code == 1 and "The weights have no head" in output
    (tmp_path / "card.json").write_text("[]")
    code, output = invoke(tmp_path, "--card", tmp_path / "card.json")
    assert code == 1 and "must contain a JSON object" in output
