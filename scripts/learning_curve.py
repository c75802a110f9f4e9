"""Perplexity, and F1 of names, by the number of words that a biLM has read.

    python scripts/learning_curve.py run la.cfg runs/la-corpus runs/curve-la --ner evidence/corpus/ner/la_herodotos
    python scripts/learning_curve.py report runs/curve-la docs/assets/learning_curve.png

la.cfg is the config of a pretraining, and runs/la-corpus the text that `python -m spacy elmo prepare` made by it. NAME
of `--ner` stands for NAME-train.spacy, NAME-dev.spacy and NAME-test.spacy. Each point is a run of its own, because the
learning rate falls to zero at its end. All have the classes of the whole text, so that perplexities can be compared.
At 0 words, names are learned by hash embeddings alone, without a biLM.
After a stop, the same command goes on. A biLM that has been trained on the same text, with the same classes, is a point
if it is copied as runs/curve-la/MILLIONS/model-best.safetensors and model-last.safetensors.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import srsly
from wasabi import msg

from spacy_elmo.analysis.figures import save_figure
from spacy_elmo.bilm.weights import Weights

MILLIONS = (0, 1, 3, 10, 30)
_CONFIGS = Path(__file__).parent.parent / "configs"
BASELINE_CONFIG, NER_CONFIG = _CONFIGS / "ner_baseline.cfg", _CONFIGS / "ner_elmo.cfg"
WARMUP_STEPS, EVALUATIONS = 60, 8
# As in the evidence of the languages, so that F1 can be compared.
NER_STEPS = 1600
BEST, LAST = "model-best.safetensors", "model-last.safetensors"


def commands(
    config: Path, corpus: Path, out: Path, ner: str, millions: float, seed: int
) -> dict[Path, list[list[str]]]:
    """Return the commands of a point, in their order, by the file that is there when they have ended."""
    prepare = srsly.read_json(corpus / "corpus.json")["prepare"]
    words = round(millions * 1e6)
    folder, names = out / f"{millions:g}", out / f"{millions:g}" / f"ner-{seed}"
    weights = folder / BEST
    elmo = [sys.executable, "-m", "spacy", "elmo", "pretrain", str(config), str(folder), "--resume"]
    elmo += ["--paths.corpus", str(corpus), "--prepare.lang", prepare["lang"]]
    elmo += ["--training.max_tokens", str(words), "--training.warmup_steps", str(WARMUP_STEPS)]
    elmo += ["--training.eval_every", str(max(1, words // 4096 // EVALUATIONS))]
    spacy = [sys.executable, "-m", "spacy"]
    train = [*spacy, "train", str(NER_CONFIG if millions else BASELINE_CONFIG)]
    train += ["--output", str(names), "--nlp.lang", prepare["lang"], "--system.seed", str(seed)]
    if millions:
        train += ["--components.elmo.weights", str(weights)]
    train += ["--paths.train", f"{ner}-train.spacy", "--paths.dev", f"{ner}-dev.spacy"]
    train += ["--training.max_steps", str(NER_STEPS)]
    score = [*spacy, "evaluate", str(names / "model-best"), f"{ner}-test.spacy"]
    made = {names / "test.json": [train, [*score, "--output", str(names / "test.json")]]}
    if not millions:
        return made
    return {
        # Written when the run has ended; spaCy's model-last is written at every evaluation.
        folder / LAST: [elmo],
        **made,
    }


def read_points(out: Path) -> list[dict[str, Any]]:
    """Return the points that are done, fewest words first.

    Returns:
        For each: `words` in millions, `perplexity` (the mean of both directions at the best step; None without a
        biLM), `f1` in percent, the mean of its `scores`, one for each seed.
    """
    points = []
    for folder in out.iterdir():
        tests = sorted(folder.glob("ner-*/test.json"))
        if tests:
            scores = [100 * json.loads(test.read_text("utf8"))["ents_f"] for test in tests]
            words, best = float(folder.name), folder / BEST
            points.append(
                {
                    "words": words,
                    "perplexity": Weights.load_card(best)["perplexity"]["mean"] if words else None,
                    "f1": sum(scores) / len(scores),
                    "scores": scores,
                }
            )
    return sorted(points, key=lambda point: point["words"])


def table(points: Sequence[Mapping[str, Any]]) -> str:
    """Return the points as a table in Markdown, with the deviation of a sample (n - 1), none for one seed."""
    lines = [
        "| words read, millions | held-out perplexity | F1 of names ± standard deviation (seeds) |",
        "|---:|---:|---:|",
    ]
    for point in points:
        perplexity = "" if point["perplexity"] is None else f"{point['perplexity']:.1f}"
        scores = point["scores"]
        spread = f" ± {statistics.stdev(scores):.1f}" if len(scores) > 1 else ""
        f1 = f"{point['f1']:.1f}{spread} ({len(scores)})"
        lines.append(f"| {point['words']:g} | {perplexity} | {f1} |")
    return "\n".join(lines)


def chart(points: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return a Vega-Lite chart with a panel for each of both measures; a dashed line is F1 without a biLM, a light
    point that of one seed.
    """
    read = [point for point in points if point["words"]]
    color = "#3b528b"

    def panel(field: str, title: str) -> dict[str, Any]:
        x = {
            "field": "words",
            "type": "quantitative",
            "scale": {"type": "log", "nice": False, "padding": 20},
            "axis": {"values": [point["words"] for point in read], "format": "~g"},
            "title": "words read (millions), logarithmic",
        }
        y = {"field": field, "type": "quantitative", "scale": {"zero": False}, "title": title}
        mark = {"type": "line", "point": {"size": 60, "color": color}, "color": color}
        line = {"mark": mark, "encoding": {"x": x, "y": y}}
        return {"width": 300, "height": 240, "layer": [line]}

    title = {"text": "What more reading brings", "subtitle": "Light points are single seeds."}
    names = panel("f1", "F1 of names (%)")
    x = names["layer"][0]["encoding"]["x"]
    names["layer"].append(
        {
            "transform": [{"flatten": ["scores"]}],
            "mark": {"type": "circle", "color": color, "opacity": 0.35},
            "encoding": {"x": x, "y": {"field": "scores", "type": "quantitative"}},
        }
    )
    for point in points:
        if not point["words"]:
            without = {"y": {"datum": point["f1"], "type": "quantitative"}}
            dashed = {"type": "rule", "strokeDash": [6, 4], "color": "#888888"}
            title["subtitle"] += " The dashed line is names by hash embeddings, without a biLM."
            names["layer"].append({"mark": dashed, "encoding": without})
    return {
        "title": title,
        "data": {"values": read},
        "hconcat": [panel("perplexity", "held-out perplexity"), names],
    }


def main() -> None:
    """Train the points, or report on them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    run = actions.add_parser("run", help="train the points that are not done")
    for name in ("config", "corpus", "out"):
        run.add_argument(name, type=Path)
    run.add_argument("--ner", required=True, help="files of the labelled set, up to -train.spacy")
    run.add_argument("--millions", type=float, nargs="+", default=MILLIONS, help="of words")
    run.add_argument("--seeds", type=int, nargs="+", default=[0], help="of NER")
    report = actions.add_parser("report", help="print the table and draw the picture")
    report.add_argument("out", type=Path)
    report.add_argument("picture", type=Path)
    args = parser.parse_args()
    if args.action == "report":
        points = read_points(args.out)
        if not points:
            raise SystemExit(f"{args.out}: no point is done; `run` trains them")
        print(table(points))
        save_figure(chart(points), args.picture, title="What more reading brings")
        msg.good(str(args.picture))
        return
    for millions in args.millions:
        for seed in args.seeds:
            steps = commands(args.config, args.corpus, args.out, args.ner, millions, seed)
            for made, together in steps.items():
                if not made.exists():
                    made.parent.mkdir(parents=True, exist_ok=True)
                    for command in together:
                        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
