"""The factory of the `elmo` component. spaCy loads this module through an entry point.

The options of the component are the fields of `ElmoOptions` in `factory_options.py`.
"""

import dataclasses
from typing import TYPE_CHECKING

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats3d

from ..catalogue.weight_names import AUTO, default_weights
from .factory_options import ElmoOptions, default_options, flatten_options

if TYPE_CHECKING:
    from .component import Elmo


@Language.factory(
    "elmo",
    assigns=[
        f"{thing}._.{name}"
        for thing in ("doc", "span", "token")
        for name in ("elmo", "elmo_layers")
    ],
    default_config={
        **default_options(ElmoOptions),
        "model": {"@architectures": "spacy-elmo.BiLM.v1"},
    },
)
@flatten_options
def make_elmo(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[Floats3d]],
    options: ElmoOptions,
) -> "Elmo":
    """Create the `elmo` component. The weights are loaded later, at their first use.

    Args:
        nlp: the pipeline.
        name: name of the component in the pipeline.
        model: a `spacy-elmo.BiLM.v1`.
        options: the options of the component. Every field is an option of the config.

    Raises:
        ValueError: an option has an impossible value; or `weights` is "auto", but no biLM of the pipeline's
            language is installed.
    """
    # Imported here, because spaCy imports this module whenever it starts, and these modules take time.
    from .component import Elmo
    from .encode.encoder import configure
    from .pipeline_ref import PipelineRef

    if options.weights == AUTO:
        options = dataclasses.replace(options, weights=default_weights(nlp.lang))
    configure(model, options, lang=nlp.lang)
    return Elmo(nlp.vocab, model, name, options=options, pipeline=PipelineRef(nlp))
