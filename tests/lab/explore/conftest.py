"""An explorer of the sample corpus with the bundled weights."""

import pytest

from spacy_elmo.lab.contexts.write_occurrences import write_occurrences
from spacy_elmo.lab.corpora.pipelines import load_pipeline, source_of
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
def index_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explore")
    (folder / "text.txt").write_text(TEXT, encoding="utf8")
    nlp, _ = load_pipeline(WEIGHTS)
    about = source_of(nlp, WEIGHTS, lang=None, tokenized=False)
    tokens = sum(write_occurrences(folder / "index", nlp, str(folder / "text.txt"), about=about))
    assert tokens > 50
    return folder / "index"


@pytest.fixture(scope="package")
def explorer(index_folder):
    return Explorer.load(WEIGHTS, index_folder)
