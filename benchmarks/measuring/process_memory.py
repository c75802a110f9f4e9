"""Resident memory of this process in MB. Linux only, because it is read from /proc."""

from __future__ import annotations

from pathlib import Path

MB = 1e6


def resident() -> float:
    """Return the current resident memory."""
    return _status("VmRSS")


def peak() -> float:
    """Return the largest resident memory since `reset_peak`."""
    return _status("VmHWM")


def reset_peak() -> None:
    """Set the peak to the current resident memory."""
    Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024 / MB
