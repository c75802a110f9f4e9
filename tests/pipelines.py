"""Tiny pipelines with an elmo, and examples to train them on."""

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model, Optimizer

from spacy_elmo.bilm.kernels import native
from tests import tiny

TEXTS = [
    "Anna met Bob in Paris. It rained!",
    "The bank in Rome is old.\n\nShe sat  on it, by the river.",
    "",
    "No",
    "  ",
]
SENTENCES = [
    (["Anna", "met", "Bob", "in", "Paris", "."], ["U-PER", "O", "U-PER", "O", "U-LOC", "O"]),
    (["The", "bank", "in", "Rome", "is", "old", "."], ["O", "O", "O", "U-LOC", "O", "O", "O"]),
    (["It", "rains", ",", "says", "Eve", "."], ["O", "O", "O", "O", "U-PER", "O"]),
]


def blank(weights: Any, **config: Any) -> Language:
    """Make an English pipeline with an elmo."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(weights), **config})
    return nlp


def listener(**options: Any) -> dict[str, Any]:
    """Return the config of a listener."""
    return {"@architectures": "spacy-elmo.ElmoListener.v1", **options}


def add_ner(nlp: Language, name: str = "ner", **options: Any) -> None:
    """Add an NER whose only input is a listener."""
    nlp.add_pipe("ner", name=name, config={"model": {"tok2vec": listener(**options)}})


def add_tagger(nlp: Language, name: str = "tagger", **options: Any) -> None:
    """Add a tagger whose only input is a listener."""
    nlp.add_pipe("tagger", name=name, config={"model": {"tok2vec": listener(**options)}})


def listening(weights: Any, *consumers: str, frozen: bool = False, **options: Any) -> Language:
    """Make a pipeline with an elmo, and taggers (or "ner") of these names that listen to it."""
    nlp = blank(weights, frozen=frozen, **options)
    for name in consumers or ("tagger",):
        (add_ner if name == "ner" else add_tagger)(nlp, name)
    return nlp


def examples(nlp: Language) -> list[Example]:
    """Make examples with entities, and with tags that are the words' lengths."""
    return [
        Example.from_dict(
            Doc(nlp.vocab, words=words),
            {"entities": entities, "tags": [str(len(word)) for word in words]},
        )
        for words, entities in SENTENCES
    ]


def trained(nlp: Language, steps: int = 1, **update: Any) -> Optimizer:
    """Initialize a pipeline and train it as `spacy train` does: all updates, then each component's `finish_update`."""
    optimizer = nlp.initialize(lambda: examples(nlp))
    for _ in range(steps):
        step(nlp, optimizer, **update)
    return optimizer


def step(nlp: Language, optimizer: Optimizer, batch: Any = None, **update: Any) -> dict[str, float]:
    """Take one step of `spacy train`."""
    losses: dict[str, float] = {}
    nlp.update(examples(nlp) if batch is None else batch, sgd=False, losses=losses, **update)
    for name, pipe in nlp.pipeline:
        if hasattr(pipe, "finish_update") and name not in update.get("exclude", []):
            pipe.finish_update(optimizer)
    return losses


def awaken(nlp: Language, *taggers: str) -> None:
    """Give taggers random output weights: spaCy's are zeros at first, so no gradient would reach the layers below."""
    for name in taggers:
        output = nlp.get_pipe(name).model.layers[-1].layers[0]
        shape = output.get_param("W").shape
        output.set_param("W", np.random.default_rng(0).normal(size=shape).astype("f"))


def bilm(nlp: Language, name: str = "elmo") -> Any:
    """Return the network inside a pipeline's elmo."""
    return nlp.get_pipe(name).model.shims[0].bilm


def change(nlp: Language, level: int, amount: float = 1.0) -> None:
    """Change the weights, as a step of training does."""
    with torch.no_grad():
        bilm(nlp).lstm[level].bias += amount


def parameters(nlp: Language, name: str = "elmo") -> dict[str, np.ndarray]:
    """Return copies of all parameters of the biLM."""
    return {n: p.detach().numpy().copy() for n, p in bilm(nlp, name).named_parameters()}


