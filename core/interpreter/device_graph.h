// Launches of a graph that a device has compiled: the tensors of its inputs in, new tensors out. Internal.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/primitive/compiled_graph.h"
#include "core/tensor/tensor.h"

namespace tenon {

// Launches `graph`, the inputs of whose table are `inputs`, in order, and after them its outputs. An input that has not
// the strides of `input_metas` is copied first. Counted in the execution report as "graph of 12 nodes". Throws.
std::vector<Tensor> launch_graph(const std::shared_ptr<const CompiledGraph>& graph,
                                 std::span<const Tensor* const> inputs, std::span<const TensorMeta> input_metas,
                                 std::span<const TensorMeta> output_metas);

// Waits until the bytes of `tensor`, which has data, are there; they are converted first if they lie opaque. Throws.
void wait_for_bytes(const Tensor& tensor);
// Where the elements of `tensor`, whose bytes were waited for, begin.
ep_buffer buffer_of(const Tensor& tensor);

}  // namespace tenon
