"""Thinc shim (wrapper of a torch network) that loads, runs, trains, copies and saves a biLM."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from thinc.api import Optimizer, PyTorchShim, get_torch_default_device, torch2xp, xp2torch
from torch import nn

from ...bilm.config import BiLMConfig
from ...bilm.model import BiLM
from ...bilm.weights import StartState, Weights
from ...digest import json_digest
from ...weight_names import find_weights
from ..factory_options import BiLMOptions

# Locks for all shims, because an attribute that is a lock cannot be copied, and so that a forked process can replace
# them.
_loading = threading.RLock()
_comparing = threading.Lock()
_RANDOM = BiLMOptions(weights=None)

# Parameters that are created in inference mode could never be trained.
_outside_inference_mode = torch.inference_mode(False)


def renew_locks() -> None:
    """Replace the locks. A forked process does this, because another thread of its parent may have held them."""
    global _loading, _comparing
    _loading, _comparing = threading.RLock(), threading.Lock()


class BiLMShim(PyTorchShim):
    """A thinc shim (wrapper of a torch network) for a biLM, which is loaded at its first use.

    Unlike in `PyTorchShim`, the network always stays in evaluation mode, so several threads can use it. A copy gets a
    new id, so it does not share the optimizer's moments with the original. `use_params` looks up averages under the
    keys that the optimizer writes.
    """

    def __init__(self) -> None:
        super().__init__(None)
        self.options = _RANDOM
        """Options of the biLM. Before `configure` sets them, the biLM is frozen and has random weights."""
        self._version = _new_version()
        self._parameters: list[dict[str, nn.Parameter | None]] = []
        self._counters: list[tuple[int, int]] = []
        self._inference_bilm: tuple[str, BiLM] | None = None
        self._device: torch.device | None = None
        self._vocabulary: list[str] = []
        self._card: dict[str, Any] = {}
        self._start_state: StartState | None = None

    @property
    def bilm(self) -> BiLM:
        """The network, which is loaded at its first use. Several threads can use the network at once."""
        self.ensure_loaded()
        return self._model

    def ensure_loaded(self) -> None:
        """Load the network if it is not loaded yet."""
        if self._model is None:
            with _loading:
                if self._model is None:
                    self._load()

    @property
    def config(self) -> BiLMConfig:
        """The config of the network, which is loaded if necessary."""
        return self.bilm.config

    @property
    def version(self) -> str:
        """Identifier of the current parameter values, which changes with them (except through `parameter.data`)."""
        self.ensure_loaded()
        # Without the lock, two threads could each give the same values an identifier of their own.
        with _comparing:
            counters = _change_counters(self._parameters)
            if counters != self._counters:
                self._counters, self._version = counters, _new_version()
            return self._version

    def _weights_changed(self) -> None:
        self._version, self._inference_bilm = _new_version(), None

    def configure(self, options: BiLMOptions) -> None:
        """Set the options of the biLM. The optimizer skips the parameters of a frozen biLM."""
        self.options = options
        if self._model is not None:
            self._model.requires_grad_(not options.frozen)

    def digest(self) -> str:
        """Return a hash of everything that determines the layers of a sentence, as 32 hexadecimal digits."""
        used = dataclasses.replace(self._weights(), start_state=self.start_state)
        return json_digest([used.digest(), self.options.precision])

    @_outside_inference_mode
    def initialize(self) -> None:
        """Read the weights file, even if it was read before. If the option `weights` is null, draw random
        weights of the size of the original model instead."""
        with _loading:
            if self.options.weights is None:
                random = Weights.from_bilm(BiLM(BiLMConfig()))
                self.set_weights(self._checked(random, "a random biLM"))
            else:
                self._load()

    @property
    def start_state(self) -> StartState | None:
        """The LSTM state at the start of every sequence, if the option `start` is "warm"; None: zeros."""
        return self._start_state if self.options.start == "warm" else None

    def bilm_for_inference(self) -> BiLM:
        """Return a copy of the network for prediction only, with weights in a format for fast products. The
        copy is kept until the weights change."""
        # Read the version first: if another thread changes the parameters meanwhile, the version differs afterwards.
        version, ready = self.version, self._inference_bilm
        if ready is None or ready[0] != version:
            bilm = self._model.prepare_for_inference(self.options.precision)
            ready = self._inference_bilm = version, bilm
        return ready[1]

    def finish_update(self, optimizer: Optimizer) -> None:
        """Let the optimizer update the trained parameters with their accumulated gradients."""
        if self._model is None:
            return
        for name, param in self._model.named_parameters():
            if param.grad is not None and param.requires_grad:
                # Adam writes into these arrays. On the CPU they share the parameter's memory.
                data: Any = torch2xp(param.data)
                gradient: Any = torch2xp(param.grad.contiguous())
                key, scale = (self.id, name), self.options.lr_scale
                value, _ = optimizer(key, data, gradient, lr_scale=scale)
                param.data.copy_(xp2torch(value, device=param.device))
                self._weights_changed()
            param.grad = None

    @contextlib.contextmanager
    def use_params(self, params: Mapping[Any, Any]) -> Iterator[None]:
        """Within a `with` block, set parameters to the values in `params`, such as averages over training
        steps. A key of `params` is the pair (id of this shim, name of the parameter), as in the optimizer."""
        named = self._model.named_parameters() if self._model is not None else ()
        changed = [
            (param, params[self.id, name]) for name, param in named if (self.id, name) in params
        ]
        if not changed:
            yield
            return
        kept = [param.data.clone() for param, _ in changed]
        try:
            # In place, because another thread may be reading the memory of the parameters.
            for param, value in changed:
                param.data.copy_(xp2torch(value, device=param.device))
            self._weights_changed()
            yield
        finally:
            for (param, _), data in zip(changed, kept, strict=True):
                param.data.copy_(data)
            # Not the old version: another thread may have kept values of the averages under it.
            self._weights_changed()

    def to_device(self, device_type: str, device_id: int) -> None:
        """Move the network to the device of the thinc model's ops."""
        self._device = (
            torch.device("cuda", device_id) if device_type == "gpu" else torch.device("cpu")
        )
        if self._model is not None:
            self._model.to(self._device)
            self._weights_changed()

    def to_bytes(self) -> bytes:
        """Return the bytes of a complete weights file. Loading these bytes needs no other file."""
        tensors = list(self.bilm.state_dict().values())
        if self._start_state is not None:
            tensors += [self._start_state.h, self._start_state.c]
        # Half as many bytes if float16 represents all values exactly, as those of a float16 file.
        exact = all(torch.equal(t, t.half().to(t.dtype)) for t in tensors)
        return self._weights(torch.float16 if exact else torch.float32).to_bytes()

    def _weights(self, dtype: torch.dtype = torch.float32) -> Weights:
        self.ensure_loaded()
        return Weights.from_bilm(
            self._model,
            vocabulary=self._vocabulary,
            card=self._card,
            start_state=self._start_state,
            dtype=dtype,
        )

    @_outside_inference_mode
    def from_bytes(self, data: bytes) -> BiLMShim:
        """Load the weights from the bytes that `to_bytes` has returned."""
        with _loading:
            self.set_weights(self._checked(Weights.from_bytes(data), "the saved pipeline"))
        self._warn_of_other_weights()
        return self

    def _warn_of_other_weights(self) -> None:
        """Warn if the option `weights` names another biLM than the saved one."""
        named, saved = self.options.weights, self._card.get("name")
        try:
            card = Weights.load_card(find_weights(named)) if named is not None else {}
        except (OSError, ValueError):
            return  # a saved pipeline needs no weights file
        if saved and card.get("name") not in (None, saved):
            warnings.warn(
                f"The saved pipeline contains its own biLM, {saved!r}, and uses it, not weights = {named!r}. These"
                " weights are used by nlp.initialize(), after which all components with a listener must be trained",
                stacklevel=2,
            )

    def __getstate__(self) -> dict[str, Any]:
        if self.options.weights is not None:
            # A copy or a pickle must contain the weights, because their file may be gone later.
            self.ensure_loaded()
        left_out = "id", "_inference_bilm", "_parameters"
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__init__(None)  # sets a new id, so that the optimizer keeps separate moments
        self.__dict__.update(state)
        self._parameters = _parameters_of(self._model)
        self._weights_changed()

    def __copy__(self) -> BiLMShim:
        return copy.deepcopy(self)

    @_outside_inference_mode
    def _load(self) -> None:
        name = self.options.weights
        if name is None:
            raise ValueError(
                "This biLM has no weights yet: the config has weights = null, which means random weights, and"
                " nlp.initialize() draws them. Call it, or set weights to a name or a file"
            )
        weights = Weights.load(find_weights(name)).without_head()
        self.set_weights(self._checked(weights, name))

    def _checked(self, weights: Weights, source: str) -> Weights:
        if self.options.start == "warm" and weights.start_state is None:
            raise ValueError(
                f'start = "warm", but {source} has no start state. Set start = "zero", or estimate a start state with'
                " `python -m spacy elmo convert FORMAT IN OUT_FILE --warm TEXT`, which stores it in the file"
            )
        return weights

    def set_weights(self, weights: Weights) -> None:
        """Use weights that are already loaded. The network shares the memory of their tensors."""
        device = self._device or get_torch_default_device()
        bilm = weights.build_bilm().to(device).requires_grad_(not self.options.frozen)
        self._vocabulary, self._card = weights.vocabulary, weights.card
        self._start_state = weights.start_state
        self._parameters = _parameters_of(bilm)
        self._counters, self._version = _change_counters(self._parameters), _new_version()
        # The network is set last: as soon as other threads see it, they use the attributes above.
        self._model = bilm


def _parameters_of(module: nn.Module | None) -> list[dict[str, nn.Parameter | None]]:
    """Return the dict with the parameters of each part of a network, because walking through its parts is slow."""
    return [] if module is None else [p._parameters for p in module.modules() if p._parameters]


def _change_counters(parameters: list[dict[str, nn.Parameter | None]]) -> list[tuple[int, int]]:
    """For each parameter, return its id, and how often any code has changed it in place, except through its `data`."""
    return [
        (id(param), param._version)
        for part in parameters
        for param in part.values()
        if param is not None
    ]


def _new_version() -> str:
    """Return a new unique identifier for the current values of all parameters."""
    return uuid.uuid4().hex
