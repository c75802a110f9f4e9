"""Export of the network as an ONNX graph."""
