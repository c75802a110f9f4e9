"""Build the wheels for all platforms on one machine, from the source distribution, with the cross compiler ziglang.

    python -m pip install build ziglang
    python -m build --sdist
    python scripts/build_wheels.py dist/spacy_elmo-*.tar.gz dist

The C code does not use Python's C API, so a wheel needs only a compiler for its platform, not a Python for it.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import ziglang

TARGETS = {
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "win_amd64": "x86_64-windows-gnu",
}
"""Mapping from the platform in the name of a wheel to the target of the compiler. Intel Macs are missing, because
PyTorch no longer has wheels for them."""


def build(source: Path, platform: str, out: Path) -> None:
    """Build the wheel of one platform.

    Args:
        source: the source distribution.
        platform: a key of `TARGETS`.
        out: folder for the wheel.

    Raises:
        subprocess.CalledProcessError: the build failed.
        FileNotFoundError: the C files were not compiled, so there is no wheel for the platform.
    """
    # -s leaves out the debug symbols, which are most of the library.
    compiler = f"{Path(ziglang.__file__).with_name('zig')} cc -target {TARGETS[platform]} -s"
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-cache-dir", "--wheel-dir", str(out),
         f"--config-settings=--build-option=--plat-name={platform}", str(source)],
        env={**os.environ, "CC": compiler}, check=True,
    )  # fmt: skip
    if not any(out.glob(f"*-{platform}.whl")):
        raise FileNotFoundError(
            f"There is no wheel for {platform} in {out}: `{compiler}` could not compile the C files"
        )


def main() -> None:
    """Build all wheels, or the wheels of the platforms on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, metavar="SDIST")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("platforms", nargs="*", metavar="PLATFORM", help=", ".join(TARGETS))
    args = parser.parse_args()
    if unknown := set(args.platforms) - set(TARGETS):
        parser.error(f"unknown platform {', '.join(sorted(unknown))}: use {', '.join(TARGETS)}")
    for platform in args.platforms or TARGETS:
        build(args.source, platform, args.out)


if __name__ == "__main__":
    main()
