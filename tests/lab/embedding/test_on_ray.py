"""Two Ray workers write the same files, even if one is killed."""

import os
import signal

import pytest
import torch
from spacy.util import import_file
from typer.testing import CliRunner

from spacy_elmo.cli import elmo_cli
from spacy_elmo.lab.corpora.items import Shard
from spacy_elmo.lab.embedding.embedder import EmbedOptions
from tests import pipelines
from tests.disk import tree

pytestmark = pytest.mark.slow

ray = pytest.importorskip("ray")

# A file, because workers import it. What a marker on disk says outlives the worker.
CODE = """
import os
import signal
from pathlib import Path

from spacy.language import Language


@Language.factory("perilous", default_config={"folder": ""})
def make_perilous(nlp, name, folder):
    def perilous(doc):
        if "rains" in doc.text and not Path(folder, "died").exists():
            Path(folder, "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return doc

    return perilous
"""


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")  # or it writes a file to the user's home
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    path = tmp_path_factory.mktemp("code") / "perilous.py"
    path.write_text(CODE)
    return path


@pytest.fixture
def embed(cluster, weights, code, tmp_path):
    """Run the command with a pipeline that dies at one item, once. Return its exit code and output."""
    import_file("python_code", code)
    nlp = pipelines.blank(weights)
    nlp.add_pipe("perilous", first=True, config={"folder": str(tmp_path)})
    nlp.to_disk(tmp_path / "nlp")
    weights.unlink()

    def embed(*arguments):
        command = ["embed", tmp_path / "nlp", *arguments, "--code", code]
        result = CliRunner().invoke(elmo_cli, [*map(str, command)])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, " ".join(result.output.split())

    return embed


@pytest.fixture
def one_thread():
    """Use one thread, as a worker does: the number of threads decides how float32 is rounded."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_worker_is_killed_and_the_files_are_the_same(embed, text, tmp_path, one_thread):
    text.write_text(text.read_text() * 4)
    code, output = embed(text, tmp_path / "out", "--engine", "ray")
    assert code == 0, output
    assert (tmp_path / "died").exists()
    assert "Computed: 28 items" in output
    actual = tree(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / "before")
    assert embed(text, tmp_path / "out")[0] == 0
    assert tree(tmp_path / "out") == {
        name.replace("before", "out"): content for name, content in actual.items()
    }


@ray.remote(max_restarts=0)
class Worker:
    """A worker that needs no imports."""

    def fail(self):
        raise ValueError("a broken item")

    def die(self):
        os.kill(os.getpid(), signal.SIGKILL)


def test_errors_of_workers_are_those_of_the_command(cluster):
    from spacy_elmo.lab.embedding.on_ray import _result

    shard = Shard(3, "text.txt", 40, ["a"])
    with pytest.raises(ValueError, match="^a broken item$"):
        _result(Worker.remote().fail.remote(), shard)
    problem = r"(?s)Shard 3 \(text\.txt, from item 40 on\).*died"
    with pytest.raises(ChildProcessError, match=problem):
        _result(Worker.remote().die.remote(), shard)


def test_a_cluster_without_gpus(cluster, nlp):
    from spacy_elmo.lab.embedding.on_ray import embed_on_ray

    with pytest.raises(ValueError, match="The Ray cluster has no GPU"):
        list(embed_on_ray(nlp, EmbedOptions(), [], gpu=True))
