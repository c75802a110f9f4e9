"""`import spacy_elmo`: the documented Python API, imported lazily and typed."""

import subprocess
import sys
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

import spacy_elmo
from tests import tiny

PACKAGE = Path(spacy_elmo.__file__).parent
HEAVY = ("numpy", "safetensors", "spacy", "thinc", "torch")


def python(code):
    """Run code in a process of its own, and return what it has printed."""
    command = [sys.executable, "-W", "error::ImportWarning", "-c", code]
    done = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_nothing():
    code = "import sys, spacy_elmo; dir(spacy_elmo); spacy_elmo.__version__\n"
    loaded = python(code + f"print([name for name in {HEAVY!r} if name in sys.modules])")
    assert loaded == "[]"


def test_every_name_resolves_and_is_listed():
    namespace = {}
    exec("from spacy_elmo import *", namespace)
    assert set(spacy_elmo.__all__) <= set(namespace) & set(dir(spacy_elmo))
    for name in set(spacy_elmo.__all__) - {"__version__"}:
        assert namespace[name].__name__ == name and namespace[name].__doc__
    with pytest.raises(ImportError, match="Elmo"):
        from spacy_elmo import Elmo  # noqa: F401


def test_after_the_import_of_their_modules():
    """A name is its object also when its module was imported first, each in a fork with nothing of the package."""
    code = f"""
import importlib, os, sys, spacy.cli, torch
for name, module in {spacy_elmo._MODULES!r}.items():
    child = os.fork()
    if not child:
        module = importlib.import_module("spacy_elmo" + module)
        import spacy_elmo
        os._exit(getattr(spacy_elmo, name) is not getattr(module, name))
    print(name, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert python(code).split("\n") == [f"{name} 0" for name in spacy_elmo._MODULES]


@pytest.mark.slow
def test_types(tmp_path):
    """mypy sees the types, as editors do."""
    pytest.importorskip("mypy")
    file = tmp_path / "use.py"
    file.write_text(
        "import spacy_elmo\n"
        "reveal_type(spacy_elmo.convert('theirs'))\n"
        "reveal_type(spacy_elmo.LanguageModel.from_file)\n"
        "spacy_elmo.layers_of(7)\n"
    )
    command = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--no-error-summary"]
    command += ["--cache-dir", str(tmp_path / "cache"), str(file)]
    output = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True).stdout
    assert 'Revealed type is "spacy_elmo.bilm.weights.Weights"' in output
    assert "spacy_elmo.lab.language_model.LanguageModel" in output
    assert 'Argument 1 to "layers_of" has incompatible type "int"' in output


# What the functions do


def test_vectors_of_a_doc_bin_without_a_component(tmp_path):
    """In a process that has made none."""
    nlp = spacy.blank("en")
    config = {"weights": str(tmp_path / "w.safetensors")}
    tiny.save(config["weights"], {"language": "en"})
    nlp.add_pipe("elmo", config=config)
    nlp.add_pipe("elmo", name="other", config=config)
    DocBin(docs=[nlp("A bank.")], store_user_data=True).to_disk(tmp_path / "a.spacy")
    read = (
        "import spacy, spacy_elmo; from spacy.tokens import DocBin\n"
        "spacy_elmo.install_extensions()\n"
        f"(doc,) = DocBin().from_disk({str(tmp_path / 'a.spacy')!r}).get_docs(spacy.blank('en').vocab)\n"
        "print(doc._.elmo.shape, doc[1]._.elmo.shape, spacy_elmo.layers_of(doc).shape,\n"
        "      spacy_elmo.layers_of(doc, 'elmo').shape, spacy_elmo.layers_of(doc, 'none'))\n"
    )
    assert python(read) == "(3, 10) (10,) (3, 3, 10) (3, 3, 10) None"
