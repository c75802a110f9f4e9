"""The factories of the components for packaged pipelines. spaCy loads this module through entry points."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from spacy.language import Language
from spacy.pipeline.edit_tree_lemmatizer import DEFAULT_EDIT_TREE_LEMMATIZER_MODEL
from spacy.pipeline.morphologizer import DEFAULT_MORPH_MODEL
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

if TYPE_CHECKING:
    from .biaffine_parser import BiaffineParser
    from .conventions import SpacyConventions
    from .lemmatizer import NormalizingLemmatizer
    from .morphologizer import LexiconMorphologizer


@Language.factory(
    "biaffine_parser",
    assigns=["token.dep", "token.head"],
    requires=["doc.sents"],
    default_config={
        "model": {
            "@architectures": "spacy-elmo.BiaffineParser.v1",
            "tok2vec": DEFAULT_MORPH_MODEL["tok2vec"],
        },
        "label_smoothing": 0.0,
        "scorer": {"@scorers": "spacy.parser_scorer.v1"},
    },
    default_score_weights={"dep_uas": 0.5, "dep_las": 0.5, "dep_las_per_type": None},
)
def make_biaffine_parser(
    nlp: Language,
    name: str,
    model: Model,
    label_smoothing: float,
    scorer: Callable[..., Any] | None,
) -> "BiaffineParser":
    """Create a `BiaffineParser`."""
    # Imported here, because spaCy imports this module whenever it starts, and these modules take time.
    from .biaffine_parser import BiaffineParser

    return BiaffineParser(nlp.vocab, model, name, label_smoothing=label_smoothing, scorer=scorer)


@Language.factory(
    "normalizing_lemmatizer",
    assigns=["token.lemma"],
    default_config={
        "model": DEFAULT_EDIT_TREE_LEMMATIZER_MODEL,
        "backoff": "orth",
        "min_tree_freq": 3,
        "overwrite": False,
        "top_k": 1,
        "upstream": None,
        "scorer": {"@scorers": "spacy.lemmatizer_scorer.v1"},
    },
    default_score_weights={"lemma_acc": 1.0},
)
def make_normalizing_lemmatizer(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[Floats2d]],
    backoff: str | None,
    min_tree_freq: int,
    overwrite: bool,
    top_k: int,
    upstream: str | None,
    scorer: Callable[..., Any] | None,
) -> "NormalizingLemmatizer":
    """Create a `NormalizingLemmatizer`. All options but `upstream` are those of spaCy's `trainable_lemmatizer`."""
    from .lemmatizer import NormalizingLemmatizer

    return NormalizingLemmatizer(
        nlp.vocab,
        model,
        name,
        backoff=backoff,
        min_tree_freq=min_tree_freq,
        overwrite=overwrite,
        top_k=top_k,
        upstream=upstream,
        scorer=scorer,
    )


@Language.factory(
    "lexicon_morphologizer",
    assigns=["token.morph", "token.pos"],
    default_config={
        "model": DEFAULT_MORPH_MODEL,
        "overwrite": True,
        "extend": False,
        "scorer": {"@scorers": "spacy.morphologizer_scorer.v1"},
        "label_smoothing": 0.0,
    },
    default_score_weights={"pos_acc": 0.5, "morph_acc": 0.5, "morph_per_feat": None},
)
def make_lexicon_morphologizer(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[Floats2d]],
    overwrite: bool,
    extend: bool,
    scorer: Callable[..., Any] | None,
    label_smoothing: float,
) -> "LexiconMorphologizer":
    """Create a `LexiconMorphologizer`. The options are those of spaCy's `morphologizer`."""
    from .morphologizer import LexiconMorphologizer

    return LexiconMorphologizer(
        nlp.vocab,
        model,
        name,
        overwrite=overwrite,
        extend=extend,
        scorer=scorer,
        label_smoothing=label_smoothing,
    )


@Language.factory(
    "spacy_conventions",
    assigns=["doc.tensor"],
    default_config={"labels": "ud", "similarity": True},
)
def make_spacy_conventions(
    nlp: Language, name: str, labels: Literal["ud", "spacy"], similarity: bool
) -> "SpacyConventions":
    """Create the component that makes a pipeline behave like spaCy's own. See `SpacyConventions`."""
    from .conventions import SpacyConventions

    return SpacyConventions(nlp, name, labels, similarity)
