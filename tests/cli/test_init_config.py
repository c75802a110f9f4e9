"""`python -m spacy elmo init-config`, and all commands from foreign weights to an installed package."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.cli import app
from spacy.cli.init_config import init_config as spacy_init_config
from spacy.tokens import DocBin
from spacy.util import load_config
from thinc.api import Adam, Config
from typer.testing import CliRunner

from spacy_elmo.cli import elmo_cli
from spacy_elmo.pipeline.training_config import onto, shipped_configs, with_elmo
from tests import consumers, pipelines, tiny
from tests.converters import foreign

PAGE = (Path(__file__).parents[2] / "docs" / "packages.md").read_text(encoding="utf8")


@pytest.fixture
def weights(tmp_path):
    return tiny.save(tmp_path / "w.safetensors", {"language": "fi"})


def invoke(*arguments):
    result = CliRunner().invoke(elmo_cli, ["init-config", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def words(result):
    return " ".join(result.output.split())


def test_config_is_the_pipeline(weights, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert invoke("a.cfg", "--weights", "w.safetensors").exit_code == 0
    config = load_config(tmp_path / "a.cfg")
    assert config["nlp"]["lang"] == "fi"
    assert config["nlp"]["pipeline"] == ["elmo"]
    assert config["components"]["elmo"]["weights"] == str(weights)
    # Every setting is shown.
    assert config["components"]["elmo"]["frozen"] is True
    monkeypatch.chdir("/")
    nlp = spacy.util.load_model_from_config(config, auto_fill=False)
    assert nlp("Hei maailma.")._.elmo.shape == (3, 10)


def listening(config):
    """Return the sizes of the listener's input in each component, and of its own embedding."""
    actual = {}
    for name, block in config["components"].items():
        tok2vec = block.get("model", {}).get("tok2vec")
        if tok2vec is not None:
            actual[name] = (tok2vec["@architectures"], tok2vec.get("embed"))
    return actual


@pytest.mark.parametrize("optimize", ["efficiency", "accuracy"])
def test_every_component_listens_and_learns(weights, tmp_path, optimize):
    """All components with a shipped config, and two that only have a default of spaCy."""
    names = ["tagger", "morphologizer", "senter", "parser", "ner", "textcat", "spancat"]
    names += ["textcat_multilabel", "spancat_singlelabel", "span_finder"]
    tiny.save(weights, {"language": "en"})
    path = tmp_path / "a.cfg"
    result = invoke(path, "-w", weights, "-p", ", ".join(names), "--optimize", optimize)
    assert result.exit_code == 0, result.output
    assert f"spacy train {path} --paths.train" in words(result)
    config = load_config(path)
    assert config["nlp"]["pipeline"] == ["elmo", *names]
    assert config["nlp"]["batch_size"] == 32
    assert set(listening(config)) == set(names)

    nlp = spacy.util.load_model_from_config(consumers.make_small(config), auto_fill=False)
    nlp.initialize(lambda: consumers.examples(nlp))
    before = {name: nlp.get_pipe(name).model.to_bytes() for name in names}
    losses = pipelines.step(nlp, Adam(0.01), consumers.examples(nlp))
    for name in names:
        assert losses[name] > 0
        assert pipelines.mixes(nlp.get_pipe(name).model), name
        assert nlp.get_pipe(name).model.to_bytes() != before[name]


def test_recipes(tmp_path):
    """With efficiency, the only input of a component is ELMo. With accuracy it is that of its shipped config, on
    request with static vectors."""
    expected = consumers.filled("ner_elmo").interpolate()["components"]["ner"]
    recipe = expected["model"].pop("tok2vec")

    def block(*options):
        assert invoke("-p", "ner", tmp_path / "a.cfg", "-f", *options).exit_code == 0
        config = load_config(tmp_path / "a.cfg")
        ner = config["components"]["ner"]
        tok2vec = ner["model"].pop("tok2vec")
        assert ner == expected
        return config, tok2vec

    assert recipe["input"].items() <= block()[1].items()
    actual = block("--optimize", "accuracy")[1]
    assert recipe["input"].items() <= actual.pop("input").items()
    assert actual == {key: value for key, value in recipe.items() if key != "input"}
    (tmp_path / "floret").mkdir()
    config, tok2vec = block("--optimize", "accuracy", "--vectors", tmp_path / "floret")
    assert tok2vec["embed"]["include_static_vectors"] is True
    assert config["initialize"]["vectors"] == "${paths.vectors}"
    assert config["paths"]["vectors"] == str(tmp_path / "floret")
    named = block("--optimize", "accuracy", "--vectors", "en_core_web_md")[0]
    assert named["paths"]["vectors"] == "en_core_web_md"


def test_shipped_configs_are_copied_with_their_comments(tmp_path):
    for name, path in shipped_configs().items():
        assert invoke("--from", name, tmp_path / "a.cfg", "--force").exit_code == 0
        assert (tmp_path / "a.cfg").read_text(encoding="utf8") == path.read_text(encoding="utf8")


