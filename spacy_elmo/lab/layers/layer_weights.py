"""Layer weights that the components of a trained pipeline have learned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from spacy.language import Language
from thinc.api import Model

from ...pipeline.listen.scalar_mix import LayerChoice, is_mix, weights_of

# Refs of an `ElmoEnhanced`, which has a mix on each side.
_SIDES = ("input", "output")


@dataclass(frozen=True)
class LayerWeights:
    """Layer weights of one scalar mix (learned weighted average of the layers) of a component."""

    component: str
    """Name of the component that contains the scalar mix."""
    place: str
    """Position of the scalar mix in the component: "input" or "output" if the mix belongs to an
    `ElmoEnhanced`; "1", "2", ... if the component has several other mixes; otherwise empty."""
    layers: LayerChoice
    """Option `layers` of the listener: "mix" (learned weights), "average", "top", or the number of a layer."""
    weights: list[float]
    """Weight of each layer, starting with the context-free layer 0. The weights sum to 1."""
    gamma: float
    """Factor that scales the weighted sum."""


def layer_weights(nlp: Language) -> list[LayerWeights]:
    """Return the layer weights of all `ElmoListener` and `ElmoTok2Vec` layers, in the order of the components.

    See equation 1 and figure 2 of Peters et al. (2018).

    Raises:
        ValueError: the pipeline has no listener, or was not trained.
    """
    mixes = [
        mix
        for name, pipe in nlp.components
        if isinstance(model := getattr(pipe, "model", None), Model)
        for mix in _component_weights(name, model)
    ]
    if not mixes:
        names = ", ".join(nlp.component_names) or "none"
        raise ValueError(
            f"No component of the pipeline uses the layers of a biLM (components: {names}). Use a pipeline that was"
            " trained with spacy-elmo.ElmoListener.v1 or spacy-elmo.ElmoTok2Vec.v1"
        )
    return mixes


def _component_weights(name: str, model: Model) -> Iterator[LayerWeights]:
    sides = {
        mix.id: side
        for node in model.walk()
        for side in _SIDES
        if (branch := node.maybe_get_ref(side)) is not None
        for mix in _mixes(branch)
    }
    mixes = _mixes(model)
    # `walk` yields the output before the input. Sort the mixes in the order of the data.
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
    """Shorten paths to distinct names: remove the folders that all paths share at their start or end.

    The name of a single path is empty. If one of several names would be empty, the paths are not shortened.
    """
    parts = [path.split("/") for path in paths]
    start = _shared_length(parts)
    end = _shared_length([path[start:][::-1] for path in parts])
    names = ["/".join(path[start : len(path) - end]) for path in parts]
    return names if all(names) or len(paths) == 1 else list(paths)


def _shared_length(paths: Sequence[Sequence[str]]) -> int:
    """Return how many parts at the start are the same in all paths."""
    return sum(
        1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*paths, strict=False))
    )
