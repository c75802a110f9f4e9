"""Whatever is done to pipelines that share components: a consumer sees the layers that the biLM of its pipeline
computes now, and the biLM gets the gradient that torch computes through one graph."""

import copy
import pickle
import warnings

import pytest
import spacy
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from numpy.testing import assert_allclose
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam

from spacy_elmo.bilm.weights import Weights
from tests import pipelines, tiny

WORDS = ["He", "left", "New", "York", "for", "a", "counterrevolutionary", "meeting", "."]
TAGGERS = ("one", "two")
PIPELINES = st.integers(0, 5)  # modulo the number of pipelines


def fresh_layers(nlp, docs):
    """Return the layers by the present weights, computed without any stored layers."""
    docs = [Doc(doc.vocab, words=[token.text for token in doc]) for doc in docs]
    return nlp.get_pipe("elmo").model.predict(docs)


def assert_sees(nlp, name, docs):
    mix, output = pipelines.mix_and_output(nlp, name)
    expected = output.predict(mix.predict(fresh_layers(nlp, docs)))
    for got, scores in zip(nlp.get_pipe(name).model.predict(docs), expected, strict=True):
        assert_allclose(got, scores, atol=1e-5)


class Machine(RuleBasedStateMachine):
    """Pipelines with an elmo and two taggers that listen to it."""

    weights = None
    """Two weights files."""

    def __init__(self):
        super().__init__()
        self.alive = []

    def taggers_of(self, nlp):
        """Return the taggers that see the layers of the pipeline's biLM: all, unless elmo is disabled, and a Doc
        without layers could also belong to another pipeline, with the same vocabulary."""
        unknown = any(other.vocab is nlp.vocab for other in self.alive if other is not nlp)
        names = nlp.component_names if "elmo" in nlp.pipe_names or not unknown else []
        return sorted(set(names) & set(TAGGERS))

    @initialize(frozen=st.booleans())
    def start(self, frozen):
        nlp = pipelines.listening(self.weights[0], *TAGGERS, frozen=frozen)
        nlp.initialize(lambda: pipelines.examples(nlp))
        pipelines.awaken(nlp, *TAGGERS)
        self.alive.append(nlp)

    @rule(
        source=PIPELINES,
        frozen=st.booleans(),
        names=st.sets(st.sampled_from(TAGGERS), min_size=1),
        shares_vocab=st.booleans(),
    )
    def borrow(self, source, frozen, names, shares_vocab):
        """Make another pipeline with another biLM, which shares taggers with the first."""
        source = self.alive[source % len(self.alive)]
        if len(self.alive) > 3:
            return
        nlp = spacy.blank("en", vocab=source.vocab if shares_vocab else True)
        nlp.add_pipe("elmo", config={"weights": str(self.weights[1]), "frozen": frozen})
        for name in sorted(names & set(source.component_names)):
            nlp.add_pipe(name, source=source)
        self.alive.append(nlp)

    @rule(nlp=PIPELINES)
    def delete(self, nlp):
        if len(self.alive) > 1:
            self.alive.pop(nlp % len(self.alive))

    @rule(
        nlp=PIPELINES,
        way=st.sampled_from([
            copy.deepcopy,
            lambda nlp: pickle.loads(pickle.dumps(nlp)),
            lambda nlp: spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes()),
        ]),
    )  # fmt: skip
    def duplicate(self, nlp, way):
        if len(self.alive) <= 3:
            self.alive.append(way(self.alive[nlp % len(self.alive)]))

    @rule(
        nlp=PIPELINES,
        excluded=st.sets(st.sampled_from(["elmo", *TAGGERS]), max_size=2),
        annotates=st.booleans(),
        finish=st.booleans(),
    )
    def update(self, nlp, excluded, annotates, finish):
        nlp = self.alive[nlp % len(self.alive)]
        pipelines.gradients(nlp)
        pipelines.bilm(nlp).zero_grad()
        batch = pipelines.examples(nlp)
        learning = [n for n in nlp.pipe_names if n in TAGGERS and n not in excluded]
        trains = (
            "elmo" in nlp.pipe_names
            and "elmo" not in excluded
            and not nlp.config["components"]["elmo"]["frozen"]
        )
        expected = pipelines.autograd(nlp, batch, learning) if trains and learning else {}
        nlp.update(batch, sgd=False, exclude=excluded, annotates=["elmo"] if annotates else [])
        found = pipelines.gradients(nlp)
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            assert_allclose(found[name], gradient, atol=2e-5, err_msg=name)
        if finish:
            for _, pipe in nlp.pipeline:
                pipe.finish_update(Adam(0.01))

    @rule(nlp=PIPELINES)
    def rehearse(self, nlp):
        nlp = self.alive[nlp % len(self.alive)]
        batch = [Example.from_dict(Doc(nlp.vocab, words=WORDS), {})]
        for _ in range(2):
            nlp.rehearse(batch, sgd=Adam(0.001))
        if any(other.vocab is nlp.vocab for other in self.alive if other is not nlp):
            return  # the Docs do not tell their pipeline
        for name in self.taggers_of(nlp):
            assert_sees(nlp, name, [batch[0].predicted])

    @rule(nlp=PIPELINES, name=st.sampled_from(["elmo", *TAGGERS]))
    def switch(self, nlp, name):
        nlp = self.alive[nlp % len(self.alive)]
        if name in nlp.disabled:
            nlp.enable_pipe(name)
        elif name in nlp.component_names:
            nlp.disable_pipe(name)

    @rule(nlp=PIPELINES, level=st.integers(0, 1))
    def change_weights(self, nlp, level):
        nlp = self.alive[nlp % len(self.alive)]
        pipelines.change(nlp, level, 0.1)

    @rule(nlp=PIPELINES)
    def merge_and_split(self, nlp):
        """The number of tokens stays, but the tokens change."""
        nlp = self.alive[nlp % len(self.alive)]
        doc = nlp(Doc(nlp.vocab, words=WORDS))
        with doc.retokenize() as retokenizer:
            retokenizer.merge(doc[2:4])
            halves = ["counterrevol", "utionary"]
            retokenizer.split(doc[6], halves, heads=[(doc[6], 1), (doc[6], 1)])
        assert len(doc) == len(WORDS)
        if "elmo" in nlp.pipe_names:
            with pytest.raises(ValueError, match="retokenized"):
                doc._.elmo  # noqa: B018
        for name in self.taggers_of(nlp):
            assert_sees(nlp, name, [doc])

    @invariant()
    def consumers_see_the_present_layers(self):
        for nlp in self.alive:
            docs = [nlp(Doc(nlp.vocab, words=words)) for words in (WORDS, [], ["No", " ", "!"])]
            if "elmo" in nlp.pipe_names:
                for doc, layers in zip(docs, fresh_layers(nlp, docs), strict=True):
                    pipelines.assert_same(doc._.elmo_layers, layers)
            for name in self.taggers_of(nlp):
                assert_sees(nlp, name, docs)


def test_pipelines_and_listeners(weights, tmp_path):
    other = tmp_path / "other.safetensors"
    Weights.from_bilm(tiny.bilm(tiny.config(), seed=7), card={"language": "en"}).save(other)
    Machine.weights = weights, other
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=20,
                stateful_step_count=12,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
