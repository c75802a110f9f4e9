"""Version number of the argument lists of the C functions.

`setup.py` compiles this number into the names of the C functions, so functions of an older library are never
called with wrong arguments. If you change an argument list in C and Python, increase the number.
"""

ABI = 7
