"""ELMo for spaCy: the Python API.

Each function or class is imported at its first use. So `import spacy_elmo` is fast, and imports neither
torch nor spaCy. To use the component `elmo` or the commands `spacy elmo ...`, you need no import, because
spaCy finds them through the entry points in setup.cfg.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .about import __version__

if TYPE_CHECKING:  # "as" tells type checkers that the names are exported
    from .bilm.weights import Weights as Weights
    from .converters.convert import convert as convert
    from .lab.embed import Embedder as Embedder
    from .lab.embed import embed as embed
    from .lab.language_model import LanguageModel as LanguageModel
    from .lab.search import SearchIndex as SearchIndex
    from .pipeline.store.extensions import install_extensions as install_extensions
    from .pipeline.store.extensions import layers_of as layers_of
    from .pretraining.run import pretrain as pretrain

_MODULES = {
    "Embedder": ".lab.embed",
    "LanguageModel": ".lab.language_model",
    "SearchIndex": ".lab.search",
    "Weights": ".bilm.weights",
    "convert": ".converters.convert",
    "embed": ".lab.embed",
    "install_extensions": ".pipeline.store.extensions",
    "layers_of": ".pipeline.store.extensions",
    "pretrain": ".pretraining.run",
}
__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
