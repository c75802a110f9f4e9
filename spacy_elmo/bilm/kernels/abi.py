"""Version number of the argument lists of the C functions.

`setup.py` adds this number to the names of the C functions, so that Python never calls functions of an older
compiled library with wrong arguments. If you change an argument list, increase the number.
"""

ABI = 7
