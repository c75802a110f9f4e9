"""Several threads, several processes, and what importing costs."""

import subprocess
import sys
import textwrap
import threading

import pytest

from tests import pipelines
from tests.pipelines import assert_close

TEXTS = [text for text in pipelines.TEXTS if text] * 3


def run(code, *args, timeout=120):
    """Run python in a process of its own, so that a hang or an exit is its own."""
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


PROCESSES = """
    import multiprocessing, sys
    import numpy, torch
    from tests import pipelines
    if __name__ == "__main__":
        multiprocessing.set_start_method(sys.argv[2])
        torch.set_num_threads(2)
        (torch.ones(400, 400) @ torch.ones(400, 400)).sum()
        nlp = pipelines.blank(sys.argv[1])
        pipelines.add_tagger(nlp)
        pipelines.trained(nlp, 3)
        texts = pipelines.TEXTS * 2
        expected = list(nlp.pipe(texts))
        found = list(nlp.pipe(texts, n_process=2, batch_size=2))
        for one, other in zip(found, expected, strict=True):
            pipelines.assert_close(one._.elmo_layers, other._.elmo_layers)
            assert [t.tag_ for t in one] == [t.tag_ for t in other]
        print("equal")
"""


def test_forked_workers_after_torch_used_threads(weights):
    """Hazard 16: a child of a process in which torch has used two threads hangs at its first parallel operation."""
    assert run(PROCESSES, weights, "fork") == "equal"


def test_four_threads(weights):
    """Hazard 15: `PyTorchShim` switches the module between modes, so threads see each other's dropout. Here the
    first use, which loads, comes from four threads too."""
    nlp = pipelines.blank(weights)
    expected = pipelines.layers(pipelines.blank(weights), TEXTS)
    results: dict[int, list] = {}

    def work(number):
        results[number] = [nlp.get_pipe("elmo").predict([nlp.make_doc(text)])[0] for text in TEXTS]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for found in results.values():
        for layers, wanted in zip(found, expected, strict=True):
            assert_close(layers, wanted)


def test_importing_does_nothing():
    """The factory's module is imported at every `spacy.blank()`."""
    code = """
        import os, sys, spacy
        registered = []
        def register(after_in_child=None, **hooks):
            if getattr(after_in_child, "__module__", "").startswith("spacy_elmo"):
                registered.append(after_in_child)
        os.register_at_fork = register
        from spacy.tokens import Doc
        before = set(sys.modules)
        import spacy_elmo.pipeline.component
        assert not Doc.has_extension("elmo") and not registered
        assert not {"h5py", "transformers", "spacy_transformers"} & (set(sys.modules) - before)
        nlp = spacy.blank("en")
        for _ in range(2):
            nlp.create_pipe("elmo")
        assert Doc.has_extension("elmo") and len(registered) == 1
    """
    run(code)


@pytest.mark.skipif(sys.platform == "win32", reason="spawned workers import the tests by path")
def test_component_survives_a_spawned_process(weights, tmp_path):
    """What a spawned worker gets is pickled, and its process has no extensions yet."""
    import pickle

    nlp = pipelines.blank(weights)
    pipelines.add_tagger(nlp)
    pipelines.trained(nlp)
    path = tmp_path / "pipes.pickle"
    path.write_bytes(pickle.dumps([nlp.vocab, *(pipe for _, pipe in nlp.pipeline)]))
    code = """
        import pickle, sys
        from spacy.tokens import Doc
        vocab, elmo, tagger = pickle.loads(open(sys.argv[1], "rb").read())
        doc = tagger(elmo(Doc(vocab, words=["Anna", "met", "Bob"])))
        print(doc._.elmo.shape, [token.tag_ for token in doc] != ["", "", ""])
    """
    assert run(code, path) == "(3, 10) True"
