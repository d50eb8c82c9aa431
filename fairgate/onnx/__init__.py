"""Decoder and encoder on ONNX Runtime: folders, graphs, sessions, batches, sampling."""
