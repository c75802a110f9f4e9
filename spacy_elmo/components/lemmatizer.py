"""A trainable lemmatizer whose edit trees apply to normalized words."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from spacy.language import Language
from spacy.pipeline._edit_tree_internals.edit_trees import EditTrees
from spacy.pipeline.edit_tree_lemmatizer import EditTreeLemmatizer
from spacy.strings import StringStore
from spacy.symbols import PROPN
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model

from ..bilm.spelling import AS_GIVEN, Spelling


class NormalizingLemmatizer(EditTreeLemmatizer):
    """The component that `make_normalizing_lemmatizer` creates.

    In spaCy, each capital letter needs its own edit trees: the tree from "Books" to "book" replaces "B" by "b". The
    labels of UDPipe 2, like ours, consist of a change of case and an edit of the letters (Straka 2018, "UDPipe 2.0
    Prototype at CoNLL 2018 UD Shared Task").
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "normalizing_lemmatizer",
        *,
        upstream: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(vocab, model, name, **options)
        self.trees = NormalizedEditTrees(vocab.strings)
        self._upstream = upstream

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: dict[str, Any] | None = None,
    ) -> None:
        """Take the spelling of the upstream biLM, make the labels and initialize the model; see
        `EditTreeLemmatizer.initialize`."""
        if nlp is not None and self._upstream is not None:
            elmo: Any = nlp.get_pipe(self._upstream)
            if not hasattr(elmo, "spelling"):
                raise ValueError(
                    f"{self.name!r} has upstream = {self._upstream!r}, which is not an elmo component. Set the name of"
                    " one, or null"
                )
            self.trees.spelling = elmo.spelling
        super().initialize(get_examples, nlp=nlp, labels=labels)
        self.trees.lemmas = set()

    def update(self, examples: Iterable[Example], **options: Any) -> dict[str, float]:
        """Train the model, and remember the lemmas; see `EditTreeLemmatizer.update`."""
        # Not in `initialize`, which sees only the start of a stream, and not at all what a sourced component reads.
        lemmas = {token.lemma_ for example in examples for token in example.reference}
        # "_" is the lemma of the second part of a word that was split by mistake.
        self.trees.lemmas |= lemmas - {"", "_"}
        return super().update(examples, **options)

    def predict(self, docs: Iterable[Doc]) -> list[Any]:
        """Return the id of a tree for each word of each Doc, or -1 if none of the `top_k` trees applies."""
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            return [np.zeros(0, dtype=np.int64) for _ in docs]
        top_k = min(self.top_k, len(self.labels))
        labels = np.asarray(self.cfg["labels"])
        guesses = []
        for doc, scores in zip(docs, self.model.predict(docs), strict=True):
            falling = -self.numpy_ops.asarray(scores)
            best = np.argpartition(falling, top_k - 1)[:, :top_k]
            order = np.argsort(np.take_along_axis(falling, best, 1))
            trees = labels[np.take_along_axis(best, order, 1)]
            chosen = [
                # In a text in capitals, the case of a word says nothing about its lemma.
                self.trees.choose(
                    ids, token.text, keep_case=token.pos == PROPN and not token.is_upper
                )
                for ids, token in zip(trees, doc, strict=True)
            ]
            guesses.append(np.array(chosen, dtype=np.int64))
        return guesses

    def from_bytes(
        self, bytes_data: bytes, *, exclude: Iterable[str] = ()
    ) -> NormalizingLemmatizer:
        """Load the component from bytes."""
        super().from_bytes(bytes_data, exclude=exclude)
        return self._with_label_numbers()

    def from_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> NormalizingLemmatizer:
        """Load the component from a folder."""
        super().from_disk(path, exclude=exclude)
        return self._with_label_numbers()

    def _with_label_numbers(self) -> NormalizingLemmatizer:
        """Restore the mapping from trees to labels. spaCy does not, so a loaded component would learn a wrong tree."""
        self.tree2label = {tree: number for number, tree in enumerate(self.cfg["labels"])}
        return self

    def _labels_from_data(self, get_examples: Callable[[], Iterable[Example]]) -> None:
        """Make a label of each tree that the training data need at least `min_tree_freq` times."""
        # A vocabulary of its own: words of trees that are left out need no place in that of the pipeline.
        trees = NormalizedEditTrees(Vocab().strings, self.trees.spelling)
        frequencies: Counter[int] = Counter()
        examples: dict[int, tuple[str, str]] = {}
        for example in get_examples():
            for token in example.reference:
                if token.lemma:
                    tree = trees.add(token.text, token.lemma_)
                    frequencies[tree] += 1
                    examples.setdefault(tree, (token.text, token.lemma_))
        for tree, frequency in frequencies.items():
            if frequency >= self.min_tree_freq:
                self._pair2label(*examples[tree], add_label=True)


