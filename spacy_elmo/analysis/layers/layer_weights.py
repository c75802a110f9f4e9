"""How much of each layer of a biLM the components of a trained pipeline read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from spacy.language import Language
from thinc.api import Model

from ...pipeline.listening.scalar_mix import LayerChoice, is_mix, weights_of

# The refs of an `ElmoEnhanced`.
_SIDES = ("input", "output")


@dataclass(frozen=True)
class LayerWeights:
    """What one mix makes of the layers."""

    component: str
    """The component that reads it."""
    place: str
    """"input" or "output" of an `ElmoEnhanced`; "1", "2", ... of several mixes that stand elsewhere; else empty."""
    layers: LayerChoice
    """The option of its listener: "mix", which is learnt, "average", "top", or the number of a layer."""
    weights: list[float]
    """Of each layer, 0 being the context-free one. They sum to 1."""
    gamma: float
    """What their sum is multiplied with."""


def layer_weights(nlp: Language) -> list[LayerWeights]:
    """The mix of every `ElmoListener` and `ElmoTok2Vec` of a pipeline, in the order of its components.

    Peters et al. (2018), equation 1 and figure 2.

    Raises:
        ValueError: there is none, or it was not trained.
    """
    found = [
        read
        for name, pipe in nlp.components
        if isinstance(model := getattr(pipe, "model", None), Model)
        for read in _of_component(name, model)
    ]
    if not found:
        names = ", ".join(nlp.component_names) or "none"
        raise ValueError(
            f"No component of the pipeline reads the layers of a biLM (components: {names}). Give a pipeline that was"
            " trained with a spacy-elmo.ElmoListener.v1 or a spacy-elmo.ElmoTok2Vec.v1"
        )
    return found


def _of_component(name: str, model: Model) -> Iterator[LayerWeights]:
    sides = {
        mix.id: side
        for node in model.walk()
        for side in _SIDES
        if (branch := node.maybe_get_ref(side)) is not None
        for mix in _mixes(branch)
    }
    mixes = _mixes(model)
    # An output side is met before an input side: they are shown in the order of the data.
    mixes.sort(key=lambda mix: sides.get(mix.id, ""))
    elsewhere = [mix.id for mix in mixes if mix.id not in sides]
    for mix in mixes:
        place = sides.get(mix.id, "")
        if not place and len(elsewhere) > 1:
            place = str(elsewhere.index(mix.id) + 1)
        weights, gamma = weights_of(mix)
        yield LayerWeights(
            name, place, mix.attrs["options"].layers, [float(w) for w in weights], float(gamma)
        )


def _mixes(model: Model) -> list[Model]:
    return [node for node in model.walk() if is_mix(node)]


def distinct_names(paths: Sequence[str]) -> list[str]:
    """What tells paths apart: each without the folders at its start and at its end that all of them share.

    Nothing for a single path. The paths as they are if one would be left without a name.
    """
    parts = [path.split("/") for path in paths]
    start = _shared(parts)
    end = _shared([path[start:][::-1] for path in parts])
    names = ["/".join(path[start : len(path) - end]) for path in parts]
    return names if all(names) or len(paths) == 1 else list(paths)


def _shared(paths: Sequence[Sequence[str]]) -> int:
    """The number of parts with which all begin."""
    return sum(
        1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*paths, strict=False))
    )