@pytest.mark.slow
# spaCy leaves files that it has written to be closed by the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_from_foreign_weights_to_an_installed_package(tmp_path, monkeypatch):
    """Run the commands of the documentation, then a new process that has only the package."""
    monkeypatch.chdir(tmp_path)
    # No network: `build` then uses the setuptools that are there.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    Path("theirs").mkdir()
    foreign.write_model(Path("theirs"), tiny.bilm(tiny.config()))
    tiny.save("expected.safetensors")
    text = "Anna met Bob in Rome."
    expected = pipelines.blank("expected.safetensors")(text)._.elmo

    # The first command installs `build`, which is there.
    _, mkdir, *commands = re.search(r"```bash\n(.*?)\n```", PAGE, re.DOTALL)[1].split("\n")
    Path(mkdir.removeprefix("mkdir -p ")).mkdir()
    assert len(commands) == 4
    for command in commands:
        result = CliRunner().invoke(app, command.removeprefix("python -m spacy ").split())
        assert result.exit_code == 0, result.output + repr(result.exception)
    (wheel,) = Path("packages").rglob("*.whl")
    python("-m", "pip", "install", "--no-deps", "--target", "site", wheel)
    for name in ("theirs", "pipeline", "packages"):
        shutil.rmtree(name)
    Path("ours.safetensors").unlink()
    python(
        "-c",
        "import sys; sys.path.insert(0, 'site'); import en_their_elmo, numpy;"
        f"numpy.save('found.npy', en_their_elmo.load()({text!r})._.elmo)",
    )
    assert np.allclose(np.load("found.npy"), expected, atol=1e-6)


def python(*arguments):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("batch_size, expected", [(1000, 32), (8, 8)])  # spaCy's, and one's own
def test_elmo_is_added_to_a_config(tmp_path, batch_size, expected):
    """Listeners replace those of the component tok2vec in a config of spaCy's `init config`, and it goes."""
    base, path = tmp_path / "base.cfg", tmp_path / "my.cfg"
    config = spacy_init_config(lang="en", pipeline=["tagger", "ner"])
    config["components"]["tagger"]["label_smoothing"] = 0.1
    config["nlp"]["batch_size"] = batch_size
    config["training"]["frozen_components"] = ["tok2vec", "tagger"]
    config.to_disk(base)
    assert invoke(path, "--base", base, "--weights", "en_mini_v4").exit_code == 0
    again = path.read_text()
    assert invoke(path, "--base", path, "--weights", "en_mini_v4", "--force").exit_code == 0
    assert path.read_text() == again
    written = load_config(path)
    assert written["nlp"]["pipeline"] == ["elmo", "tagger", "ner"]
    assert set(written["components"]) == {"elmo", "tagger", "ner"}
    assert written["components"]["tagger"]["label_smoothing"] == 0.1
    assert written["nlp"]["batch_size"] == expected
    assert written["training"]["frozen_components"] == ["tagger"]
    nlp = spacy.util.load_model_from_config(written, auto_fill=True)
    assert [name for name in nlp.pipe_names if nlp.get_pipe("elmo").listener_map.get(name)] == [
        "tagger",
        "ner",
    ]


@pytest.mark.parametrize(
    "factory, architecture",
    [
        ("transformer", "spacy-transformers.TransformerListener.v1"),
        ("curated_transformer", "spacy-curated-transformers.LastTransformerLayerListener.v1"),
    ],
)
def test_elmo_replaces_a_transformer(factory, architecture):
    listener = {"@architectures": architecture, "upstream": "*"}
    loader = {
        "encoder_loader": {
            "@model_loaders": "spacy-curated-transformers.HFTransformerEncoderLoader.v1"
        }
    }
    base = Config({
        "nlp": {"lang": "en", "pipeline": ["encoder", "ner"]},
        "components": {
            "encoder": {"factory": factory},
            "ner": {"factory": "ner", "model": {"tok2vec": listener}},
        },
        "initialize": {"components": {"encoder": loader, "ner": {}}},
    })  # fmt: skip
    config = with_elmo(base, "en_mini_v4")
    assert config["nlp"]["pipeline"] == ["elmo", "ner"]
    assert set(config["components"]) == {"elmo", "ner"}
    assert config["initialize"]["components"] == {"ner": {}}
    assert config["components"]["ner"]["model"]["tok2vec"]["upstream"] == "elmo"


