"""Write the README of each package in models/ from the card of its weights and from models/cards.

python -m scripts.model_cards
"""

from pathlib import Path

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.files import read_json_object
from spacy_elmo.lab.package import model_card

MODELS = Path(__file__).parent.parent / "models"


def cards(models: Path) -> dict[Path, str]:
    """Return the content of each README by its path. It is the same that `spacy elmo package --card` writes."""
    written = {}
    for file in sorted(models.glob("*/*/*.safetensors")):
        weights = Weights.load(file)
        package = file.parents[1]
        fields = read_json_object(models / "cards" / f"{package.name}.json")
        readme = package / "README.md"
        written[readme] = model_card(file.stem, weights.card | fields, weights.config.spelling)
    return written


def main() -> None:
    """Write the files."""
    for path, content in cards(MODELS).items():
        path.write_text(content, "utf8")


if __name__ == "__main__":
    main()
