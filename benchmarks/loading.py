"""Time and memory of loading a biLM with random weights: our files, a component and a saved pipeline, AllenNLP.

Each measurement runs in a process of its own, after its imports. Memory is the growth of resident memory to its peak.
The files were just written, so no time is spent on the disk. Linux only, because resident memory is read from /proc.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import safetensors.torch
import spacy
import torch
from contest.allennlp_elmo import elmo_module
from measuring.process_memory import MB, peak, reset_peak, resident
from measuring.sizes import SIZES

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.meta import on_meta_device
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.bilm_tf.export import export

TEXT = "She sat on the bank of the river."


def write_files(folder: Path, config: BiLMConfig) -> None:
    """Write the files and the pipeline that are loaded."""
    torch.manual_seed(0)
    weights = Weights.from_bilm(BiLM(config), card={"language": "en"})
    weights.save(folder / "float32.safetensors")
    export(weights, folder / "bilm-tf")
    rounded = {name: tensor.half() for name, tensor in weights.tensors.items()}
    Weights(config, rounded, card=weights.card).save(folder / "float16.safetensors")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(folder / "float32.safetensors")})
    nlp.to_disk(folder / "pipeline")


def read_file(path: Path) -> Callable[[], object]:
    return path.read_bytes


def copy_tensors(path: Path) -> Callable[[], object]:
    def load() -> object:
        return {name: t.clone() for name, t in safetensors.torch.load_file(path).items()}

    return load


def our_weights(path: Path) -> Callable[[], object]:
    return lambda: Weights.load(path).build_bilm()


def first_text(path: Path) -> Callable[[], object]:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(path)})
    return partial(nlp, TEXT)


def save_pipeline(path: Path) -> Callable[[], object]:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(path)})
    nlp(TEXT)
    return partial(nlp.to_disk, path.parent / "saved")


def load_pipeline(path: Path) -> Callable[[], object]:
    return partial(spacy.load, path)


def allennlp(path: Path, package: Path) -> Callable[[], object]:
    load = elmo_module(package)._ElmoBiLm
    return partial(load, str(path / "options.json"), str(path / "weights.hdf5"))


MEASUREMENTS: dict[str, tuple[Callable[..., Callable[[], object]], str]] = {
    "the bytes of the file": (read_file, "float32.safetensors"),
    "safetensors, copied": (copy_tensors, "float32.safetensors"),
    "our weights, float32": (our_weights, "float32.safetensors"),
    "our weights, float16": (our_weights, "float16.safetensors"),
    "elmo's first text, float32": (first_text, "float32.safetensors"),
    "elmo's first text, float16": (first_text, "float16.safetensors"),
    "nlp.to_disk": (save_pipeline, "float32.safetensors"),
    "spacy.load": (load_pipeline, "pipeline"),
    "AllenNLP's _ElmoBiLm": (allennlp, "bilm-tf"),
}


def measure(load: Callable[[], object]) -> dict[str, float]:
    """Measure one call: its seconds, and the growth of memory to its peak in MB."""
    gc.collect()
    before = resident()
    reset_peak()
    start = time.perf_counter()
    load()
    return {"seconds": time.perf_counter() - start, "peak": peak() - before}


def size(path: Path) -> float:
    """Return the size of a file, or of the files of a folder, in MB."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / MB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="original", help="size of the biLM")
    parser.add_argument(
        "--allennlp", type=Path, help="folder into which pip has installed allennlp"
    )
    parser.add_argument(
        "--repeats",
        type=int,
        default=3,
        help="processes for each; reports the least time and the largest peak",
    )
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument(
        "--only", choices=MEASUREMENTS, help="measure this one once, in this process; print JSON"
    )
    parser.add_argument("--files", type=Path, help="folder with the files that --only reads")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.only:
        prepare, name = MEASUREMENTS[args.only]
        extra = [args.allennlp] if prepare is allennlp else []
        print(json.dumps(measure(prepare(args.files / name, *extra))))
        return
    with TemporaryDirectory() as folder:
        report = compare(Path(folder), args)
    if args.out:
        args.out.write_text(json.dumps(report, indent=2) + "\n", "utf8")


def compare(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Run all measurements in turn, `--repeats` times, and print their table."""
    config = SIZES[args.size]
    write_files(folder, config)
    names = [
        name
        for name, (prepare, _) in MEASUREMENTS.items()
        if args.allennlp or prepare is not allennlp
    ]
    rounds = [{name: run(name, folder, args) for name in names} for _ in range(args.repeats)]
    with on_meta_device():
        parameters = sum(p.numel() for p in BiLM(config).parameters())
    print(f"{parameters / 1e6:.1f}M parameters: {4 * parameters / MB:.0f} MB in float32\n")
    print(f"{'':28}{'file':>10}{'time':>10}{'peak':>10}{'peak/file':>11}")
    table = {}
    for name in names:
        file = size(folder / MEASUREMENTS[name][1])
        seconds = min(measured[name]["seconds"] for measured in rounds)
        largest = max(measured[name]["peak"] for measured in rounds)
        table[name] = {"file": file, "seconds": seconds, "peak": largest}
        print(f"{name:28}{file:7.0f} MB{seconds:8.2f} s{largest:7.0f} MB{largest / file:11.2f}")
    return {"size": args.size, "parameters": parameters, "loading": table}


def run(name: str, folder: Path, args: argparse.Namespace) -> dict[str, float]:
    """Run one measurement in a process of its own."""
    command = [sys.executable, __file__, "--only", name, "--files", str(folder)]
    options = ["--threads", str(args.threads)]
    if args.allennlp:
        options += ["--allennlp", str(args.allennlp)]
    done = subprocess.run([*command, *options], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
