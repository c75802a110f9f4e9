"""Component for programs that expect a pipeline of spaCy's own: noun chunks, spaces, vectors and labels."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from spacy import glossary
from spacy.attrs import DEP, HEAD
from spacy.language import Language
from spacy.tokens import Doc, Span

from .noun_chunks import noun_chunks

# Languages for which our noun chunks replace spaCy's: those of German, English, Persian and Japanese do not read the
# labels of UD, those of Latin run over a verb between the words of a phrase.
_REPLACED = {"de", "en", "fa", "ja", "la"}

# Our label: the label of spaCy's own English pipelines. They have no name for the other labels of UD, and their trees
# differ: the head of "in Berlin" is "in".
CLEARNLP = {
    "acl:relcl": "relcl",
    "aux:pass": "auxpass",
    "cc:preconj": "preconj",
    "compound:prt": "prt",
    "csubj:pass": "csubjpass",
    "det:predet": "predet",
    "discourse": "intj",
    "flat": "compound",
    "iobj": "dative",
    "nmod:poss": "poss",
    "nsubj:outer": "nsubj",
    "nsubj:pass": "nsubjpass",
    "obj": "dobj",
    "obl:agent": "agent",
    "obl:unmarked": "npadvmod",
}
ONTONOTES = {"PER": "PERSON"}

# displaCy draws unknown labels grey. spaCy finds this table by an entry point.
DISPLACY_COLORS = {"MISC": "#c887fb", "PER": "#aa9cfc"}

# Labels of UD that `spacy.explain` does not know.
_EXPLANATIONS = {
    "acl:relcl": "relative clause modifier",
    "advcl:relcl": "relative clause that modifies a clause",
    "aux:pass": "auxiliary (passive)",
    "cc:preconj": "pre-correlative conjunction",
    "compound:prt": "particle of a phrasal verb",
    "csubj:pass": "clausal subject (passive)",
    "det:predet": "predeterminer",
    "nmod:desc": "title or other descriptive noun",
    "nmod:poss": "possessive nominal modifier",
    "nmod:unmarked": "nominal modifier without a preposition",
    "nsubj:outer": "subject of an outer clause",
    "nsubj:pass": "nominal subject (passive)",
    "obl:agent": "agent of a passive verb",
    "obl:unmarked": "oblique nominal without a preposition",
}


class SpacyConventions:
    """The component that `make_spacy_conventions` creates.

    - `doc.noun_chunks` reads trees of Universal Dependencies (UD), unless spaCy's iterator of the language does.
    - Whitespace tokens have the tag `_SP`, the part of speech `SPACE`, no morphology, their own text as lemma, and
      no words as children in the tree.
    - `doc.tensor` is the average of the layers of ELMo. So `vector` of Docs, spans and tokens is an ELMo vector, also
      after `as_doc`, merges and `Doc.from_docs`. `similarity` compares these vectors.
    - Labels can be renamed to those of spaCy's English pipelines (OntoNotes and ClearNLP).
    """

    def __init__(
        self, nlp: Language, name: str, labels: Literal["ud", "spacy"], similarity: bool
    ) -> None:
        self.name = name
        self._rename = labels == "spacy"
        self._similarity = similarity
        _use_noun_chunks(nlp.vocab)
        for label, explanation in _EXPLANATIONS.items():
            glossary.GLOSSARY.setdefault(label, explanation)

    def __call__(self, doc: Doc) -> Doc:
        """Change a Doc in place, and return it."""
        # Not always the vocabulary of `nlp`: another pipeline can have sourced this component.
        _use_noun_chunks(doc.vocab)
        if spaces := [token for token in doc if token.is_space]:
            annotate_spaces(doc, spaces)
            if doc.has_annotation("DEP"):
                _detach_spaces(doc)
        if self._rename:
            _rename_labels(doc)
        self._set_vectors(doc)
        return doc

    def _set_vectors(self, doc: Doc) -> None:
        average = doc._.elmo if Doc.has_extension("elmo") else None
        if average is None:
            return
        doc.tensor = average
        if not len(doc):
            # spaCy's vector of an empty Doc has the width of the table of static vectors, which is empty.
            doc.vector = average.sum(axis=0)
        if self._similarity:
            for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
                hooks["similarity"] = _similarity


def _use_noun_chunks(vocab: Any) -> None:  # the stub of spaCy has a wrong type
    present = vocab.get_noun_chunks
    is_spacys = present is not None and present.__module__.startswith("spacy.lang.")
    if present is None or (is_spacys and vocab.lang in _REPLACED):
        vocab.get_noun_chunks = noun_chunks


def _similarity(one: Any, other: Any) -> float:
    """Return the cosine of two vectors; 0 if one of them is zero or empty."""
    norms = one.vector_norm * other.vector_norm
    return float(one.vector @ other.vector / norms) if norms else 0.0


def annotate_spaces(doc: Doc, spaces: list[Any]) -> None:
    """Annotate whitespace tokens as spaCy does, in each layer that the Doc has."""
    annotated = {name for name in ("TAG", "POS", "MORPH", "LEMMA") if doc.has_annotation(name)}
    for token in spaces:
        if "TAG" in annotated:
            token.tag_ = "_SP"
        if "POS" in annotated:
            token.pos_ = "SPACE"
        if "MORPH" in annotated:
            token.set_morph("")
        if "LEMMA" in annotated:
            token.lemma_ = token.text


def _detach_spaces(doc: Doc) -> None:
    """Give the children of whitespace tokens to the heads of these tokens. A whitespace token then depends on the word
    before it; on the first word if it begins the sentence. A sentence of whitespace joins the sentence before it."""
    heads = [token.head.i for token in doc]
    root, dep = doc.vocab.strings["ROOT"], doc.vocab.strings.add("dep")
    labels = [token.dep for token in doc]
    before = -1
    for sentence in doc.sents:
        words = [token.i for token in sentence if not token.is_space]
        if words:
            before = words[0]
        elif before < 0:
            continue
        for index in words:
            while doc[heads[index]].is_space and heads[heads[index]] != heads[index]:
                heads[index] = heads[heads[index]]
        orphans = [index for index in words if doc[heads[index]].is_space]
        for index in orphans:
            # The root was a space. Its first child becomes the root, and the others depend on it.
            heads[index] = orphans[0]
        if orphans:
            labels[orphans[0]] = root
        for token in sentence:
            if token.is_space:
                heads[token.i], labels[token.i] = before, dep
            else:
                before = token.i
    relative = np.asarray(heads, dtype="int64") - np.arange(len(doc))
    columns: Any = np.stack([relative.astype("uint64"), np.asarray(labels, dtype="uint64")], axis=1)
    doc.from_array([HEAD, DEP], columns)


def _rename_labels(doc: Doc) -> None:
    for token in doc:
        token.dep_ = CLEARNLP.get(token.dep_, token.dep_)
    ents = [
        Span(
            doc,
            ent.start,
            ent.end,
            ONTONOTES.get(ent.label_, ent.label_),
            kb_id=ent.kb_id,
            span_id=ent.id,
        )
        for ent in doc.ents
    ]
    doc.set_ents(ents, default="unmodified")
