"""A trainable lemmatizer that lowercases words whose lemma has no capital letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from spacy.pipeline._edit_tree_internals.edit_trees import EditTrees
from spacy.pipeline.edit_tree_lemmatizer import EditTreeLemmatizer
from spacy.strings import StringStore
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model


class LowercasingLemmatizer(EditTreeLemmatizer):
    """spaCy's `trainable_lemmatizer`, with edit trees that apply to the lowercased word.

    In spaCy, each capital letter needs its own edit trees: the tree from "Books" to "book" replaces "B" by "b", so it
    does not apply to "Cats" or "books". Here the three words have one label, which lowercases the word and removes the
    "s". The labels of UDPipe 2 also consist of a change of case and an edit of the letters (Straka 2018, "UDPipe 2.0
    Prototype at CoNLL 2018 UD Shared Task").

    Args:
        vocab: the pipeline's vocabulary.
        model: a `spacy.Tagger.v2`.
        name: name of the component in the pipeline.
        options: the options of `EditTreeLemmatizer`.
    """

    def __init__(
        self, vocab: Vocab, model: Model, name: str = "lowercasing_lemmatizer", **options: Any
    ) -> None:
        super().__init__(vocab, model, name, **options)
        self.trees = LowercasingTrees(vocab.strings)

    def _labels_from_data(self, get_examples: Callable[[], Iterable[Example]]) -> None:
        """Make a label of each tree that the training data need at least `min_tree_freq` times."""
        # Not the vocabulary of the pipeline, so that rare words do not remain in it.
        trees = LowercasingTrees(Vocab().strings)
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


class LowercasingTrees:
    """The edit trees of a lemmatizer: some apply to the word as it is, the others to the lowercased word.

    It replaces spaCy's `EditTrees` in `EditTreeLemmatizer`, and has the methods that the lemmatizer calls. The id of a
    tree is twice its id in `EditTrees`, plus one if it applies to the lowercased word.

    Args:
        strings: the strings of the edit trees.
    """

    def __init__(self, strings: StringStore) -> None:
        self._trees = EditTrees(strings)

    def add(self, form: str, lemma: str) -> int:
        """Add the tree that changes a word to its lemma, and return its id.

        The word is lowercased first if its lemma has no capital letters.
        """
        if lemma == lemma.lower():
            return 2 * self._trees.add(form.lower(), lemma) + 1
        return 2 * self._trees.add(form, lemma)

    def apply(self, tree_id: int, form: str) -> str | None:
        """Return the lemma of a word, or None if the tree does not apply to the word."""
        tree, lowercase = divmod(int(tree_id), 2)
        return self._trees.apply(tree, form.lower() if lowercase else form)

    def __len__(self) -> int:
        return len(self._trees)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return the content of a tree of `EditTrees`."""
        return self._trees[index]

    def from_json(self, trees: list[dict[str, Any]]) -> None:
        """Replace all trees with trees of `__getitem__`."""
        self._trees.from_json(trees)

    def to_bytes(self) -> bytes:
        """Serialize the trees."""
        return self._trees.to_bytes()

    def from_bytes(self, data: bytes) -> LowercasingTrees:
        """Read the trees of `to_bytes`."""
        self._trees.from_bytes(data)
        return self

    def to_disk(self, path: Path) -> None:
        """Write the trees to a file."""
        self._trees.to_disk(path)

    def from_disk(self, path: Path) -> LowercasingTrees:
        """Read the trees from a file."""
        self._trees.from_disk(path)
        return self
