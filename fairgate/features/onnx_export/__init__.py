"""`fairgate export`: a model as ONNX, compared with its original."""
