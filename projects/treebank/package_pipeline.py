"""Make a package for pip of a pipeline, with a README of its scores, licence and sources.

    python package_pipeline.py training/pipeline packages --version 0.1.0 --build wheel

`prepare` has written training/card.json, and `score` training/scores.json.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import spacy
import srsly
from read_conllu import read_conllu
from score_pipeline import table
from spacy.language import Language

TRAINING = Path("training")
CONTENT = {
    "tagger": "tags",
    "morphologizer": "parts of speech and features",
    "lemmatizer": "lemmas",
    "parser": "dependencies",
    "ner": "named entities",
}


def forbids_commerce(licence: str) -> bool:
    """Return True if a licence forbids commercial use."""
    return bool(
        re.search(r"(?<![a-z])NC(?![a-z])|no[nt]?\W*(for )?commercial", licence, re.IGNORECASE)
    )


def package_meta(
    meta: Mapping[str, Any],
    card: Mapping[str, Any],
    scores: Mapping[str, Mapping[str, float]],
    sources: Mapping[str, str],
) -> dict[str, Any]:
    """Return the meta of the package.

    Args:
        meta: meta.json of the pipeline, with the licence and the sources of its biLM.
        card: training/card.json.
        scores: training/scores.json. They replace those on the dev part.
        sources: {name: licence} of more training data.
    """
    treebank = f"{card['treebank']} ({card['release']})"
    data = {treebank: card["licence"], **sources}
    licence = ", ".join(dict.fromkeys(filter(None, [meta.get("license"), *data.values()])))
    warning = f"No commercial use ({licence}). " if forbids_commerce(licence) else ""
    content = ", ".join(text for name, text in CONTENT.items() if name in meta["pipeline"])
    return {
        **meta,
        **{name: card[name] for name in ("lang", "name", "author")},
        "description": f"{warning}A spaCy pipeline for {card['lang']}, trained on {treebank}: {content}",
        "license": licence,
        "sources": [
            # The biLM of the treebank is no source of its own.
            *(s for s in meta.get("sources") or [] if s["name"] != f"biLM {card['treebank']}"),
            *({"name": name, "license": terms} for name, terms in data.items()),
        ],
        "performance": scores,
        # spaCy would write the version that trained the pipeline as the oldest one.
        "spacy_version": ">=3.8.0,<3.9.0",
    }


def measured(nlp: Language, folder: Path, texts: list[str]) -> dict[str, str]:
    """Return how large and how fast a pipeline is."""
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    nlp(texts[0])
    start = time.process_time()
    words = sum(map(len, nlp.pipe(texts)))
    speed = words / (time.process_time() - start)
    return {
        "Size": f"{size / 1e6:.1f} MB",
        "Speed": f"{speed:,.0f} words in a second of processor time",
    }


def readme(meta: Mapping[str, Any], facts: Mapping[str, str], example: str) -> str:
    """Return the README of the package."""
    name = f"{meta['lang']}_{meta['name']}"
    rows = ["| | |", "|---|---|", *(f"| {fact} | {value} |" for fact, value in facts.items())]
    return "\n".join([
        f"{meta['description']}.", "", *rows, "",
        "Scores on the test part, F1 in percent as the CoNLL 2018 shared task counts:", "",
        table(meta["performance"]), "",
        "```python", "import spacy", "", f'nlp = spacy.load("{name}")',
        f"doc = nlp({json.dumps(example, ensure_ascii=False)})", "for token in doc:",
        "    print(token.text, token.lemma_, token.pos_, token.dep_, token.head.text)", "```", "",
        "From plain text to CoNLL-U:", "",
        "```bash", f"python -m spacy elmo annotate {name} TEXT.txt OUT.conllu", "```", "",
    ])  # fmt: skip


def main() -> None:
    """Write the README to the pipeline, and make the package."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipeline", type=Path, metavar="PIPELINE")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--version", required=True)
    parser.add_argument("--build", required=True, help="sdist, wheel or none")
    parser.add_argument(
        "--names", nargs=2, metavar=("NAMES", "LICENCE"), help="NER data of a pipeline with `ner`"
    )
    args = parser.parse_args()
    meta, card, scores = map(
        srsly.read_json,
        (args.pipeline / "meta.json", TRAINING / "card.json", TRAINING / "scores.json"),
    )
    nlp = spacy.load(args.pipeline)
    sentences, _, _ = read_conllu(Path("corpus/test.conllu"))
    texts = [sentence.text for sentence in sentences]
    sources, facts = {}, {}
    if nlp.has_pipe("ner"):
        sources = {args.names[0]: args.names[1]}
        found = srsly.read_json(TRAINING / "names.json")["ents_f"]
        facts["Named entities"] = f"F1 {100 * found:.1f} on the test part of {args.names[0]}"
    meta = package_meta(meta, card, scores, sources) | {"version": args.version}
    facts = {
        "Treebank": f"{card['treebank']}, {card['release']}, {card['words']:,} training words",
        "biLM": card["weights"] or "trained on the treebank",
        "Licence": meta["license"],
        "Author": meta["author"],
        **measured(nlp, args.pipeline, texts),
        **facts,
    }
    example = next((text for text in texts if 20 < len(text) < 80), texts[0])
    # `spacy package` takes this README instead of writing one.
    (args.pipeline / "README.md").write_text(readme(meta, facts, example), "utf8")
    srsly.write_json(TRAINING / "meta.json", meta)
    shutil.rmtree(args.out / f"{meta['lang']}_{meta['name']}-{args.version}", ignore_errors=True)
    command = [sys.executable, "-m", "spacy", "package", args.pipeline, args.out, "--force"]
    command += ["--meta-path", TRAINING / "meta.json", "--build", args.build]
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
