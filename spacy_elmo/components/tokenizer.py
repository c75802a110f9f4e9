"""A tokenizer that was trained on a treebank: it finds the words, the multiword tokens and the sentences of a text."""

import functools
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import DummyTokenizer
from spacy.vocab import Vocab

from ..text.source_text import set_source

REQUIREMENT = "ufal.udpipe>=1.4,<2"


def udpipe_tokenizer_v1(sentences: bool = True) -> Callable[[Language], "UDPipeTokenizer"]:
    """Return a function that creates the tokenizer of a treebank. It finds words and sentences with a model of UDPipe
    1, which the treebank project trains (projects/treebank/README.md).

    `path` in `[initialize.tokenizer]` is the file of the model, which training reads once: the saved pipeline contains
    it. The tokenizer needs `pip install "spacy-elmo[udpipe]"`, and packages of pipelines require `ufal.udpipe`.

    - The Doc has the words of the treebank and nothing else, because the other components learned from these. Line
      breaks and other whitespace are no tokens. `doc.text` has one space in the place of each run of whitespace, and
      none at the start.
    - A multiword token becomes its words. Welsh "iddi" (to her) is "i hi" in `doc.text`. If the words are parts of the
      token, as "do" and "n't" are of "don't", `doc.text` has the token.
    - `doc._.source_text` is the text as it was. `doc._.source_offsets`, an int32 array (tokens, 2), has the characters
      of it that each token stands for: from the first number to before the second. All words of a multiword token have
      the same two numbers.
    - The sentences are set, and spaCy's parser keeps to them. An empty line always ends a sentence, a line break alone
      does not. To use your own words and sentences, give the pipeline a `Doc` with `words` and `sent_starts`.

    Args:
        sentences: false: the tokenizer starts a sentence only after an empty line, and a component, such as `senter`,
            finds the others. Take it for text without punctuation.
    """
    return functools.partial(_create, sentences=sentences)


def _create(nlp: Language, *, sentences: bool) -> "UDPipeTokenizer":
    # `spacy package` finds packages of registered functions by itself, and takes all others from here.
    required = nlp.meta.get("requirements") or []
    if REQUIREMENT not in required:
        nlp.meta["requirements"] = [*required, REQUIREMENT]
    return UDPipeTokenizer(nlp.vocab, sentences=sentences)


class UDPipeTokenizer(DummyTokenizer):
    """The tokenizer of a UDPipe 1 model, with the words and sentences of the treebank that it was trained on.

    `udpipe_tokenizer_v1` describes its Docs. Without `sentences`, `is_sent_start` is True after an empty line, False
    inside a multiword token, and otherwise unknown.

    Args:
        vocab: the vocabulary of the pipeline.
        data: content of a file with a UDPipe model; empty: no model yet.
        sentences: set the sentences that the model finds.
    """

    def __init__(self, vocab: Vocab, data: bytes = b"", *, sentences: bool = True) -> None:
        self.vocab = vocab
        self.sentences = sentences
        self.from_bytes(data)

    def __call__(self, text: str) -> Doc:
        """Tokenize a text."""
        words: list[str] = []
        spaces: list[bool] = []
        starts: list[bool | int | None] = []
        offsets: list[tuple[int, int]] = []
        for sentence in self._sentences(text):
            first = len(words)
            before = text[offsets[-1][1] : sentence[0][0]] if offsets else "\n\n"
            for start, end, forms in sentence:
                apart = "".join(forms) != text[start:end]
                words += forms
                spaces += [apart] * (len(forms) - 1) + [text[end : end + 1].isspace()]
                offsets += [(start, end)] * len(forms)
                # No sentence starts inside a multiword token.
                starts += [False if self.sentences else None, *([False] * (len(forms) - 1))]
            if self.sentences or before.count("\n") > 1:
                starts[first] = True
        doc = Doc(self.vocab, words=words, spaces=spaces, sent_starts=starts)
        set_source(doc, text, offsets)
        return doc

    def _sentences(self, text: str) -> Iterator[list[tuple[int, int, list[str]]]]:
        """Yield the tokens of each sentence: the two offsets of a token in the text, and its words."""
        if self._model is None:
            raise ValueError(
                "The tokenizer has no model: set path = FILE in [initialize.tokenizer] of the config. The file is a"
                " UDPipe 1 model, which projects/treebank/train_tokenizer.py trains on a treebank"
            )
        from ufal.udpipe import ProcessingError, Sentence

        # One for each call, so threads can share the model.
        tokenizer = self._model.newTokenizer(self._model.TOKENIZER_RANGES)
        tokenizer.setText(_simplify(text))
        sentence, error = Sentence(), ProcessingError()
        while tokenizer.nextSentence(sentence, error):
            yield list(_tokens(sentence, text))

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]] | None = None,
        *,
        nlp: Language | None = None,
        path: Path | None = None,
    ) -> None:
        """Load a model from a file. spaCy calls this at the start of a training, with the options of
        `[initialize.tokenizer]`.

        Args:
            path: file with a UDPipe 1 model. None: the tokenizer keeps the model that it has.
        """
        if path is not None:
            self.from_disk(path)

    def to_bytes(self, **kwargs: Any) -> bytes:
        """Return the content of the model's file."""
        return self._data

    def from_bytes(self, data: bytes, **kwargs: Any) -> "UDPipeTokenizer":
        """Load a model from the bytes of `to_bytes`."""
        self._data = data
        self._model = _load(data) if data else None
        return self

    def to_disk(self, path: str | Path, **kwargs: Any) -> None:
        """Write the model to a file."""
        Path(path).write_bytes(self._data)

    def from_disk(self, path: str | Path, **kwargs: Any) -> "UDPipeTokenizer":
        """Load a model from a file."""
        return self.from_bytes(Path(path).read_bytes())

    def __reduce__(self) -> tuple[Any, ...]:
        copy = functools.partial(UDPipeTokenizer, sentences=self.sentences)
        return copy, (self.vocab, self._data)


def _load(data: bytes) -> Any:
    try:
        from ufal.udpipe import Model
    except ImportError as error:
        message = f'The tokenizer needs another library: pip install "{REQUIREMENT}"'
        raise ImportError(message) from error
    # UDPipe reads models from files only.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.udpipe"
        path.write_bytes(data)
        model = Model.load(str(path))
    if model is None:
        raise ValueError(f"These {len(data):,} bytes are not a model of UDPipe 1, or it is damaged")
    return model


def _simplify(text: str) -> str:
    """Replace characters that UDPipe treats in another way, each by one character."""
    # UDPipe takes a form feed for a letter, and does not see that a line with a space is empty.
    text = re.sub(r"\s+", lambda run: (" ", "\n")[run[0].count("\n") > 1] * len(run[0]), text)
    # UDPipe reads the text as a C string in UTF-8. spaCy refuses surrogates later.
    return re.sub("[\0\ud800-\udfff]", "\ufffd", text)


def _tokens(sentence: Any, text: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the two offsets in the text and the words of each token of a sentence of UDPipe."""
    words = list(sentence.words)
    multiword = {token.idFirst: token for token in sentence.multiwordTokens}
    index = 1  # Number 0 is the root of the tree.
    while index < len(words):
        token = multiword.get(index, words[index])
        start, end = token.getTokenRangeStart(), token.getTokenRangeEnd()
        # Not the `form` of a single word: it is of the simplified text.
        forms = [" ".join(text[start:end].split())]
        if index in multiword:
            forms = [word.form for word in words[index : token.idLast + 1]]
        yield start, end, forms
        index += len(forms)
