"""What setup.cfg cannot say: the configs, a package that lies at the top; the part in C, which is built where there
is a compiler and not missed elsewhere; and the README as the package index shows it.

The part in C is no module of Python but a library that `native.py` loads with ctypes. So one wheel serves every Python
on a platform, and a wheel without the library serves every platform: their tags say so.
"""

import configparser
import re
import runpy
from pathlib import Path

from setuptools import Extension, find_namespace_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

KERNELS = Path("spacy_elmo/bilm/kernels")
LIBRARY = "spacy_elmo.bilm.kernels._native"

# No -ffast-math: not-a-number has to stay one, because training stops at it. No contraction, which compilers do
# differently: what is multiplied and added in one rounding is written so. Python's own flags have -fwrapv, which makes
# the loops 2 to 3 % slower.
FLAGS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fno-wrapv"]


class BuildLibrary(build_ext):
    """Build a library for ctypes, whose name depends neither on the Python that builds it nor on the platform."""

    def get_ext_filename(self, fullname):
        """Return the library's path in the package."""
        return f"{fullname.replace('.', '/')}.so"

    def get_export_symbols(self, ext):
        """Return the exported names, to which distutils would add the function that initializes a module."""
        return ext.export_symbols


class LibraryWheel(bdist_wheel):
    """A wheel for any Python: on this platform if it contains the library, otherwise on all."""

    def run(self):
        """Build first, because only then is it known if there is a compiler."""
        self.run_command("build")
        if not self._has_library():
            self.root_is_pure, self.distribution.ext_modules = True, []
        super().run()

    def get_tag(self):
        """Return the tag of the wheel's name."""
        return "py3", "none", super().get_tag()[2] if self._has_library() else "any"

    def _has_library(self):
        return Path(self.get_finalized_command("build_ext").get_ext_fullpath(LIBRARY)).is_file()


def abi():
    """Return the version number in the names of the C functions."""
    source = (KERNELS / "native.py").read_text(encoding="utf-8")
    return re.search(r"^ABI = (\d+)$", source, re.MULTILINE)[1]


def long_description():
    """Return the README with absolute links, to the files of this version."""
    config = configparser.ConfigParser()
    config.read("setup.cfg", encoding="utf-8")
    source = re.search(r"^Source = (\S+)$", config["metadata"]["project_urls"], re.MULTILINE)[1]
    version = runpy.run_path("spacy_elmo/about.py")["__version__"]
    text = Path("README.md").read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^]]*\])\((?!https:)", rf"\1({source}/raw/v{version}/", text)
    return re.sub(r"(\[[^]]*\])\((?!https:|#)", rf"\1({source}/blob/v{version}/", text)


setup(
    # find_namespace_packages, because spacy_elmo/weights holds data and no __init__.py.
    packages=[*find_namespace_packages(include=["spacy_elmo*"]), "spacy_elmo.configs"],
    package_dir={"spacy_elmo.configs": "configs"},
    package_data={"spacy_elmo.configs": ["*.cfg"]},
    cmdclass={"build_ext": BuildLibrary, "bdist_wheel": LibraryWheel},
    ext_modules=[
        Extension(
            LIBRARY,
            sorted(map(str, KERNELS.glob("*.c"))),
            depends=sorted(map(str, [*KERNELS.glob("*.h"), KERNELS / "native.py"])),
            define_macros=[("ABI", abi())],
            extra_compile_args=FLAGS,
            optional=True,
        )
    ],
    long_description=long_description(),
    long_description_content_type="text/markdown",
)
