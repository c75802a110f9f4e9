"""An explorer of the sample corpus with the bundled weights."""

import pytest

from spacy_elmo.lab.explore.explorer import Explorer

WEIGHTS = "en_mini_v4"
TEXT = """He sat on the muddy bank of the river.
They walked along the bank of the canal.
She asked the bank for a loan.
The bank lends money to the town.
A bank opened in the square.
The </script> <b> bank </b> & "it".
שלום bank.
"""


@pytest.fixture(scope="package")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("explore") / "text.txt"
    path.write_text(TEXT, encoding="utf8")
    return path


@pytest.fixture(scope="package")
def explorer(text):
    return Explorer.load(WEIGHTS, text)
