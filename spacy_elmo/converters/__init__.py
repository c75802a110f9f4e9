"""Conversion of ELMo weights from the formats of other programs to our `Weights`, and back.

`convert.py` lists the formats. Each program has one module: its files in, the conversion of their arrays, its files
out. A foreign file goes through a library to arrays, `strict_check` compares them with the options, and a conversion
without file access turns them into `Weights`.
"""
