"""ELMo for spaCy: the Python API.

Each function or class is imported at its first use. So `import spacy_elmo` is fast, and imports neither
torch nor spaCy. To use the component `elmo` or the commands `spacy elmo ...`, you need no import, because
spaCy finds them through the entry points in setup.cfg.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .about import __version__

if TYPE_CHECKING:
    from .bilm.weights import Weights
    from .converters.convert import convert
    from .lab.embed import Embedder, embed
    from .lab.language_model import LanguageModel
    from .lab.search import SearchIndex
    from .pipeline.store.extensions import install_extensions, layers_of
    from .pretraining.run import CorpusReady, Finished, FolderReady, Preparing, pretrain

__all__ = [
    "CorpusReady",
    "Embedder",
    "Finished",
    "FolderReady",
    "LanguageModel",
    "Preparing",
    "PretrainingStopped",
    "SearchIndex",
    "Weights",
    "__version__",
    "convert",
    "embed",
    "install_extensions",
    "layers_of",
    "pretrain",
]

_MODULES = {
    "CorpusReady": ".pretraining.run",
    "Embedder": ".lab.embed",
    "Finished": ".pretraining.run",
    "FolderReady": ".pretraining.run",
    "LanguageModel": ".lab.language_model",
    "Preparing": ".pretraining.run",
    "PretrainingStopped": ".pretraining.trainer",
    "SearchIndex": ".lab.search",
    "Weights": ".bilm.weights",
    "convert": ".converters.convert",
    "embed": ".lab.embed",
    "install_extensions": ".pipeline.store.extensions",
    "layers_of": ".pipeline.store.extensions",
    "pretrain": ".pretraining.run",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
