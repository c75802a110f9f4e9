"""Backend of the web page `explore`. It answers the requests of the page with JSON objects."""

from __future__ import annotations

import functools
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias, get_args

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Token
from thinc.api import to_numpy

from ...bilm.weights import Weights
from ...pipeline.encode.encoder import shim_of
from ...weight_names import find_weights
from ..contexts import nearest, project
from ..embed import embed
from ..language_model import Context, LanguageModel
from ..normalize import normalize
from ..pipelines import elmo_and_later, find_elmo, is_weights, load_pipeline, vector_settings
from .page import word_view
from .word_index import WordIndex, is_embedded

Answer: TypeAlias = dict[str, Any]

MAX_CHARACTERS = 1_000
"""Largest number of characters of a sentence."""
MAX_SENTENCES = 2
_NEIGHBORS = 8
_SUBSTITUTES = 6
_SPELLINGS = 12
_RECENT_DOCS = 32
_DIGITS = 3


class Explorer:
    """Backend of the web page `explore`. The results of its methods are JSON objects for the page.

    Args:
        nlp: the pipeline that has computed the vectors in `index`, which ends with elmo.
        index: the occurrences of each word in a corpus, with their vectors.
        language_model: the biLM with its softmax head. None: the page shows no surprise and no substitutes.
        name: name of the weights or of the pipeline, which the page shows.
    """

    def __init__(
        self,
        nlp: Language,
        index: WordIndex,
        language_model: LanguageModel | None,
        *,
        name: str,
    ) -> None:
        self._index = index
        self._language_model = language_model
        self._name = name
        # Keep recent Docs: a click on a word asks about a sentence that the page already shows.
        self._doc = functools.lru_cache(_RECENT_DOCS)(nlp)

    @classmethod
    def load(cls, source: str, corpus: str | Path) -> Explorer:
        """Load a pipeline or weights, and a corpus: a folder that `embed` has written with them, or a text (file,
        folder or glob pattern), whose vectors are computed first. A pipeline has no softmax, so no language model."""
        index = WordIndex(corpus) if is_embedded(corpus) else None
        # The file is read once, for elmo and for the language model.
        loaded = Weights.load(find_weights(source)) if is_weights(source) else None
        nlp = load_pipeline(source, lang=index.pipeline["lang"] if index and loaded else None)
        nlp.select_pipes(disable=elmo_and_later(nlp)[1:])
        if loaded is not None:
            shim_of(find_elmo(nlp)[1].model).set_weights(loaded.without_head())
        language_model = LanguageModel(loaded) if loaded and loaded.has_head else None
        if index is None:
            with tempfile.TemporaryDirectory(prefix="spacy-elmo-") as folder:
                embed(nlp, corpus, folder, dtype="float16")
                index = WordIndex(folder)
        if index.pipeline != vector_settings(nlp):
            raise ValueError(
                f"The vectors in {corpus} were computed with other weights than {source}, or with other options of"
                " elmo. Compute them again with `spacy elmo embed`"
            )
        return cls(nlp, index, language_model, name=Path(source).name)

    def overview(self) -> Answer:
        """Return what the page shows first, such as the name of the weights and the size of the corpus."""
        return {
            "weights": self._name,
            "tokens": self._index.tokens,
            "sentences": self._index.sentences,
            "layers": len(self._index.center),
            "language_model": self._language_model is not None,
            "max_characters": MAX_CHARACTERS,
        }

    def answer_sentences(self, texts: Sequence[str]) -> Answer:
        """Return the tokens of one or two sentences. With a language model, each token has its surprise in
        bits: -log2 of its probability after the words before it, and before the words after it. A word outside
        the vocabulary is `unknown` and has none.
        """
        return {"sentences": [self._tokens(doc) for doc in self._docs(texts)]}

    def answer_word(self, texts: Sequence[str], sentence: int, token: int) -> Answer:
        """Return what the page shows about a token, given the indices of its sentence in `texts` and of the token:
        the occurrences of the word in the corpus, those nearest to the token, their map in each layer, words with a
        similar spelling, words that could replace the token, and its cosines with all tokens of the sentences."""
        docs = self._docs(texts)
        if not 0 <= sentence < len(docs) or not 0 <= token < len(docs[sentence]):
            raise ValueError(f"Sentence {sentence} has no token {token}")
        word = docs[sentence][token]
        if word.is_space:
            raise ValueError(f"Token {token} of sentence {sentence} is whitespace")
        uses = self._index.find(word.text)
        view = None
        if uses is not None:
            query = self._index.query(word, uses)
            neighbors = nearest(query, uses, _NEIGHBORS)
            view = word_view(uses, query, neighbors, project(uses, query))
        return {
            "word": word.text,
            "count": self._index.count(word.text),
            "uses": view,
            "spellings": [
                {
                    "word": near.word,
                    "count": near.occurrences,
                    "cosine": round(float(near.cosine), _DIGITS),
                }
                for near in self._index.similar_spellings(word, _SPELLINGS)
            ],
            "substitutes": self._substitutes(word),
            "likeness": [self._cosines(word, doc) for doc in docs],
        }

    def _docs(self, texts: Sequence[str]) -> list[Doc]:
        if not 1 <= len(texts) <= MAX_SENTENCES:
            raise ValueError(f"Expected 1 to {MAX_SENTENCES} sentences, but got {len(texts)}")
        for text in texts:
            if len(text) > MAX_CHARACTERS:
                raise ValueError(
                    f"The sentence has {len(text):,} characters. The limit is {MAX_CHARACTERS:,}"
                )
            if not text.strip():
                raise ValueError("The sentence is empty. Write a few words")
        return [self._doc(text) for text in texts]

    def _tokens(self, doc: Doc) -> list[Answer]:
        tokens = [
            {
                "text": token.text,
                "space": bool(token.whitespace_),
                "blank": token.is_space,
                "count": self._index.count(token.text),
            }
            for token in doc
        ]
        if self._language_model is not None:
            scores = self._language_model.score(doc)
            for i, token in enumerate(tokens):
                # The model only knows the probability of all unknown words together.
                token["unknown"] = bool(scores.unknown[i])
                if not token["blank"] and not token["unknown"]:
                    token["surprise"] = {
                        "before": _bits(scores.forward[i]),
                        "after": _bits(scores.backward[i]),
                    }
        return tokens

    def _substitutes(self, token: Token) -> Answer | None:
        if self._language_model is None:
            return None
        return {
            context: [
                {"word": word, "probability": math.exp(log_probability)}
                for word, log_probability in self._language_model.substitutes(
                    token, _SUBSTITUTES, context
                )
            ]
            for context in get_args(Context)
        }

    def _cosines(self, word: Token, doc: Doc) -> list[list[float]]:
        """Return the cosine of the token `word` with each token of a Doc, as one list for each layer."""
        vectors = normalize(to_numpy(doc._.elmo_layers) - self._index.center)
        queries = to_numpy(word.doc._.elmo_layers)[:, word.i : word.i + 1]
        cosines = np.einsum("lnw,lw->ln", vectors, normalize(queries - self._index.center)[:, 0])
        return cosines.astype("float64").round(_DIGITS).tolist()


def _bits(log_probability: float) -> float:
    """Convert a natural log-probability to the surprise in bits, -log2(probability)."""
    return round(float(-log_probability) / math.log(2), 2)
