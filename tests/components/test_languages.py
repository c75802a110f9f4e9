"""Languages that spaCy does not know."""

import subprocess
import sys

import pytest
import spacy

CODES = ["cy", "mt", "se", "ug", "wo", "yi"]


@pytest.mark.parametrize("code", CODES)
def test_language(code, tmp_path):
    nlp = spacy.blank(code)
    assert (nlp.lang, nlp.vocab.lang, nlp("a b")[1].lang_) == (code,) * 3
    script = nlp.vocab.writing_system["direction"]
    assert script == ("rtl" if code in ("ug", "yi") else "ltr")
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path).lang == code


def test_a_pipeline_loads_where_nothing_was_imported(tmp_path):
    spacy.blank("se").to_disk(tmp_path)
    code = f"import spacy; print(spacy.load({str(tmp_path)!r}).lang)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "se\n"
