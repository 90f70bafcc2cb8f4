"""Writes ONNX graphs: each method call appends one node and returns the name of its output."""

import numpy as np
import onnx
from onnx import helper, numpy_helper


def element_type(dtype):
    """ONNX's number of a NumPy dtype, in every version of onnx."""
    return numpy_helper.from_array(np.zeros(0, dtype)).data_type


class Graph:
    """The nodes and weights of a graph. `graph.Relu(x)` adds a Relu; `weight` adds a weight; constants are inline."""

    def __init__(self, seed):
        self.nodes, self.weights, self.rng = [], [], np.random.default_rng(seed)

    def __getattr__(self, op):
        if not op[0].isupper():
            raise AttributeError(op)

        def add(*inputs, output=None, **attributes):
            output = output or f"/{op}_{len(self.nodes)}"
            self.nodes.append(helper.make_node(op, list(inputs), [output], name=output, **attributes))
            return output

        return add

    def constant(self, value, dtype=np.int64):
        """A Constant node: exporters write numbers of a model's code in this form."""
        return self.Constant(value=numpy_helper.from_array(np.array(value, dtype)))

    def weight(self, name, array):
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def normal(self, name, *shape, scale=1.0, mean=0.0):
        return self.weight(name, (self.rng.standard_normal(shape) * scale + mean).astype(np.float32))

    def model(self, inputs, outputs, opset):
        """`inputs` and `outputs` are {name: (numpy dtype, dims)}. A dim that is a text is dynamic."""
        infos = [
            [helper.make_tensor_value_info(name, element_type(dtype), dims) for name, (dtype, dims) in part.items()]
            for part in (inputs, outputs)
        ]
        graph = helper.make_graph(self.nodes, "graph", *infos, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], producer_name="tenon-tests")
        model.ir_version = 7
        onnx.checker.check_model(model)
        return model
