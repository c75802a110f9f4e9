"""Conversion of the weights of other ELMo programs to ours, and back.

Each foreign program has a folder with these modules:

- `conversion` converts its tensors to our `Weights`. bilm-tf has two formats, so its modules are `hdf5_conversion` and
  `checkpoint_conversion`.
- `files` reads its files, without changing their content.
- `options` converts its options to a `BiLMConfig`.
- `export` writes our `Weights` as its files.

The modules in `readers/` parse file formats and know nothing about ELMo.

The table `formats.FORMATS` lists the formats that can be read. The `recognize` of a format must not match the files of
another format, or `auto` would refuse both. Exports, such as ONNX, are not in this table: `cli/export.py` lists them.
CONTRIBUTING.md names the other files to change for a new format.
"""
