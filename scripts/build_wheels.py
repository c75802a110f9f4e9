"""Build the wheels of all platforms on one machine, from the source distribution, with the cross compiler ziglang.

    python -m pip install build ziglang
    python -m build --sdist
    python scripts/build_wheels.py dist/spacy_elmo-*.tar.gz dist

The part in C uses nothing of Python, so a wheel needs a compiler for its platform and no Python of it.
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
"""The platform in the name of a wheel -> the target of the compiler. Macs with Intel are missing, because PyTorch no
longer has wheels for them."""


def build(source: Path, platform: str, out: Path) -> None:
    """Build the wheel of one platform.

    Args:
        source: the source distribution.
        platform: a key of `TARGETS`.
        out: the folder that receives the wheel.

    Raises:
        subprocess.CalledProcessError: the build failed.
        FileNotFoundError: the C files were not compiled, so the wheel is one without them.
    """
    # -s: without symbols for a debugger, which are most of the library.
    compiler = f"{Path(ziglang.__file__).with_name('zig')} cc -target {TARGETS[platform]} -s"
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-cache-dir", "--wheel-dir", str(out),
         f"--config-settings=--build-option=--plat-name={platform}", str(source)],
        env={**os.environ, "CC": compiler}, check=True,
    )  # fmt: skip
    if not any(out.glob(f"*-{platform}.whl")):
        raise FileNotFoundError(f"no wheel for {platform} in {out}: `{compiler}` did not compile")


def main() -> None:
    """Build all wheels, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, metavar="SDIST")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("platforms", nargs="*", metavar="PLATFORM", help=", ".join(TARGETS))
    args = parser.parse_args()
    if unknown := set(args.platforms) - set(TARGETS):
        parser.error(f"{', '.join(sorted(unknown))}: expected {', '.join(TARGETS)}")
    for platform in args.platforms or TARGETS:
        build(args.source, platform, args.out)


if __name__ == "__main__":
    main()
