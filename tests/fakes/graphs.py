"""Small ONNX graphs for tests."""

from onnx import TensorProto, helper


def graph_of(node=(), initializer=()):
    """Return a graph that hands its input on, with these nodes and weights beside."""
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    nodes = [helper.make_node("Identity", ["x"], ["y"]), *node]
    return helper.make_graph(nodes, "g", [value], [result], list(initializer))


def model_of(graph):
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def external_tensor(location, size=4):
    """Return a float32 tensor whose numbers are in the file `location`."""
    tensor = TensorProto(
        name=f"at {location}", data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL
    )
    tensor.dims.append(size)
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", location
    return tensor
