"""Write the scores of evidence/scores into the cards of the models, and the README of each package in models/.

python -m scripts.model_cards

The table NAME_tasks of evidence/tables.yml has the scores of a biLM. They stand in models/cards/NAME.json, from which
`spacy elmo package --card` and this program write the README of its package. The cards of the bundled biLMs have them
in their metadata. The text of a pipeline's card is in models/cards, in its meta.json and in its README.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import mean
from typing import Any

import srsly

from scripts import tables
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.lab.package import model_card

MODELS = tables.ROOT / "models"
BUNDLED = tables.ROOT / "spacy_elmo" / "weights"


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
    pipeline = MODELS / "cards" / "en_elmo_web.json"
    fields = srsly.read_json(pipeline)
    fields["notes"] = tables.page(fields["notes"], settings)
    yield pipeline, _json(fields)
    for path in sorted((MODELS / "en_elmo_web").glob("**/meta.json")):
        # As spaCy writes it.
        yield path, srsly.json_dumps(srsly.read_json(path) | fields, indent=2)


def _json(fields: Any) -> str:
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the files."""
    for path, content in cards():
        path.write_text(content, "utf8")


if __name__ == "__main__":
    main()
