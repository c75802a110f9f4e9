"""`evidence.init_tok2vec.v1`: the weights of `spacy pretrain` for the embedding and encoder inside a component.

spaCy's own setting, `[initialize] init_tok2vec`, finds only layers that a model holds under a name, and what the models
of NER and parsing hold as "tok2vec" has a layer more than was pretrained.
"""

from collections.abc import Callable
from pathlib import Path

import srsly
from spacy.language import Language
from spacy.util import registry
from thinc.api import Model


@registry.callbacks("evidence.init_tok2vec.v1")
def init_tok2vec_v1(component: str, path: str) -> Callable[[Language], Language]:
    """Return the callback for `[initialize] after_init`.

    Args:
        component: name of the component with these layers.
        path: file of weights that `spacy pretrain` has written.
    """

    def load(nlp: Language) -> Language:
        weights = Path(path).read_bytes()
        layer_for(weights, nlp.get_pipe(component).model).from_bytes(weights)
        return nlp

    return load


def layer_for(weights: bytes, model: Model) -> Model:
    """Return the layer of a model that has the structure of the saved one.

    Raises:
        ValueError: there is none.
    """
    saved = [node["name"] for node in srsly.msgpack_loads(weights)["nodes"]]
    for layer in model.walk():
        if [node.name for node in layer.walk()] == saved:
            return layer
    raise ValueError(
        f"{model.name!r} has no layer built as {saved[0]!r} is: were the weights made for another config?"
    )
