"""What the ONNX encoder and the ONNX decoder share: folders, sessions, batches, sampling.

No adapter of a port stands in here; `onnx_encoder` and `onnx_decoder` are built from these parts.
"""
