"""Export of a biLM as an ONNX graph."""
