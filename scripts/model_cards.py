"""Write the cards of the models, and the files of a package in models/ that follow from its card, meta and scores.

python -m scripts.model_cards

A biLM: the table NAME_tasks of evidence/tables.yml has its scores. They stand in models/cards/NAME.json, from which
`spacy elmo package --card` and this program write the README of its package. The cards of the bundled biLMs have them
in their metadata.

A pipeline: models/cards/NAME.json has its description and the text of its card, without the tables. They become a part
of its meta.json, from which its README.md, pyproject.toml and __init__.py are made. The table NAME_scores compares a
pipeline from a treebank with UDPipe 2.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import mean
from string import Template
from typing import Any

import srsly
from spacy.cli.package import generate_readme

from scripts import tables
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.lab.package import PYPROJECT, licence_expression, model_card

MODELS = tables.ROOT / "models"
BUNDLED = tables.ROOT / "spacy_elmo" / "weights"
FAR = {"UPOS": 1.5, "LAS": 5}
"""Score -> the points below UDPipe 2, from plain text, that the first line of a card must say."""

_MODULE = Template('''\
"""The pipeline $name. `spacy.load("$name")` calls `load`."""

from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.util import get_model_meta, load_model_from_init_py

__version__ = get_model_meta(Path(__file__).parent)["version"]


def load(**overrides: Any) -> Language:
    """Load the pipeline. The arguments are those of `spacy.load`."""
    return load_model_from_init_py(__file__, **overrides)
''')


def scores(name: str, settings: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the means without and with ELMo, and the number of seeds, of each test set of a biLM."""
    labels = settings[f"{name}_tasks"]["show"]["data"]
    return {
        labels[data]: {
            "without": round(mean(row["baseline"]), 1),
            "with": round(mean(row["elmo"]), 1),
            "seeds": len(row["elmo"]),
        }
        for (data, *_), row in tables.cells_of(settings[f"{name}_tasks"]).items()
    }


def cards() -> Iterator[tuple[Path, str]]:
    """Yield each file with its content."""
    settings = srsly.read_yaml(tables.ROOT / "evidence" / "tables.yml")
    for file in sorted(MODELS.glob("*/*/*.safetensors")):
        weights, package = Weights.load(file), file.parents[1]
        path = MODELS / "cards" / f"{package.name}.json"
        fields = srsly.read_json(path)
        found = scores(package.name, settings)
        fields["evaluation"] = [each | found[each["data"]] for each in fields["evaluation"]]
        yield path, _json(fields)
        readme = model_card(file.stem, weights.card | fields, weights.config.spelling)
        yield package / "README.md", readme
    for path in sorted(BUNDLED.glob("*.md")):
        _, metadata, text = path.read_text("utf8").split("---\n", 2)
        fields = srsly.yaml_loads(metadata)
        perplexity = tables.cells_of(settings["perplexity"])[(path.stem,)]["mean"][0]
        found = scores(path.stem, settings) | {"held-out text": {"with": perplexity}}
        for result in fields["model-index"][0]["results"]:
            result["metrics"][0]["value"] = found[result["dataset"]["name"]]["with"]
        yield path, f"---\n{srsly.yaml_dumps(fields)}---\n{text}"
    for config in sorted(MODELS.glob("*/*/*/config.cfg")):
        yield from pipeline_files(config.parent, settings)


def pipeline_files(folder: Path, settings: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield each file of a pipeline's package but what the training has made, with its content.

    Args:
        folder: models/NAME/NAME/NAME-VERSION.
        settings: evidence/tables.yml.
    """
    module, package = folder.parent, folder.parents[1]
    meta = srsly.read_json(folder / "meta.json")
    meta |= srsly.read_json(MODELS / "cards" / f"{package.name}.json")
    meta["description"] = distance(package.name, settings) + meta["description"]
    meta["notes"] = tables.page(meta["notes"], settings)
    for path in (folder, module):
        # As spaCy writes it.
        yield path / "meta.json", srsly.json_dumps(meta, indent=2)
    # spaCy's README has no place for the scores of several inputs. They stand in the notes.
    single = {k: v for k, v in meta["performance"].items() if not isinstance(v, Mapping)}
    yield package / "README.md", generate_readme(meta | {"performance": single})
    fields = {
        "name": package.name,
        "module": package.name,
        "entry": package.name,
        "group": "spacy_models",
        "files": '["meta.json", "*/**"]',
        "distribution": package.name.replace("_", "-"),
        "version": meta["version"],
        "description": json.dumps(meta["description"], ensure_ascii=False),
        "licence": " AND ".join(map(licence_expression, meta["license"].split(", "))),
        "requirements": json.dumps(meta["requirements"]),
    }
    yield package / "pyproject.toml", PYPROJECT.substitute(fields)
    yield module / "__init__.py", _MODULE.substitute(fields)


def distance(name: str, settings: Mapping[str, Any]) -> str:
    """Return a sentence that says how far a pipeline is below UDPipe 2 from plain text; "" if it is not `FAR`."""
    if f"{name}_scores" not in settings:
        return ""
    table = settings[f"{name}_scores"]
    cells = tables.cells_of(table)
    ours, *_, udpipe = (cells["plain text", system] for system in table["show"]["system"])
    points = {score: round(mean(udpipe[score]) - mean(ours[score]), 2) for score in FAR}
    far = [f"{points[score]:.1f} points ({score})" for score in FAR if points[score] > FAR[score]]
    return f"Below UDPipe 2 from plain text, by {' and '.join(far)}. " if far else ""


def _json(fields: Any) -> str:
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the files."""
    for path, content in cards():
        path.write_text(content, "utf8")


if __name__ == "__main__":
    main()
