"""The `elmo` factory: what spaCy knows of the component before one is made."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats3d

from ..bilm.matmul_precision import Precision
from .options import KEEPING, READING, DType, Start, Store

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
        **READING,
        **KEEPING,
        "model": {"@architectures": "spacy-elmo.BiLM.v1"},
    },
)
def make_elmo(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[Floats3d]],
    weights: str | None,
    frozen: bool,
    trainable: str,
    unfreeze_at: int,
    max_batch_tokens: int,
    get_spans: Callable | None,
    dtype: DType,
    start: Start,
    precision: Precision,
    store: Store,
    cache_mb: float,
    cache_dir: str | None,
    hooks: bool,
    set_extra_annotations: Callable[[list[Doc], list[Floats3d]], None] | None,
) -> "Elmo":
    """Make the component. Reads no file: the weights are loaded at their first use.

    Args:
        model: a `spacy-elmo.BiLM.v1`.
        weights: name of a bundled biLM, or path of a weights file; null: random, drawn by `nlp.initialize`.
        frozen: leave the biLM as it is.
        trainable: what is trained otherwise: "all", "lstm" (without the token encoder) or "top" (the last LSTM layer).
        unfreeze_at: the first step of the optimizer, counted from 0, that trains it. Until then it costs what a
            frozen one does. Every run of training counts anew, a run that goes on with a saved pipeline too.
        max_batch_tokens: words that the biLM reads at once. No vector depends on it: a longer span is read piece by
            piece, unless the biLM is being trained.
        get_spans: what it reads as sequences of their own; null: sentences, by a rule that reads no annotation.
        dtype: of the layers, "float32" or "float16", which takes half the memory. Listeners see what is rounded to
            it, in training too, and compute in float32; `_.elmo` is float32 in any case.
        start: what the biLM starts from in every sequence: "zero", or "warm", a mean state that `spacy elmo convert
            --warm` has put into the weights file, for a biLM that was trained with its state carried on.
        precision: of the LSTM's products when it reads without being trained: "float32", "bfloat16", on a CPU also
            "int8", on a GPU "float16". A frozen biLM is read so in training too. What each costs stands in the
            README; its matrices are kept beside the weights.
        store: what stays on Docs: "layers", or "average", which is `_.elmo` alone, and nothing can listen to it.
        cache_mb: memory for the layers of training Docs, which a frozen biLM then computes in the first epoch alone.
        cache_dir: a folder that keeps them too, for what memory cannot hold, and for other runs with the same weights.
            It grows with every new Doc and is never emptied; several processes may share it.
        hooks: let `doc.vector`, `span.similarity(...)` and their like come from the ELMo vectors; see `set_hooks`.
        set_extra_annotations: called with Docs and their layers, a list of each, once the layers are on the Docs.
    """
    # Not at the top, because spaCy imports this module at its every start.
    from .component import Elmo
    from .home import Home
    from .keeping.cache import LayerCache
    from .reading.encoder import configure

    configure(
        model,
        weights=weights,
        frozen=frozen,
        trainable=trainable,
        unfreeze_at=unfreeze_at,
        max_batch_tokens=max_batch_tokens,
        get_spans=get_spans,
        dtype=dtype,
        start=start,
        precision=precision,
        lang=nlp.lang,
    )
    return Elmo(
        nlp.vocab,
        model,
        name,
        store=store,
        home=Home(nlp),
        cache=LayerCache(cache_mb, cache_dir),
        hooks=hooks,
        set_extra_annotations=set_extra_annotations,
    )
