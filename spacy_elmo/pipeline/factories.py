"""The factory of the component `elmo`. spaCy loads this module through entry points."""

from typing import TYPE_CHECKING

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats3d

from ..bilm.config import Precision
from ..weight_names import AUTO, default_weights
from .factory_options import (
    ElmoOptions,
    SpanGetter,
    Start,
    Store,
    StoredDType,
    default_options,
)

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
def make_elmo(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[Floats3d]],
    weights: str | None,
    frozen: bool,
    lr_scale: float,
    get_spans: SpanGetter | None,
    dtype: StoredDType,
    start: Start,
    precision: Precision,
    store: Store,
    cache_mb: float,
) -> "Elmo":
    """Create the component that computes the layers of a biLM and stores them on Docs, for the attributes `_.elmo` and
    `_.elmo_layers`. The weights are loaded at their first use.

    Args:
        model: the biLM, a `spacy-elmo.BiLM.v1`.
    """
    # Imported here, because spaCy imports this module whenever it starts, and these modules take time.
    from .component import Elmo, PipelineRef

    is_auto = weights == AUTO
    options = ElmoOptions(
        weights=default_weights(nlp.vocab.lang) if is_auto else weights,
        frozen=frozen,
        lr_scale=lr_scale,
        get_spans=get_spans,
        dtype=dtype,
        start=start,
        precision=precision,
        store=store,
        cache_mb=cache_mb,
    )
    return Elmo(nlp.vocab, model, name, options=options, pipeline=PipelineRef(nlp), is_auto=is_auto)
