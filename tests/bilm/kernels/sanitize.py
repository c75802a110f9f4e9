"""`make sanitize`: the tests of the kernels with the sanitizers of GCC, for each kind of processor.

    python -m tests.bilm.kernels.sanitize                    all kinds that this processor can run
    python -m tests.bilm.kernels.sanitize best               the newest of them
    python -m tests.bilm.kernels.sanitize avx512 -- -k lstm  one kind, some tests

torch's tensors are checked as well: the sanitizer replaces `malloc`, so a kernel that reads a number beside its tensor
is stopped.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from spacy_elmo.bilm.kernels import native

_ROOT = Path(__file__).parents[3]
_LIBRARY = "SPACY_ELMO_SANITIZED"
"""Environment variable with the path of the library under test."""
# Conversion of a float to an integer that cannot hold it is undefined, too, but not in the group.
_SANITIZERS = "address,undefined,float-cast-overflow"


def pytest_configure() -> None:
    """Let the tests use the library under test. This file is a plugin of pytest."""
    library = Path(os.environ[_LIBRARY])
    native.path = lambda: library
    if not native.library():
        raise RuntimeError(f"{library} cannot be loaded")


def main(arguments: list[str]) -> int:
    """Compile and test each kind. Return the exit code of the first kind that fails."""
    names, _, options = " ".join(arguments).partition("--")
    if not Path(_of_compiler("libasan.so")).is_absolute():
        print("Not run: there is no gcc with its sanitizers")
        return 0
    kinds = [*native.processors(), "portable"]
    print(f"This processor runs {', '.join(kinds)}", flush=True)
    if names.split() == ["best"]:
        kinds = kinds[:1]
    elif names:
        kinds = [kind for kind in names.split() if kind in kinds]
    with tempfile.TemporaryDirectory() as folder:
        library = _compiled(Path(folder))
        for kind in kinds:
            print(f"{kind}:", flush=True)
            if code := _tested(library, kind, options.split()):
                return code
    return 0


def _compiled(folder: Path) -> Path:
    flags = f"-fsanitize={_SANITIZERS} -fno-sanitize-recover={_SANITIZERS}"
    more = "-g -fno-omit-frame-pointer"
    environment = {**os.environ, "CFLAGS": f"{flags} {more}", "LDFLAGS": flags}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--force"]
    places = ["--build-lib", str(folder), "--build-temp", str(folder / "objects")]
    subprocess.run([*command, *places], cwd=_ROOT, env=environment, check=True)
    (library,) = folder.rglob("_native*")
    return library


def _tested(library: Path, kind: str, options: list[str]) -> int:
    preloaded = [_of_compiler(name) for name in ("libasan.so", "libubsan.so", "libstdc++.so.6")]
    environment = {
        **os.environ,
        _LIBRARY: str(library),
        native.CHOICE: kind,
        "LD_PRELOAD": " ".join(preloaded),
        # Python frees its memory only in part when it ends.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        # Otherwise Python's small objects lie in large blocks.
        "PYTHONMALLOC": "malloc",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--capture=sys",
        "-p",
        __spec__.name,
        "-p",
        "no:cacheprovider",
    ]
    folder = Path(__file__).parent
    names = "test_lstm.py", "test_character_cnn.py", "test_head.py"
    tests = [folder, *(folder.parent / name for name in names)]
    return subprocess.run([*command, *options, *map(str, tests)], env=environment).returncode


def _of_compiler(library: str) -> str:
    """Return the path of one of GCC's libraries, or its name if GCC or the library is missing."""
    if shutil.which("gcc") is None:
        return library
    command = ["gcc", f"-print-file-name={library}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
