// Counts the kernels that a program becomes, with closed and with open sizes.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/codegen/fuse/fuse.h"
#include "core/graph/recorder.h"
#include "core/graph/text.h"
#include "primitives/text/format.h"

namespace tenon::codegen {

using Program = std::function<TensorList(const TensorList&)>;

struct Input {
  Dims dims;
  DType dtype = DType::f32;
};

enum class Open { nothing, batch, all };

// True if this dim is the first axis of the first input, or an equal first axis of another input.
inline bool is_batch(const std::vector<Input>& inputs, const Input& input, int32_t dim) {
  const Dims& first = inputs[0].dims;
  return dim == 0 && input.dims.rank() == first.rank() && input.dims[0] == first[0];
}

inline graph::Graph record(const std::vector<Input>& inputs, const Program& code, Open open) {
  graph::Recorder recorder(Device::current());
  const InterpreterScope scope(recorder);
  TensorList values;
  for (const Input& input : inputs) {
    std::vector<std::string> names;
    for (int32_t dim = 0; dim < input.dims.rank(); ++dim) {
      const bool opened = open == Open::all || (open == Open::batch && is_batch(inputs, input, dim));
      names.push_back(opened ? fmt::format("d{}", input.dims[dim]) : "");  // equal sizes are one symbol
    }
    values.push_back(recorder.input(input.dtype, input.dims, names));
  }
  return recorder.finish(code(values));
}

// Expects `count` kernels for each way of opening sizes.
inline void expect_kernels(size_t count, const std::vector<Input>& inputs, const Program& code,
                           const std::vector<Open>& ways = {Open::nothing, Open::batch, Open::all}) {
  for (const Open open : ways) {
    graph::Graph graph = record(inputs, code, open);
    const Fusion fusion = find_groups(graph);
    EXPECT_EQ(kernel_count(graph, fusion), count) << "open: " << static_cast<int>(open) << "\n"
                                                  << graph::print(graph) << fusion.log;
    graph::Graph again = record(inputs, code, open);
    EXPECT_EQ(find_groups(again).log, fusion.log) << "fusion depends on more than the graph";
  }
}

}  // namespace tenon::codegen
