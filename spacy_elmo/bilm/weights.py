"""The weights file, a safetensors file with the configuration of a biLM in its header. Loading checks it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..digest import Digest, json_digest
from ..files import atomic_write
from .config import BiLMConfig
from .model import BiLM, is_finite

if TYPE_CHECKING:
    from .head import Head

FORMAT = "spacy-elmo 1"
_VOCABULARY, _ALPHABET, _HEAD = "vocabulary", "alphabet", "head."
_START_H, _START_C = "start.h", "start.c"
_METADATA = "__metadata__"
"""Name of the entry of a safetensors header that contains the entries of this format."""
_DIGEST = "digest"
"""Name of the header entry that contains a hash of all other entries and of the tensors."""


@dataclass(frozen=True)
class StartState:
    """The LSTM state of both directions at the start of every sentence, before the opening boundary (`<S>`
    forward, `</S>` backward). It is for biLMs that were trained with each sentence starting from the final LSTM
    state of the previous sentence."""

    h: Tensor
    """Output h of each LSTM layer and direction, (layers, 2, projection)."""
    c: Tensor
    """Cell state c of each LSTM layer and direction, (layers, 2, cells)."""

    def to(self, dtype: torch.dtype) -> StartState:
        """Return the state, converted to `dtype`."""
        return StartState(self.h.to(dtype), self.c.to(dtype))

    def for_batch(self, sentences: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Repeat the state for a batch of B sentences, as the argument `state` of `BiLM.forward_chunks`:
        h (layers, 2, B, projection) and c (layers, 2, B, cells), both float32."""
        h, c = (
            t.to(device, torch.float32)[:, :, None].expand(-1, -1, sentences, -1)
            for t in (self.h, self.c)
        )
        return h, c


@dataclass
class Weights:
    """Content of a weights file: configuration, tensors, vocabulary, model card and start state of a biLM."""

    config: BiLMConfig
    tensors: dict[str, Tensor]
    """Tensors by their names in `BiLM.state_dict()`. Names of the head begin with `head.`."""
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
        """Copy the weights of a network (and of its head) to the CPU, in the data type `dtype`."""
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
        would double the memory for loading. So if you train the network, the tensors of this object change."""
        with on_meta_device():
            bilm = BiLM(self.config)
        tensors = {n: t for n, t in self.tensors.items() if not n.startswith(_HEAD)}
        _set_parameters(bilm, tensors)
        bilm.set_vocabulary(self.vocabulary, self.alphabet)
        return bilm.eval()

    def build_head(self) -> Head | None:
        """Build the head in float32, as `build_bilm` does. None if the file has no head."""
        tensors = {n.removeprefix(_HEAD): t for n, t in self.tensors.items() if n.startswith(_HEAD)}
        if not tensors:
            return None
        from .head import Head  # which only language models need

        with on_meta_device():
            head = Head(len(self.vocabulary), self.config.projection)
        _set_parameters(head, tensors)
        return head

    def without_head(self) -> Weights:
        """Return the weights without the head, and without the vocabulary if the model has no word table."""
        tensors = {n: t for n, t in self.tensors.items() if not n.startswith(_HEAD)}
        return dataclasses.replace(
            self, tensors=tensors, vocabulary=self.vocabulary if self.config.n_words else []
        )

    @property
    def has_head(self) -> bool:
        """True if there is a head."""
        return any(name.startswith(_HEAD) for name in self.tensors)

    def digest(self) -> str:
        """Return a hash of everything that determines vectors and predictions, which is everything except the
        model card, as 32 hexadecimal digits."""
        return _digest({"config": json.dumps(self.config.to_header())}, self._file_tensors())

    def to_bytes(self) -> bytes:
        """Return the bytes of a weights file, which are the same in every call."""
        tensors = self._file_tensors()
        if diverged := [name for name, tensor in tensors.items() if not is_finite(tensor)]:
            raise ValueError(
                f"The weights are not written, because {len(diverged)} of {len(tensors)} tensors are not finite:"
                f" {', '.join(diverged[:5])}. Their training has diverged, or their numbers are too large for the"
                " data type"
            )
        if broken := [word for word in self.vocabulary if "\n" in word]:
            raise ValueError(f"Words of a vocabulary must not contain a newline: {broken[:10]}")
        header = {
            "format": FORMAT,
            "config": json.dumps(self.config.to_header()),
            "card": json.dumps(self.card),
        }
        header[_DIGEST] = _digest(header, tensors)
        return _with_sorted_header(safetensors.torch.save(tensors, header))

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
            ValueError: the file is not a weights file, is truncated, or has changed since it was written.
        """
        return cls._read(Path(path).read_bytes(), str(path))

    @classmethod
    def load_card(cls, path: str | Path) -> dict[str, Any]:
        """Read only the model card, which is in the header of a weights file."""
        with _one_kind_of_error(str(path)), Path(path).open("rb"):
            with safetensors.safe_open(path, "pt") as layout:
                return dict(json.loads((layout.metadata() or {})["card"]))

    @classmethod
    def from_bytes(cls, data: bytes) -> Weights:
        """Read and check the bytes of a weights file."""
        return cls._read(data, "weights")

    @classmethod
    def _read(cls, data: bytes, source: str) -> Weights:
        with _one_kind_of_error(source):
            tensors = safetensors.torch.load(data)
            for name in tensors:
                # Copied to aligned memory, for products with the same bits. One at a time, to save memory.
                tensors[name] = tensors[name].clone()
            header = _header_of(data).get(_METADATA) or {}
            if header.get("format") != FORMAT:
                raise ValueError(
                    f"the header has format {header.get('format')!r}, expected {FORMAT!r}. Convert files of other"
                    " programs with `python -m spacy elmo convert`"
                )
            if header.get(_DIGEST) != _digest(header, tensors):
                raise ValueError("it has changed since it was written. Restore it from a copy")
            words = _as_text(tensors.pop(_VOCABULARY, None))
            start_state = None
            if _START_H in tensors:
                start_state = StartState(tensors.pop(_START_H), tensors.pop(_START_C))
            return cls(
                config=BiLMConfig.from_header(json.loads(header["config"])),
                vocabulary=[] if words is None else words.split("\n"),
                alphabet=_as_text(tensors.pop(_ALPHABET, None)) or "",
                card=dict(json.loads(header["card"])),
                start_state=start_state,
                tensors=tensors,
            )

    def _file_tensors(self) -> dict[str, Tensor]:
        """Return all tensors of the file: `tensors`, the start state, the vocabulary and the alphabet."""
        tensors = dict(self.tensors)
        if self.start_state is not None:
            tensors |= {_START_H: self.start_state.h, _START_C: self.start_state.c}
        if self.vocabulary:
            tensors[_VOCABULARY] = _as_bytes("\n".join(self.vocabulary))
        if self.alphabet:
            tensors[_ALPHABET] = _as_bytes(self.alphabet)
        return {name: tensor.contiguous() for name, tensor in tensors.items()}


