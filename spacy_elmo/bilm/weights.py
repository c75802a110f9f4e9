"""The weights file, a safetensors file with the configuration of a biLM in its header. Loading checks it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from ..digest import Digest, json_digest
from ..files import atomic_write
from .config import BiLMConfig
from .head import Head
from .model import BiLM
from .start_state import StartState
from .tensors import bytes_of, is_finite, on_meta_device, read_tensors
from .words.alphabet import N_MARKS

FORMAT = "spacy-elmo 1"
_VOCABULARY, _ALPHABET, _HEAD = "vocabulary", "alphabet", "head."
_START_H, _START_C = "start.h", "start.c"
_DIGEST = "digest"
"""Name of the header entry that contains a hash of all other entries and of the tensors."""
_DTYPES = (torch.float16, torch.bfloat16, torch.float32)


@dataclass
class Weights:
    """Content of a weights file: configuration, tensors, vocabulary, model card and start state of a biLM."""

    config: BiLMConfig
    tensors: dict[str, Tensor]
    """Tensors by their names in `BiLM.state_dict()`. Names of the softmax layer (head) begin with `head.`."""
    vocabulary: list[str] = field(default_factory=list)
    """The words in the order of the rows of the word table and of the head; empty if the file has neither."""
    card: dict[str, Any] = field(default_factory=dict)
    """Model card with information for users: name, language, tokenizer, casing, licence, corpus, perplexity.
    JSON types."""
    alphabet: str = ""
    """The characters in the table of code points, in the order of their rows. The first rows of the table are
    marks, which are not in the alphabet. The alphabet is empty if characters are bytes."""
    start_state: StartState | None = None
    """The LSTM state before each sentence if elmo's option `start` is "warm"; None: "warm" cannot be used."""

    @classmethod
    def from_bilm(
        cls,
        bilm: BiLM,
        head: Head | None = None,
        *,
        vocabulary: Sequence[str] = (),
        card: Mapping[str, Any] | None = None,
        start_state: StartState | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Weights:
        """Copy the weights of a network (and of its softmax layer) to the CPU, in the data type `dtype`."""
        tensors = dict(bilm.state_dict())
        if head is not None:
            tensors |= {_HEAD + name: tensor for name, tensor in head.state_dict().items()}
        tensors = {
            name: t.detach().to("cpu", dtype, copy=True).contiguous() for name, t in tensors.items()
        }
        alphabet = bilm.encoder.alphabet
        start_state = None if start_state is None else start_state.to(dtype)
        return cls(bilm.config, tensors, list(vocabulary), dict(card or {}), alphabet, start_state)

    def build_bilm(self) -> BiLM:
        """Build a network with these weights in float32 and evaluation mode, on the CPU.

        Float32 tensors of this object become the parameters of the network without a copy, because copies
        would double the memory for loading. So if you train the network, the tensors of this object change.
        """
        with on_meta_device():
            bilm = BiLM(self.config)
        tensors = {n: t.float() for n, t in self.tensors.items() if not n.startswith(_HEAD)}
        bilm.load_state_dict(tensors, assign=True)
        bilm.set_vocabulary(self.vocabulary, self.alphabet)
        return bilm.eval()

    def build_head(self) -> Head | None:
        """Build the softmax layer (head) in float32, as `build_bilm` does. None if the file has no head."""
        tensors = {
            n.removeprefix(_HEAD): t.float() for n, t in self.tensors.items() if n.startswith(_HEAD)
        }
        if not tensors:
            return None
        with on_meta_device():
            head = Head(len(self.vocabulary), self.config.projection)
        head.load_state_dict(tensors, assign=True)
        return head

    def without_head(self) -> Weights:
        """Return the weights without the head, and without the vocabulary if the model has no word table."""
        tensors = {n: t for n, t in self.tensors.items() if not n.startswith(_HEAD)}
        return dataclasses.replace(
            self, tensors=tensors, vocabulary=self.vocabulary if self.config.n_words else []
        )

    def info(self) -> dict[str, Any]:
        """Return a summary of the content in JSON types.

        Returns:
            A dict with these entries:

            - `layers`, `width`: number of layers, and length of their vectors, as in `doc._.elmo_layers`
            - `dtype`: data types of the tensors; `head`: True if there is a softmax layer
            - `parameters`: number of parameters of the biLM, without the softmax layer
            - `tensors`: number of parameters in each part of the network, such as `lstm.0`
            - `vocabulary`, `alphabet`: number of words and of characters
            - `config`, `card`: configuration and model card, as dicts
        """
        groups: dict[str, int] = {}
        for name, tensor in sorted(self.tensors.items()):
            group = "head" if name.startswith(_HEAD) else ".".join(name.split(".")[:2])
            groups[group] = groups.get(group, 0) + tensor.numel()
        return {
            "layers": self.config.layers + 1,
            "width": self.config.width,
            "dtype": sorted({str(t.dtype).removeprefix("torch.") for t in self.tensors.values()}),
            "parameters": sum(groups.values()) - groups.get("head", 0),
            "tensors": groups,
            "head": "head" in groups,
            "vocabulary": len(self.vocabulary),
            "alphabet": len(self.alphabet),
            "config": self.config.to_dict(),
            "card": self.card,
        }

    def to_bytes(self) -> bytes:
        """Return the bytes of a weights file.

        Raises:
            ValueError: a word of the vocabulary contains a newline, or a tensor has values that are not
                finite.
        """
        tensors = self._file_tensors()
        if diverged := [name for name, tensor in tensors.items() if not is_finite(tensor)]:
            raise ValueError(
                f"The weights are not written, because {len(diverged)} of {len(tensors)} tensors are not finite:"
                f" {', '.join(diverged[:5])}. Their training has diverged, or their numbers are too large for the"
                " data type"
            )
        if self.vocabulary:
            if broken := [word for word in self.vocabulary if "\n" in word]:
                raise ValueError(f"Words of a vocabulary must not contain a newline: {broken[:10]}")
            tensors[_VOCABULARY] = _as_bytes("\n".join(self.vocabulary))
        if self.alphabet:
            tensors[_ALPHABET] = _as_bytes(self.alphabet)
        header = {
            "format": FORMAT,
            "config": json.dumps(self.config.to_header()),
            "card": json.dumps(self.card),
        }
        tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
        header[_DIGEST] = _digest(header, tensors)
        return safetensors.torch.save(tensors, header)

    def save(self, path: str | Path) -> None:
        """Write the weights file atomically, so that there is never an incomplete file, even after a crash.

        Raises:
            OSError: the disk is full or not writable. An existing file of this name is unchanged.
            ValueError: see `to_bytes`.
        """
        atomic_write(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Weights:
        """Read and check a weights file.

        Raises:
            OSError: there is no such file, or it cannot be read.
            ValueError: the file is not a weights file, or is truncated.
            ValueError: the tensors do not match the header. The message lists tensors that are missing or
                unexpected, or have the wrong shape or type.
            ValueError: the content has changed since the file was written.
        """
        path = Path(path)
        if path.is_dir():
            raise IsADirectoryError(
                f"{path} is a directory, but a weights file is one .safetensors file: name the file in it"
            )
        with _one_error(str(path)), path.open("rb") as file:
            # Opened before, so that a missing or unreadable file raises an OSError, not an error of safetensors.
            with safetensors.safe_open(path, "pt") as layout:
                header, tensors = layout.metadata() or {}, read_tensors(file, layout)
        return cls._checked(header, tensors, str(path))

    @classmethod
    def load_card(cls, path: str | Path) -> dict[str, Any]:
        """Read only the model card, which is in the header of a weights file.

        Raises:
            OSError, ValueError: see `load`.
        """
        with _one_error(str(path)), Path(path).open("rb"):
            with safetensors.safe_open(path, "pt") as layout:
                return dict(json.loads((layout.metadata() or {})["card"]))

    @classmethod
    def from_bytes(cls, data: bytes) -> Weights:
        """Read and check the bytes of a weights file.

        Raises:
            ValueError: see `load`.
        """
        with _one_error("weights"):
            tensors = safetensors.torch.load(data)
            for name in tensors:
                # Copied to aligned memory, like the tensors of a file. One at a time, to save memory.
                tensors[name] = tensors[name].clone()
            size = int.from_bytes(data[:8], "little")
            header = json.loads(data[8 : 8 + size]).get("__metadata__") or {}
        return cls._checked(header, tensors, "weights")

    @classmethod
    def _checked(
        cls, header: Mapping[str, str], tensors: dict[str, Tensor], source: str
    ) -> Weights:
        if header.get("format") != FORMAT:
            raise ValueError(
                f"{source}: the header has format {header.get('format')!r}, expected {FORMAT!r}. Convert files of other"
                " programs with `python -m spacy elmo convert`"
            )
        file_tensors = dict(tensors)
        try:
            config = BiLMConfig.from_header(json.loads(header["config"]))
            card = dict(json.loads(header["card"]))
            words = _as_text(_VOCABULARY, tensors.pop(_VOCABULARY, None))
            alphabet = _as_text(_ALPHABET, tensors.pop(_ALPHABET, None))
        except Exception as error:  # damaged JSON can raise many classes, RecursionError among them
            raise ValueError(
                f"{source}: damaged header, vocabulary or alphabet: {str(error) or type(error).__name__}"
            ) from error
        vocabulary = [] if words is None else words.split("\n")
        start_state = None
        if {_START_H, _START_C} <= tensors.keys():
            start_state = StartState(tensors.pop(_START_H), tensors.pop(_START_C))
        weights = cls(config, tensors, vocabulary, card, alphabet or "", start_state)
        if problems := weights._problems():
            raise ValueError(
                f"{source}: the tensors do not match the header:\n  " + "\n  ".join(problems)
            )
        if header.get(_DIGEST) != _digest(header, file_tensors):
            raise ValueError(
                f"{source} is damaged: it has changed since it was written. Restore it from a copy"
            )
        return weights

    def _problems(self) -> list[str]:
        # Checked before the network is built, because a damaged header may claim a billion layers.
        if self.config.layers + self.config.highways > len(self.tensors):
            return [
                f"layers = {self.config.layers}, highways = {self.config.highways}:"
                f" too many for {len(self.tensors)} tensors"
            ]
        try:
            expected = self._expected_shapes()
        except (RuntimeError, TypeError, OverflowError) as error:
            return [str(error).partition("\n")[0]]
        tensors = self._file_tensors()
        problems = [f"{name}: missing" for name in expected.keys() - tensors.keys()]
        problems += [f"{name}: unexpected" for name in tensors.keys() - expected.keys()]
        for name in expected.keys() & tensors.keys():
            tensor = tensors[name]
            if tensor.shape != expected[name]:
                problems.append(
                    f"{name}: shape {list(tensor.shape)}, expected {list(expected[name])}"
                )
            elif tensor.dtype not in _DTYPES:
                problems.append(f"{name}: type {tensor.dtype}, expected a float of 16 or 32 bits")
            elif not is_finite(tensor):
                problems.append(f"{name}: contains values that are not finite")
        if self.config.n_words and len(self.vocabulary) != self.config.n_words:
            problems.append(
                f"vocabulary: {len(self.vocabulary)} words, expected {self.config.n_words}"
            )
        expected_characters = max(self.config.n_symbols - N_MARKS, 0)
        if len(self.alphabet) != expected_characters:
            problems.append(
                f"alphabet: {len(self.alphabet)} characters, expected {expected_characters}"
            )
        if self.config.n_words and not problems:
            with on_meta_device():
                bilm = BiLM(self.config)
            try:
                bilm.set_vocabulary(self.vocabulary, self.alphabet)
            except ValueError as error:
                problems.append(str(error))
        return sorted(problems)

    def _file_tensors(self) -> dict[str, Tensor]:
        """Return the float tensors that the file stores: `tensors`, and the start state if there is one."""
        if self.start_state is None:
            return dict(self.tensors)
        return {**self.tensors, _START_H: self.start_state.h, _START_C: self.start_state.c}

    def _expected_shapes(self) -> dict[str, torch.Size]:
        with on_meta_device():
            shapes = {name: t.shape for name, t in BiLM(self.config).state_dict().items()}
            if any(name.startswith(_HEAD) for name in self.tensors):
                head = Head(len(self.vocabulary), self.config.projection)
                shapes |= {_HEAD + name: t.shape for name, t in head.state_dict().items()}
        if {_START_H, _START_C} & self._file_tensors().keys():
            layers = self.config.layers
            shapes[_START_H] = torch.Size((layers, 2, self.config.projection))
            shapes[_START_C] = torch.Size((layers, 2, self.config.dim))
        return shapes


def _digest(header: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """Return a hash of a weights file: of the header (without the entry `digest`), and of the name, data
    type, shape and bytes of each tensor."""
    entries = sorted((name, value) for name, value in header.items() if name != _DIGEST)
    described = [
        (name, str(t.dtype), list(t.shape), Digest(bytes_of(t)).hexdigest())
        for name, t in sorted(tensors.items())
    ]
    return json_digest([entries, described])


def _as_bytes(text: str) -> Tensor:
    return torch.frombuffer(bytearray(text.encode("utf8", "surrogatepass")), dtype=torch.uint8)


def _as_text(name: str, tensor: Tensor | None) -> str | None:
    if tensor is None:
        return None
    if tensor.dtype != torch.uint8:
        raise ValueError(f"{name}: type {tensor.dtype}, expected torch.uint8")
    return tensor.numpy().tobytes().decode("utf8", "surrogatepass")


@contextmanager
def _one_error(source: str) -> Iterator[None]:
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:  # a damaged header can raise many classes, RecursionError among them
        message = f"{source} is not a readable weights file, or it is truncated ({error})"
        raise ValueError(message) from error
