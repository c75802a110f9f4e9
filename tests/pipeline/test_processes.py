"""Several threads, several processes, and what importing costs."""

import json
import pickle
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from spacy.tokens import Doc

from tests import pipelines, tiny
from tests.pipelines import assert_same


def run(code, *args, timeout=120):
    """Run Python in a process of its own, so that a hang or an exit does not stop the tests."""
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
            pipelines.assert_same(one._.elmo_layers, other._.elmo_layers)
            assert [t.tag_ for t in one] == [t.tag_ for t in other]
        print("equal")
"""


def test_forked_workers_after_torch_used_threads(weights):
    """A child of a process in which torch has used two threads would hang at its first parallel operation. Docs come
    back as bytes, with their vectors."""
    assert run(PROCESSES, weights, "fork") == "equal"


FORK = """
    import os, sys, threading
    from tests import pipelines
    from spacy_elmo.pipeline.encode import shim
    from spacy_elmo.pipeline.store import cache
    nlp = pipelines.listening(sys.argv[1], frozen=True)
    pipelines.trained(nlp)
    expected = nlp("A cat.")._.elmo_layers
    forked = threading.Event()

    def hold_all_locks():
        with shim._loading, shim._comparing, cache._lock:
            held.set()
            forked.wait()

    held = threading.Event()
    threading.Thread(target=hold_all_locks).start()
    held.wait()
    child = os.fork()
    if not child:
        pipelines.assert_same(nlp("A cat.")._.elmo_layers, expected)
        nlp.initialize(lambda: pipelines.examples(nlp))
        os._exit(0)
    forked.set()
    print(os.waitpid(child, 0)[1])
"""


def test_a_fork_while_another_thread_holds_the_locks(weights):
    """The child would wait forever for a thread that it does not have."""
    assert run(FORK, weights) == "0"


FORKS = """
    import os, queue, signal, sys, threading
    import spacy_elmo
    from tests import pipelines
    ours = os.path.dirname(spacy_elmo.__file__)
    trained = pipelines.listening(sys.argv[1], frozen=True)
    pipelines.trained(trained)
    both = [pipelines.blank(sys.argv[1]), trained]
    seen, paused, go = set(), queue.SimpleQueue(), queue.SimpleQueue()

    def pause(frame, event, arg):
        is_ours = frame.f_code.co_filename.startswith(ours) and frame.f_code.co_name[0] != "<"
        if is_ours and frame.f_code not in seen:
            seen.add(frame.f_code)
            paused.put(True)
            go.get()

    def predict():
        for nlp in both:
            nlp("A cat.")

    def work():
        predict()
        paused.put(False)

    threading.settrace(pause)
    threading.Thread(target=work).start()
    failed = []
    while paused.get():
        child = os.fork()
        if not child:
            signal.alarm(20)
            predict()
            os._exit(0)
        failed.append(os.waitpid(child, 0)[1] != 0)
        go.put(None)
    print(len(failed) > 50, sum(failed))
