"""Conversion of ELMo weights from the formats of other programs to our `Weights`, and back.

Each foreign program has a folder with these modules:

- `conversion` converts the program's tensors to our `Weights`. bilm-tf has two formats, so its folder has the
  modules `hdf5_conversion` and `checkpoint_conversion` instead.
- `files` reads the program's files, without changing their content.
- `options` converts the program's options to a `BiLMConfig`.
- `export` writes our `Weights` in the program's format.

The modules in `readers/` parse file formats and know nothing about ELMo.

The tuple `formats.FORMATS` lists the formats that can be read. The function `recognize` of a format must not
match the files of another format, because the format `auto` raises an error if several formats match.
`cli/export.py` lists the formats that can be written, such as ONNX. CONTRIBUTING.md names the other files to
change for a new format.
"""
