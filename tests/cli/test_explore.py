"""`python -m spacy elmo explore`, and its index."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from tests import tiny
from tests.commands import elmo


@pytest.fixture
def folder(tmp_path, monkeypatch):
    tiny.save(tmp_path / "w.safetensors", {"language": "en"})
    (tmp_path / "a.txt").write_text("A cat sat.\nThe cat slept.\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("corpus", ["a.txt", "index"])
def test_page_is_served_until_the_program_is_ended(folder, corpus):
    """A text and its index can be explored. Weights without a head have no language model."""
    if corpus == "index":
        assert elmo("search", "index", "w.safetensors", "a.txt", "index", "--unit", "word")[0] == 0
    command = [sys.executable, "-m", "spacy", "elmo", "explore", "w.safetensors", corpus]
    with subprocess.Popen(
        [*command, "--port", "0", "--no-browser"], stdout=subprocess.PIPE, text=True
    ) as process:
        output = ""
        while "Ctrl-C" not in output:
            output += process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", output)[0]
        with urllib.request.urlopen(f"{address}api/corpus", timeout=120) as response:
            answer = json.load(response)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    assert answer["tokens"] == 8 and answer["sentences"] == 2
    assert answer["language_model"] is False
    assert ("This index is temporary" in output) == (corpus == "a.txt")


def test_word_index(folder):
    code, output = elmo("search", "index", "w.safetensors", "a.txt", "index", "--unit", "word")
    assert code == 0 and "Index: index, 8 tokens" in output
    code, output = elmo("search", "query", "index", "A cat.")
    assert code == 1 and "There is no index in index" in output
    code, output = elmo("explore", "w.safetensors", "index", "--lang", "de")
    assert code == 1 and "index is an index" in output
    code, output = elmo("explore", "en_mini_v4", "index")
    assert code == 1 and "is not the pipeline of the index" in output
    code, output = elmo(
        "search", "index", "w.safetensors", "a.txt", "new", "--unit", "word", "--layer", "1"
    )
    assert code == 1 and "--layer and --method can only be used with --unit sentence" in output


def test_what_is_wrong_is_found_before_the_corpus_is_indexed(folder, monkeypatch):
    from spacy_elmo.cli import explore

    monkeypatch.setattr(explore, "make_word_index", None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, output = elmo("explore", "w.safetensors", "a.txt", "--port", port)
    assert code == 1 and f"Port {port} cannot be used" in output
    code, output = elmo("explore", folder, "a.txt")
    assert code == 1 and "is not a weights file" in output