def _set_parameters(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Use float32 tensors as the parameters of a module, without a copy."""
    expected, found = (
        {name: [*t.shape] for name, t in of.items()} for of in (module.state_dict(), tensors)
    )
    if wrong := [n for n in expected | found if expected.get(n) != found.get(n)]:
        named = ", ".join(f"{n} has {found.get(n)}, not {expected.get(n)}" for n in wrong[:5])
        raise ValueError(f"The shapes of these weights do not match their config: {named}")
    module.load_state_dict({name: t.float() for name, t in tensors.items()}, assign=True)


def _digest(header: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """Return a hash of a weights file: of the header (without the entry `digest`), and of the name, data
    type, shape and bytes of each tensor."""
    entries = sorted((name, value) for name, value in header.items() if name != _DIGEST)
    described = [
        (name, str(t.dtype), list(t.shape), Digest(_bytes_of(t)).hexdigest())
        for name, t in sorted(tensors.items())
    ]
    return json_digest([entries, described])


def _bytes_of(tensor: Tensor) -> memoryview:
    """Return the bytes of a contiguous CPU tensor, as a memoryview that shares the memory of the tensor."""
    return tensor.view(-1).view(torch.uint8).numpy().data


def _header_of(data: bytes) -> dict[str, Any]:
    """Return the header of a safetensors file: JSON, after 8 bytes with the length of the JSON."""
    header: dict[str, Any] = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return header


def _with_sorted_header(data: bytes) -> bytes:
    """Sort the metadata in the header of a safetensors file, because safetensors writes them in random order."""
    header = _header_of(data)
    header[_METADATA] = dict(sorted(header[_METADATA].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # keeps the tensors aligned
    tensors = memoryview(data)[8 + int.from_bytes(data[:8], "little") :]
    return b"".join([len(text).to_bytes(8, "little"), text, tensors])


def _as_bytes(text: str) -> Tensor:
    return torch.frombuffer(bytearray(text.encode("utf8", "surrogatepass")), dtype=torch.uint8)


def _as_text(tensor: Tensor | None) -> str | None:
    return None if tensor is None else bytes(_bytes_of(tensor)).decode("utf8", "surrogatepass")


# What a damaged header can raise. Not every Exception, because a signal handler can raise one of its own.
_DAMAGE = (
    safetensors.SafetensorError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
)  # fmt: skip


@contextmanager
def _one_kind_of_error(source: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        message = f"{source} is not a readable weights file, or it is damaged: {error or type(error).__name__}"
        raise ValueError(message) from error


@contextmanager
def on_meta_device() -> Iterator[None]:
    """Create a context in which new modules get no memory for their parameters and draw no random numbers."""
    with torch.device("meta"), _SkipInitialization():
        yield


class _SkipInitialization(TorchFunctionMode):
    """Context in which torch's functions that initialize parameters do nothing.

    Parameters on the meta device have no values to initialize. Some of torch's functions would nevertheless
    import torch's whole compiler (800 modules, 2 seconds).
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) in ("torch.nn.init", "torch.nn.functional"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
