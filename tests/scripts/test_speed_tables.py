"""The tables of benchmarks/results/README.md say what the results of `make bench` say."""

import copy
import json

from scripts.marked_page import renewed
from scripts.speed_tables import RESULTS, part

SIDES = {
    ("network", "float32"): 1000.4,
    ("products", "float32"): 1200.0,
    ("AllenNLP", "float32"): 90.0,
}
REPORT = {
    "processor": {"name": "A Processor", "family": "26", "model": "2", "instructions": ["avx2", "fma"]},
    "torch": "2.13.0",
    "date": "2026-01-31",
    "kernels": "C for avx2; exact",
    "inference": [
        {
            "threads": 1,
            "size": "mini",
            "batch": batch,
            "side": {"kind": kind, "precision": precision},
            "words per second": speed * batch / 32,
        }
        for (kind, precision), speed in SIDES.items()
        for batch in (1, 32)
    ],
    "training": {
        "threads": 1,
        "mini": {
            "prediction": {"AllenNLP": 500.0, "float32": 2000.0, "bfloat16": 4100.0},
            "training": {"AllenNLP": 100.0, "float32": 700.0, "bfloat16": 900.0},
        },
    },
    "training by kind of operation": {
        "mini": {
            "float32": {
                "words per second": 800.0,
                "MFLOP a word": 20.71,
                "GFLOP/s": 16.6,
                "GFLOP/s of the fastest product": 33.2,
                "utilization": 0.5,
                "shares": {"LSTM": 0.6, "products": 0.2, "cat": 0.1, "copy": 0.1},
            }
        }
    },
    "nanoseconds a cell of the gates": {"float32": 0.871, "bfloat16": 0.674},
    "milliseconds": {"one sentence": {"float32": {"median": 3.49}}, "import": {"added": 16.2}},
}  # fmt: skip


def test_the_page_is_up_to_date():
    page = (RESULTS / "README.md").read_text("utf8")
    content = "\n\n".join(part(path) for path in sorted(RESULTS.glob("*.json")))
    assert renewed(page, "speeds", content) == page


def test_figures_are_those_of_the_file(tmp_path):
    path = tmp_path / "a-processor.json"
    path.write_text(json.dumps(REPORT))
    lines = part(path).splitlines()
    assert lines[0] == "## A Processor, family 26: C for avx2"
    assert "[all figures](a-processor.json)" in lines[2]
    assert "| mini, training | 100 | 700 | 900 | 7.0 | 9.0 |" in lines
    # The batch of 32 alone.
    assert "| mini, one thread | 1,000 | 1,200 | 90 |" in lines
    assert (
        "| mini, float32 | 800 | 20.7 | 17 | 33 | 50% | LSTM 60%, products 20%, cat 10% |" in lines
    )
    assert lines[-1].startswith(
        "The LSTM gates take 0.87 ns a cell in float32 and 0.67 ns a cell in bfloat16"
    )


def test_a_processor_without_bfloat16(tmp_path):
    report = copy.deepcopy(REPORT)
    for speeds in report["training"]["mini"].values():
        speeds.pop("bfloat16")
    report["training by kind of operation"]["mini"].pop("bfloat16", None)
    report["nanoseconds a cell of the gates"].pop("bfloat16")
    path = tmp_path / "a-processor.json"
    path.write_text(json.dumps(report))
    lines = part(path).splitlines()
    assert "| mini, training | 100 | 700 | 7.0 |" in lines
    assert lines[-1].startswith("The LSTM gates take 0.87 ns a cell in float32. A short sentence")
