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
    """Create a dependency parser that scores all arcs of a sentence and takes the best tree (Dozat and Manning 2017,
    "Deep Biaffine Attention for Neural Dependency Parsing"). Trees have one root, and arcs may cross.

    It reads the sentences of `doc.sents`, which another component before it must set, for example `senter`; a Doc
    without sentences is an error. In training, it reads the sentences of the training data. Words without a head in the
    training data do not count. Whitespace depends on the word before it.

    Args:
        model: the network.
        label_smoothing: share of the probability of the gold head and of the gold label that the loss gives to all
            heads and labels alike.
        scorer: the scoring method.
    """
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
    """Create spaCy's `trainable_lemmatizer` with edit trees for normalized words. All options but `upstream` are those
    of `trainable_lemmatizer`.

    A tree lowercases the word if the lemma has no capital letters, so "Books", "Cats" and "books" have one label. Of
    the `top_k` most probable trees, the component takes the first that makes a lemma of the training data. If there is
    none, it takes the first that applies to the word. Words that a component before it tagged as proper nouns (`PROPN`)
    keep their case if one of these trees keeps it and the word is not in capitals.

    Args:
        upstream: name of the `elmo` component. Words are converted to the spelling of its biLM, for example Latin `v`
            to `u`. null: words keep their spelling. Use null if your lemmas have letters that this spelling replaces.
    """
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
    """Create a `morphologizer` for small treebanks, which chooses among the analyses in another way than spaCy's. The
    options are the same.

    An analysis is a part of speech with features. The component takes the one with the highest product of its
    probability and the probability of its part of speech. If the word has the analysis in the training data, in the
    same spelling, the product counts ten times as much.
    """
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
    """Create the last component of a packaged pipeline. It makes the pipeline behave as programs for spaCy expect
    (docs/programs.md).

    Args:
        labels: "spacy" renames labels to those of spaCy's English pipelines: `obj` to `dobj`, `PER` to `PERSON`.
        similarity: `similarity` compares vectors only. false: spaCy's own, which is 1.0 for two tokens with the same
            text. `Doc.to_bytes` warns (W109) that it cannot save this.
    """
    from .conventions import SpacyConventions

    return SpacyConventions(nlp, name, labels, similarity)
