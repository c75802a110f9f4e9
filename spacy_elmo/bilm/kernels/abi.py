"""The version of the argument lists of the C functions.

`setup.py` compiles it into their names, so functions of an older library are never called with wrong arguments. If you
change an argument list in C and Python, increase the version.
"""

ABI = 7
