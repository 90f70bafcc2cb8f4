// Launches graphs that a device has compiled: takes input tensors and returns new tensors. Internal.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/primitive/compiled_graph.h"
#include "core/tensor/tensor.h"

namespace tenon {

// Launches `graph`. `inputs` are the inputs of its table, in order; returns its outputs. An input whose strides differ
// from `input_metas` is copied first. The execution report counts it as "graph of 12 nodes". Throws.
std::vector<Tensor> launch_graph(const std::shared_ptr<const CompiledGraph>& graph,
                                 std::span<const Tensor* const> inputs, std::span<const TensorMeta> input_metas,
                                 std::span<const TensorMeta> output_metas);

// Waits until the bytes of `tensor`, which has data, are written; converts opaque values first. Throws.
void wait_for_bytes(const Tensor& tensor);
// The address of the first element of `tensor`, whose bytes were waited for.
ep_buffer buffer_of(const Tensor& tensor);

}  // namespace tenon
