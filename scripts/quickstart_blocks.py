"""Write the config blocks of components into docs/quickstart.html, the same that `init-config` writes.

python scripts/quickstart_blocks.py
"""

import json
import re
from pathlib import Path

import spacy
from thinc.api import Config

from spacy_elmo.pipeline.training_config import add_listening, shipped_configs
from spacy_elmo.weight_names import DEFAULT_WEIGHTS

PAGE = Path(__file__).parent.parent / "docs" / "quickstart.html"
COMPONENTS = (
    "tagger", "morphologizer", "trainable_lemmatizer", "parser", "senter", "ner", "spancat",
    "span_finder", "textcat", "textcat_multilabel",
)  # fmt: skip
OTHER_TITLES = {"trainable_lemmatizer": "Lemmas with ELMo", "span_finder": "Spans with ELMo"}
SCRIPT = re.compile(r'(<script type="application/json" id="blocks">\n).*?(\n</script>)', re.DOTALL)


def blocks() -> str:
    """Return the JSON for the page: the default weights, and for each component a title and the text of its blocks."""
    components = {name: {"title": _title(name)} for name in COMPONENTS}
    for optimize in ("efficiency", "accuracy"):
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo")
        add_listening(nlp, COMPONENTS, accurate=optimize == "accuracy")
        for name in COMPONENTS:
            block = Config({"components": {name: nlp.config["components"][name]}}).to_str()
            components[name][optimize] = block.removeprefix("[components]").strip()
    # The text must not contain an HTML tag.
    content = {"weights": DEFAULT_WEIGHTS, "components": components}
    return json.dumps(content, indent=1).replace("<", "\\u003c")


def _title(name: str) -> str:
    configs = shipped_configs()
    shipped = f"{name}_elmo"
    if shipped not in configs:
        return OTHER_TITLES[name]
    # The comment at the top, up to the first colon or full stop.
    comment = re.match(r"(# .*\n)+", configs[shipped].read_text(encoding="utf8"))
    text = comment[0].replace("\n# ", " ").strip("# \n") if comment else ""
    return re.split(r"[:.](?=\s|$)", text)[0]


def page(text: str) -> str:
    """Return the page with the current blocks."""
    content = blocks()
    return SCRIPT.sub(lambda found: found[1] + content + found[2], text)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf8")), encoding="utf8")


if __name__ == "__main__":
    main()
