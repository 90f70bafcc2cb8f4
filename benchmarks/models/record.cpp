// How long it takes to record a model, to run the passes, and to prepare what runs.
//
//   bench_record MODEL --dims 1,128 [--times 5]
//
// All inputs are ones; dims that the model leaves open come from --dims, in order. Later times share the constants that
// passes made in the first one, and so the packed ones. Prints one JSON line, in milliseconds.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "core/graph/execute/executable.h"
#include "core/graph/passes/passes.h"
#include "core/ops/ops.h"
#include "primitives/status/error.h"
#include "sdk/onnx/onnx.h"

namespace {

using Clock = std::chrono::steady_clock;

tenon::onnx::Inputs ones(const tenon::onnx::Model& model, const std::vector<int64_t>& open_dims) {
  tenon::onnx::Inputs inputs;
  for (const tenon::onnx::ValueInfo& input : model.inputs()) {
    std::vector<int64_t> dims;
    size_t open = 0;
    for (const tenon::onnx::Dim& dim : input.dims) dims.push_back(dim.value >= 0 ? dim.value : open_dims.at(open++));
    inputs[input.name] = tenon::full(dims, tenon::Scalar(int64_t{1}), input.dtype);
  }
  return inputs;
}

int run(const std::string& file, const std::vector<int64_t>& dims, int times) {
  const tenon::onnx::Model model = tenon::onnx::load(file);
  const tenon::onnx::Inputs inputs = ones(model, dims);
  tenon::graph::FoldedConstants folded;
  std::vector<tenon::graph::Executable> kept;  // so that packed constants stay
  std::printf("{\"record_passes_prepare_ms\": [");
  for (int i = 0; i < times; ++i) {
    const auto since = [](Clock::time_point begin) {
      return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    };
    const Clock::time_point begin = Clock::now();
    tenon::graph::Graph graph = model.record(inputs);
    const double recorded = since(begin);
    tenon::graph::optimise(&graph, {.folded = &folded});
    const double optimised = since(begin);
    kept.push_back(tenon::graph::prepare(graph));
    std::printf("%s[%.3f, %.3f, %.3f]", i == 0 ? "" : ", ", recorded, optimised - recorded, since(begin) - optimised);
  }
  std::printf("]}\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  std::string file;
  std::vector<int64_t> dims;
  int times = 5;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--dims" && i + 1 < argc) {
      std::istringstream list(argv[++i]);
      for (std::string one; std::getline(list, one, ',');) dims.push_back(std::stoll(one));
    } else if (name == "--times" && i + 1 < argc) {
      times = std::atoi(argv[++i]);
    } else {
      file = name;
    }
  }
  return run(file, dims, times);
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
