"""`evidence.init_tok2vec.v1`: a callback that loads weights of `spacy pretrain` into the embedding and encoder of a
component.

spaCy's own setting, `[initialize] init_tok2vec`, only finds layers that are named references of a model. In the models
of NER and parsing, the reference "tok2vec" has one layer more than was pretrained.
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
        component: name of the component with the embedding and encoder.
        path: file of weights from `spacy pretrain`.
    """

    def load(nlp: Language) -> Language:
        weights = Path(path).read_bytes()
        layer_for(weights, nlp.get_pipe(component).model).from_bytes(weights)
        return nlp

    return load


def layer_for(weights: bytes, model: Model) -> Model:
    """Return the layer of a model that has the structure of the saved layer.

    Raises:
        ValueError: there is no such layer.
    """
    saved = [node["name"] for node in srsly.msgpack_loads(weights)["nodes"]]
    for layer in model.walk():
        if [node.name for node in layer.walk()] == saved:
            return layer
    raise ValueError(
        f"{model.name!r} has no layer with the structure of the saved layer {saved[0]!r}: pretrain with this config"
    )
