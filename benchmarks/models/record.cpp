// Times to record a model, to run the passes, and to prepare the executable; and the first run at a new size.
//
//   bench_record MODEL --dims 1,128 [--times 5] [--sizes 8]
//
// All inputs are ones; dims that the model leaves open come from --dims, in order. Later times share the constants that
// passes made in the first one, and so the packed ones. Prints one JSON line, in milliseconds: for each further size
// the first run and the best of five more.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/models/ones.h"
#include "core/graph/execute/executable.h"
#include "core/graph/passes/passes.h"
#include "primitives/status/error.h"
#include "sdk/onnx/onnx.h"

namespace {

using Clock = std::chrono::steady_clock;
using tenon::bench::ones;

double milliseconds(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double run_once(const tenon::onnx::Model& model, const tenon::onnx::Inputs& inputs) {
  const Clock::time_point begin = Clock::now();
  for (const tenon::Tensor& output : model.run(inputs)) output.wait();
  return milliseconds(begin);
}

// Each size has 8 less than the one before on the last open dim, and every other size has 1 more on the first.
void run_sizes(const tenon::onnx::Model& model, const std::vector<int64_t>& dims, int count) {
  run_once(model, ones(model, dims));
  double worst = 0;
  std::printf(", \"first_and_steady_ms\": [");
  for (int i = 1; i <= count; ++i) {
    std::vector<int64_t> other = dims;
    other.back() = std::max<int64_t>(2, dims.back() - 8 * i);
    if (dims.size() > 1) other.front() += i % 2;
    const tenon::onnx::Inputs inputs = ones(model, other);
    const double first = run_once(model, inputs);
    double steady = first;
    for (int k = 0; k < 5; ++k) steady = std::min(steady, run_once(model, inputs));
    worst = std::max(worst, first / steady);
    std::printf("%s[%.3f, %.3f]", i == 1 ? "" : ", ", first, steady);
  }
  std::printf("], \"worst_first_over_steady\": %.3f, \"recorded\": %llu", worst,
              static_cast<unsigned long long>(model.recorded()));
}

int run(const std::string& file, const std::vector<int64_t>& dims, int times, int sizes) {
  const tenon::onnx::Model model = tenon::onnx::load(file);
  const tenon::onnx::Inputs inputs = ones(model, dims);
  tenon::graph::FoldedConstants folded;
  std::vector<tenon::graph::Executable> kept;  // keeps packed constants alive
  std::printf("{\"record_passes_prepare_ms\": [");
  for (int i = 0; i < times; ++i) {
    const Clock::time_point begin = Clock::now();
    tenon::graph::Graph graph = model.record(inputs);
    const double recorded = milliseconds(begin);
    tenon::graph::optimise(&graph, {.folded = &folded});
    const double optimised = milliseconds(begin);
    kept.push_back(tenon::graph::prepare(graph));
    std::printf("%s[%.3f, %.3f, %.3f]", i == 0 ? "" : ", ", recorded, optimised - recorded,
                milliseconds(begin) - optimised);
  }
  std::printf("]");
  if (sizes > 0) run_sizes(model, dims, sizes);
  std::printf("}\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  std::string file;
  std::vector<int64_t> dims;
  int times = 5, sizes = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--dims" && i + 1 < argc) {
      std::istringstream list(argv[++i]);
      for (std::string one; std::getline(list, one, ',');) dims.push_back(std::stoll(one));
    } else if (name == "--times" && i + 1 < argc) {
      times = std::atoi(argv[++i]);
    } else if (name == "--sizes" && i + 1 < argc) {
      sizes = std::atoi(argv[++i]);
    } else {
      file = name;
    }
  }
  return run(file, dims, times, sizes);
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