"""


@pytest.mark.slow
def test_a_fork_at_any_function_of_another_thread(tmp_path):
    """The other thread stops at the start of each function, where it may hold a lock, such as that of
    `functools.cached_property` in Python 3.10 and 3.11. One of its pipelines has not been used before."""
    weights = tiny.save(tmp_path / "w.safetensors", replace=(("\u0101", "a"),))
    assert run(FORKS, weights) == "True 0"


@pytest.mark.parametrize("trained", [False, True])
def test_four_threads(weights, monkeypatch, trained):
    """`PyTorchShim` switches the mode of the module, so threads would get each other's dropout. Here four threads also
    make the first use, which loads the weights, and a trained pipeline has a cache, to which all of them write."""
    nlp = pipelines.listening(weights, frozen=True)
    elmo = nlp.get_pipe("elmo")
    texts = [text for text in pipelines.TEXTS if text]
    texts += [" ".join(words) for words, _ in pipelines.SENTENCES]
    docs = [nlp.make_doc(text) for text in texts]
    expected = pipelines.blank(weights).get_pipe("elmo").predict(docs)
    if trained:
        pipelines.trained(nlp)
    wrong, done = [], []

    def work(number):
        for turn in range(500):
            place = (number + turn) % len(docs)
            (layers,) = elmo.predict([docs[place]])
            if not pipelines.same(layers, expected[place]):
                wrong.append((number, turn))
        done.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [0, 1, 2, 3] and not wrong
    if trained:
        nothing = lambda model, docs, is_train: ([1 / 0 for _ in docs], None)  # noqa: E731
        monkeypatch.setattr(elmo.model, "_func", nothing)
        assert_same(elmo.predict(docs[:1])[0], expected[0])


NEW_PROCESS = """
    import json, os, pickle, sys
    import numpy, spacy
    from spacy.tokens import Doc

    folder, texts = sys.argv[1], json.loads(sys.argv[2])
    registered, found = [], {}
    def register(after_in_child=None, **hooks):
        if getattr(after_in_child, "__module__", "").startswith("spacy_elmo"):
            registered.append(after_in_child)
    os.register_at_fork = register

    before = set(sys.modules)
    import spacy_elmo.pipeline.component
    slow = {"h5py", "transformers", "spacy_transformers"} & (set(sys.modules) - before)
    found["import"] = [sorted(slow), Doc.has_extension("elmo"), len(registered)]

    with open(folder + "/pipes.pickle", "rb") as file:
        vocab, elmo, tagger = pickle.load(file)
    doc = tagger(elmo(Doc(vocab, words=["Anna", "met", "Bob"])))
    found["unpickled"] = [list(doc._.elmo.shape), [token.tag_ for token in doc]]

    for _ in range(2):
        spacy.blank("en").create_pipe("elmo")
    found["hooks"] = len(registered)

    saved = [spacy.load(folder + "/" + name) for name in ("unused", "used")]
    arrays = [doc._.elmo_layers for nlp in saved for doc in nlp.pipe(texts)]
    numpy.savez(folder + "/out.npz", *arrays)
    print(json.dumps(found))
"""


@pytest.fixture(scope="session")
def new_process(weights, tmp_path_factory):
    """Return the results of a new interpreter. One serves several tests, because it takes seconds to start.

    It gets the pipes of a trained pipeline, pickled as for a spawned worker, and two saved pipelines whose weights
    file is gone; one of them had not been used, and so not loaded, before it was saved.
    """
    folder = tmp_path_factory.mktemp("new_process")
    trained = pipelines.blank(weights)
    pipelines.add_tagger(trained)
    pipelines.trained(trained)
    pipes = [trained.vocab, *(pipe for _, pipe in trained.pipeline)]
    (folder / "pipes.pickle").write_bytes(pickle.dumps(pipes))

    path = folder / "w.safetensors"
    path.write_bytes(weights.read_bytes())
    unused, used = pipelines.blank(path), pipelines.blank(path)
    used("a")
    unused.to_disk(folder / "unused")
    used.to_disk(folder / "used")
    path.unlink()

    actual = json.loads(run(NEW_PROCESS, folder, json.dumps(pipelines.TEXTS)))
    with np.load(folder / "out.npz") as arrays:
        actual["layers"] = list(arrays.values())
    doc = Doc(trained.vocab, words=["Anna", "met", "Bob"])
    for _, pipe in trained.pipeline:
        doc = pipe(doc)
    actual["expected tags"] = [token.tag_ for token in doc]
    return actual


def test_importing_does_nothing(new_process):
    """The factory's module is imported at every `spacy.blank()`. The hooks for forks come with the first
    component."""
    assert new_process["import"] == [[], False, 0]
    assert new_process["hooks"] == 2


def test_component_survives_a_spawned_process(new_process):
    """The component of a spawned worker was pickled, and its process has no extensions yet."""
    assert new_process["unpickled"] == [[3, 10], new_process["expected tags"]]
    assert all(new_process["expected tags"])


def test_disk_in_a_new_process_without_the_weights_file(weights, new_process):
    expected = pipelines.layers(pipelines.blank(weights), pipelines.TEXTS)
    for array, layers in zip(new_process["layers"], expected * 2, strict=True):
        assert_same(array, layers)