def gradients(nlp: Language) -> dict[str, np.ndarray]:
    """Return the accumulated gradients of the biLM, including those of the present batch."""
    nlp.get_pipe("elmo").source.backward()
    named = bilm(nlp).named_parameters()
    return {name: p.grad.numpy().copy() for name, p in named if p.grad is not None}


def mix_and_output(nlp: Language, name: str) -> tuple[Model, Model]:
    """Return the mix and the output layer of a tagger."""
    model = nlp.get_pipe(name).model
    return mixes(model)[0], model.layers[-1]


def autograd(nlp: Language, batch: list[Example], names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return the gradient of the loss of some taggers, by one graph of torch over all of it."""
    reference = copy.deepcopy(bilm(nlp))
    reference.zero_grad()
    loss = torch.zeros(())
    for name in names:
        mix, softmax = mix_and_output(nlp, name)
        weight, bias = (torch.from_numpy(softmax.layers[0].get_param(p).copy()) for p in "Wb")
        scalars = torch.from_numpy(mix.get_param("scalars").copy())
        scale, labels = mix.get_param("scale").item(), nlp.get_pipe(name).labels
        for example in batch:
            words = [token.text for token in example.reference]
            layers = tiny.forward(reference, [words]).layers
            mixed = (1 + scale) * (torch.softmax(scalars, 0)[:, None, None] * layers).sum(0)
            gold = torch.tensor([labels.index(token.tag_) for token in example.reference])
            loss = loss + torch.nn.functional.cross_entropy(
                mixed @ weight.T + bias, gold, reduction="sum"
            )
    if loss.requires_grad:
        loss.backward()
    return {n: p.grad.numpy() for n, p in reference.named_parameters() if p.grad is not None}


def counted(model: Model, monkeypatch: Any) -> list[int]:
    """Return a list to which each computation of layers by a biLM adds the number of its Docs."""
    computed, forward = [], model._func

    def count(model: Model, docs: list[Doc], is_train: bool) -> Any:
        computed.append(len(docs))
        return forward(model, docs, is_train)

    monkeypatch.setattr(model, "_func", count)
    return computed


def training_layers(nlp: Language, docs: list[Doc]) -> list[np.ndarray]:
    """Return the layers that a listener gets for the Docs of an update."""
    source = nlp.get_pipe("elmo").source
    source.begin(docs)
    return source.layers(docs, True)[0]


def changed(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> set[str]:
    """Return the names of the arrays that differ."""
    return {name for name in before if not np.array_equal(before[name], after[name])}


def mixes(model: Model) -> list[Model]:
    """Return the mixes inside a model."""
    return [node for node in model.walk() if node.name == "elmo-mix"]


def layers(nlp: Language, texts: Iterable[str], **pipe: Any) -> list[np.ndarray]:
    """Return `doc._.elmo_layers` of texts after a pipeline has run on them."""
    return [doc._.elmo_layers for doc in nlp.pipe(texts, **pipe)]


def close(got: np.ndarray, expected: np.ndarray) -> bool:
    """Return True if all differences are within the project's bound.

    It is 1e-5 times the largest magnitude of each layer, or 1e-5 if that is smaller than 1; for float16, 2**-10 times.
    """
    if got.shape != expected.shape or not got.size:
        return got.shape == expected.shape
    axes = (1, 2) if got.ndim == 3 else None
    relative = 2.0**-10 if got.dtype == np.float16 else 1e-5
    bound = relative * np.maximum(1, np.abs(expected).max(axis=axes, keepdims=True))
    return bool((np.abs(got - expected) <= bound).all())


def same(got: np.ndarray, expected: np.ndarray) -> bool:
    """Return True if all bits are equal, as float32 promises on a CPU with kernels. Without kernels, see `close`."""
    if native.processor() is None:
        return close(got, expected)
    return got.shape == expected.shape and got.tobytes() == expected.tobytes()


def assert_close(got: np.ndarray, expected: np.ndarray) -> None:
    """Check that arrays are `close`."""
    assert close(got, expected)


def assert_same(got: np.ndarray, expected: np.ndarray) -> None:
    """Check that arrays have one type and are the `same`."""
    assert got.dtype == expected.dtype and same(got, expected)
