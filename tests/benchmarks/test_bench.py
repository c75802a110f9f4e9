"""`make bench` describes the processor, and writes a file and a picture for it."""

import json

import bench
import gates
import pytest
import torch
from contest.rounds import Result
from contest.targets import Side
from measuring.processor import file_name, processor

X86 = """processor	: 0
cpu family	: 26
model		: 2
model name	: AMD EPYC 9B45 (Zen 5)
flags		: fpu avx2 avx512f avx512_bf16 rdrand

processor	: 1
model name	: another
"""
ARM = """processor	: 0
BogoMIPS	: 2100.00
Features	: fp asimd bf16
"""


@pytest.mark.parametrize(
    ("text", "name", "instructions"),
    [
        (X86, "amd-epyc-9b45-zen-5-26-2", ["avx2", "avx512_bf16", "avx512f"]),
        (ARM, "unknown", ["asimd", "bf16"]),
    ],
)
def test_the_processor(tmp_path, text, name, instructions):
    path = tmp_path / "cpuinfo"
    path.write_text(text)
    description = processor(path)
    assert file_name(description) == name
    assert description["instructions"] == instructions


@pytest.mark.parametrize("fast", [("float32", "bfloat16", "int8"), ("float32",)])
def test_it_writes_a_file_and_a_picture(monkeypatch, tmp_path, capsys, fast):
    """All data types are measured for which the processor has instructions."""
    programs = []

    def run(program, *options):
        programs.append(program)
        return {"added": 10.0, "float32": {"median": 2.0}}

    def compare(size, sides, *, batches, rounds, threads, text, allennlp):
        assert allennlp is None  # its folder does not exist
        if threads == 1:
            assert {side.precision for side in sides if side.kind == "network"} == set(fast)
            assert (Side("nlp.pipe") in sides) == (size != "original")
        return [Result(threads, size, side, 32, [100.0, 300.0, 200.0], 5.0) for side in sides]

    monkeypatch.setattr(bench.precisions, "FAST", fast)
    monkeypatch.setattr(bench, "run", run)
    monkeypatch.setattr(bench.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(bench, "compare", compare)
    arguments = ["bench.py", "--folder", str(tmp_path), "--allennlp", str(tmp_path / "none")]
    monkeypatch.setattr("sys.argv", arguments)
    bench.main()
    (path,) = tmp_path.glob("*.json")
    report = json.loads(path.read_text())
    assert {result["size"] for result in report["inference"]} == {"mini", "small", "original"}
    assert all(result["words per second"] == 200 for result in report["inference"])
    speeds = {(result["size"], result["threads"]) for result in report["inference"]}
    assert speeds == {("mini", 1), ("small", 1), ("original", 1), ("small", 2)}
    assert programs == [
        "latency.py", "import_time.py", "rivals.py", "training_profile.py", "gates.py", "products.py",
    ]  # fmt: skip
    assert "C for" in report["kernels"] or "torch" in report["kernels"]
    assert path.with_suffix(".png").stat().st_size > 1000
    assert str(path) in capsys.readouterr().out


def test_the_gates_are_the_time_at_no_width(monkeypatch):
    cells = gates.DIM * gates.ROWS * gates.STEPS
    monkeypatch.setattr(gates, "has_kernels", lambda *_: True)
    monkeypatch.setattr(gates, "_fused", lambda _, width: width)
    monkeypatch.setattr(gates, "least_time", lambda width, _: (2 + 0.5 * width) * 1e-9 * cells)
    assert gates.nanoseconds("float32", repeats=1) == pytest.approx(2)


@pytest.mark.parametrize("kernel", [True, False])
def test_the_gates_are_timed_with_and_without_the_fused_kernel(monkeypatch, kernel):
    if not kernel:
        monkeypatch.setattr(gates, "has_kernels", lambda *_: False)
    runs = []
    monkeypatch.setattr(gates, "least_time", lambda run, _: runs.append(run()) or len(runs) * 1.0)
    fused = gates.has_kernels(torch.float32)
    # Seconds 1, 2, 3, 4 for widths in equal steps are 0 at no width.
    expected = 0 if fused else 1e9 / (gates.DIM * gates.ROWS * gates.STEPS)
    assert gates.nanoseconds("float32", repeats=1) == pytest.approx(expected, abs=1e-3)
    assert len(runs) == (len(gates.WIDTHS) if fused else 1)