def trained_pipeline(folder, **elmo):
    """Train a small pipeline of all layers of a treebank, with a tokenizer and static vectors of its own."""
    weights = tiny.save(folder / "w.safetensors", {"language": "en"})
    config = consumers.config("treebank", weights, folder, **elmo)
    config["components"]["tok2vec"]["model"]["embed"]["include_static_vectors"] = True
    nlp = consumers.pipeline(config)
    nlp.tokenizer.infix_finditer = re.compile("_").finditer
    nlp.vocab.reset_vectors(width=4)
    for number, word in enumerate(["Anna", "Paris", "bank"]):
        nlp.vocab.set_vector(word, np.eye(4)[number])
    optimizer = nlp.initialize(lambda: consumers.examples(nlp))
    for _ in range(5):
        pipelines.step(nlp, optimizer, consumers.examples(nlp))
    nlp.to_disk(folder / "trained")
    return nlp


def predicted(folder):
    """Return the predictions of the pipeline of `trained_pipeline`."""
    docs = spacy.load(folder).pipe([*consumers.TEXTS, "Bob_sang in Rome"])
    labels = ["ORTH", "TAG", "POS", "MORPH", "LEMMA", "HEAD", "DEP", "SENT_START"]
    return [(doc.to_array(labels).tolist(), doc.tensor.tobytes()) for doc in docs]


@pytest.mark.parametrize("frozen", [pytest.param(False, marks=pytest.mark.slow), True])
# spaCy leaves files that it has written to be closed by the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_new_components_leave_a_trained_pipeline_as_it_is(tmp_path, frozen):
    nlp = trained_pipeline(tmp_path, frozen=frozen)
    expected = predicted(tmp_path / "trained")
    data, config = tmp_path / "data.spacy", tmp_path / "ner.cfg"
    DocBin(docs=[example.reference for example in consumers.examples(nlp)]).to_disk(data)
    options = ["--onto", tmp_path / "trained", "--pipeline", "ner,textcat"]
    assert invoke(config, *options).exit_code == 0
    data_paths = ["--paths.train", data, "--paths.dev", data, "--training.max_steps", 200]
    fast = ["--training.optimizer.learn_rate", 0.01]
    command = ["train", config, *data_paths, *fast, "--output", tmp_path]
    result = CliRunner().invoke(app, list(map(str, command)))
    assert result.exit_code == 0, result.output + repr(result.exception)

    new = spacy.load(tmp_path / "model-last")
    *middle, last = nlp.pipe_names[1:]
    assert new.pipe_names == ["elmo", "ner", *middle, "textcat", last]
    assert predicted(tmp_path / "model-last") == expected
    counted = {name for name, weight in new.config["training"]["score_weights"].items() if weight}
    assert counted == {"ents_f", "cats_score"}
    doc = new("Anna met Bob in Paris . It rained !")
    assert {(ent.text, ent.label_) for ent in doc.ents} >= {("Anna", "PER"), ("Bob", "PER")}
    assert doc.cats["travel"] > 0.5


def test_a_new_senter_comes_before_all_that_could_read_sentences(tmp_path):
    nlp = trained_pipeline(tmp_path)
    nlp.remove_pipe("senter")
    nlp.to_disk(tmp_path / "trained")
    options = ["--onto", tmp_path / "trained", "--pipeline", "textcat,senter,ner"]
    assert invoke(tmp_path / "new.cfg", *options).exit_code == 0
    first, *middle, last = nlp.pipe_names
    expected = [first, "ner", "senter", *middle, "textcat", last]
    assert load_config(tmp_path / "new.cfg")["nlp"]["pipeline"] == expected


@pytest.mark.parametrize(
    "present, new, expected",
    [
        (["elmo", "parser"], ["senter", "ner"], ["elmo", "ner", "senter", "parser"]),
        (["elmo"], ["parser", "ner"], ["elmo", "ner", "parser"]),
        (["elmo", "tagger"], ["parser", "senter"], ["elmo", "senter", "tagger", "parser"]),
    ],
)
def test_new_components_stand_where_they_can_work(present, new, expected):
    nlp = spacy.blank("en")
    for name in present:
        nlp.add_pipe(name)
    assert onto(nlp, "trained", "elmo", new)["nlp"]["pipeline"] == expected


def test_the_command_for_onto_does_not_overwrite_the_trained_pipeline(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("training").mkdir()
    trained_pipeline(Path("training"))
    result = invoke("a.cfg", "--onto", "training/trained", "-p", "ner")
    *_, option, folder = words(result).split()
    assert option == "--output" and not Path(folder).exists()


def test_onto_needs_a_pipeline_with_elmo_and_new_names(tmp_path):
    trained_pipeline(tmp_path)
    spacy.blank("en").to_disk(tmp_path / "blank")
    for arguments, text in [
        ([tmp_path / "trained"], "--onto needs --pipeline NAMES"),
        ([tmp_path / "trained", "-p", "ner", "--lang", "de"], "--onto needs --pipeline NAMES"),
        ([tmp_path / "trained", "-p", "parser"], "'parser' already exists"),
        ([tmp_path / "blank", "-p", "ner"], "no elmo component"),
    ]:
        result = invoke(tmp_path / "a.cfg", "--onto", *arguments)
        assert result.exit_code == 1
        assert text in words(result)
        assert not (tmp_path / "a.cfg").exists()
