"""The version of the argument lists of the C functions.

`setup.py` compiles it into their names, so a library that was built earlier has no function that is called with other
arguments than its own. Whoever changes an argument list, in C and in Python, raises it.
"""

ABI = 7
