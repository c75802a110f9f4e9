"""The shipped config of a treebank: it learns, trains what it should, and can be saved, as those of one component."""

import pytest
from thinc.api import Adam

from tests import consumers
from tests.consumers import LISTENER
from tests.pipeline import test_consumers
from tests.pipeline.test_consumers import mixes, step


def test_overfits_and_survives_saving(weights, tmp_path):
    test_consumers.test_overfits_and_survives_saving(weights, tmp_path, "treebank")


@pytest.mark.parametrize("frozen", [True, False])
def test_trains_what_it_should(weights, tmp_path, frozen):
    test_consumers.test_trains_what_it_should(weights, tmp_path, "treebank", frozen)


@pytest.mark.parametrize("upstream", ["elmo", "*"])
def test_several_consumers_of_one_elmo(weights, tmp_path, upstream):
    """By name and by "*": one reading of the text, a mix for each, and the same for either way of naming it."""
    config = consumers.config("treebank", weights, tmp_path)
    for block in consumers.blocks(config["components"]):
        if block.get("@architectures") == LISTENER:
            block["upstream"] = upstream
    nlp = consumers.pipeline(config)
    listening = ["tok2vec", "tagger", "morphologizer", "lemmatizer", "senter", "parser"]
    assert nlp.get_pipe("elmo").listening_components == listening
    nlp.initialize(lambda: consumers.examples(nlp))
    optimizer = Adam(0.01)
    for _ in range(3):
        step(nlp, optimizer)
    scalars = [tuple(mix.get_param("scalars")) for mix in mixes(nlp).values()]
    assert len(set(scalars)) == len(listening)