class NormalizedEditTrees:
    """Edit trees that apply to words in one spelling. A tree lowercases the word if its lemma has no capital letters.

    It replaces spaCy's `EditTrees` in `EditTreeLemmatizer`, and has the methods that the lemmatizer calls.
    The id of a tree is twice its id in `EditTrees`, plus one if the tree applies to the lowercased word.
    """

    def __init__(self, strings: StringStore, spelling: Spelling = AS_GIVEN) -> None:
        self.spelling = spelling
        self.lemmas: set[str] = set()
        """The lemmas of the training data."""
        self._strings = strings
        self._trees = EditTrees(strings)

    def add(self, form: str, lemma: str) -> int:
        """Add the tree that changes a word to its lemma, and return the id of the tree."""
        lowercase = lemma == lemma.lower()
        return 2 * self._trees.add(self._normal(form, lowercase), lemma) + lowercase

    def apply(self, tree_id: int, form: str) -> str | None:
        """Return the lemma of a word, or None if the tree does not apply to the word."""
        tree, lowercase = divmod(int(tree_id), 2)
        return self._trees.apply(tree, self._normal(form, bool(lowercase)))

    def choose(self, tree_ids: Iterable[int], form: str, *, keep_case: bool = False) -> int:
        """Return the first tree that makes one of `lemmas`, otherwise the first that makes a lemma, or -1. With
        `keep_case`, a tree that lowercases the word is chosen only if no other applies."""
        if keep_case:
            keeping = [tree for tree in tree_ids if tree % 2 == 0 and self.apply(tree, form)]
            tree_ids = keeping or tree_ids
        first = -1
        for tree_id in tree_ids:
            lemma = self.apply(tree_id, form)
            if lemma in self.lemmas:
                return tree_id
            if lemma and first == -1:
                first = tree_id
        return first

    def _normal(self, form: str, lowercase: bool) -> str:
        word = form.lower() if lowercase else form
        if not self.spelling:
            return word
        # NFC, because most treebanks write lemmas in it. A biLM can have another form.
        return unicodedata.normalize("NFC", self.spelling([word])[0])

    def __len__(self) -> int:
        return len(self._trees)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return the content of a tree by its index in `EditTrees`, which is half of its id."""
        return self._trees[index]

    def from_json(self, trees: list[dict[str, Any]]) -> None:
        """Replace all trees by trees of `__getitem__`."""
        self._trees.from_json(trees)

    def to_bytes(self) -> bytes:
        """Serialize the spelling rule, the lemmas and the edit trees."""
        spelling = [self.spelling.form, self.spelling.replace]
        return srsly.msgpack_dumps(
            {"spelling": spelling, "lemmas": sorted(self.lemmas), "trees": self._trees.to_bytes()}
        )

    def from_bytes(self, data: bytes) -> NormalizedEditTrees:
        """Replace the spelling, the lemmas and the trees by those of `to_bytes`."""
        content = srsly.msgpack_loads(data)
        form, replace = content["spelling"]
        self.spelling = Spelling(form, tuple((character, text) for character, text in replace))
        self.lemmas = set(content["lemmas"])
        self._trees = EditTrees(self._strings)
        self._trees.from_bytes(content["trees"])
        return self

    def to_disk(self, path: Path) -> None:
        """Write the bytes of `to_bytes` to a file."""
        path.write_bytes(self.to_bytes())

    def from_disk(self, path: Path) -> NormalizedEditTrees:
        """Read the file of `to_disk`."""
        return self.from_bytes(path.read_bytes())
