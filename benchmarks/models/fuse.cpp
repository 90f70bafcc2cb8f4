// A model with its ops fused into kernels, and without, in one process: launches per run, and times of alternating
// runs.
//
//   bench_fuse MODEL --dims 1,128 [--runs 30] [--compile wait|beside]
//
// All inputs are ones; dims that the model leaves open come from --dims, in order. Prints one JSON line: launches of
// both, launches of fused kernels, the largest difference divided by the largest number, medians in milliseconds, and
// the ratio of the medians. With `beside` it also prints each of the first runs.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/models/ones.h"
#include "primitives/status/error.h"
#include "sdk/onnx/onnx.h"

namespace {

using Clock = std::chrono::steady_clock;
using tenon::Tensor;
using tenon::bench::ones;

// A model, loaded in one way, and its times.
struct Side {
  Side(const std::string& file, const std::vector<int64_t>& dims, bool fuse, tenon::Compiling compiling)
      : model(tenon::onnx::load(file, options(fuse, compiling))), inputs(ones(model, dims)) {}

  static tenon::onnx::Options options(bool fuse, tenon::Compiling compiling) {
    tenon::onnx::Options made;
    made.fuse = fuse;
    made.compile = compiling;
    return made;
  }

  void run() {
    const Clock::time_point begin = Clock::now();
    outputs = model.run(inputs);
    for (const Tensor& output : outputs) output.wait();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }

  double median() const {
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

  size_t launches(const std::string& begin) const {
    std::vector<tenon::onnx::NodeExecution> executions;
    model.run(inputs, &executions);
    return static_cast<size_t>(std::count_if(executions.begin(), executions.end(),
                                             [&](const auto& one) { return one.op.starts_with(begin); }));
  }

  tenon::onnx::Model model;
  tenon::onnx::Inputs inputs;
  tenon::TensorList outputs;
  std::vector<double> times;
};

double difference(const Side& a, const Side& b) {
  double most = 0;
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    const std::vector<double> x = tenon::cast(a.outputs[i], tenon::DType::f64).to_host<double>();
    const std::vector<double> y = tenon::cast(b.outputs[i], tenon::DType::f64).to_host<double>();
    double apart = 0, greatest = 1e-30;
    for (size_t k = 0; k < x.size(); ++k) {
      apart = std::max(apart, std::fabs(x[k] - y[k]));
      greatest = std::max(greatest, std::fabs(y[k]));
    }
    most = std::max(most, apart / greatest);
  }
  return most;
}

void print_times(const char* name, const std::vector<double>& times) {
  std::printf("\"%s\": [", name);
  for (size_t i = 0; i < times.size(); ++i) std::printf("%s%.2f", i == 0 ? "" : ", ", times[i]);
  std::printf("], ");
}

void compare(const std::string& file, const std::vector<int64_t>& dims, int runs, tenon::Compiling compiling) {
  Side off(file, dims, false, compiling), on(file, dims, true, compiling);
  const bool beside = compiling == tenon::Compiling::beside;
  for (int i = 0; i < (beside ? runs : 2); ++i) off.run();
  for (int i = 0; i < (beside ? runs : 2); ++i) on.run();
  std::printf("{\"model\": \"%s\", ", file.substr(file.rfind('/') + 1).c_str());
  if (beside) {
    print_times("first_runs_without_ms", off.times);
    print_times("first_runs_ms", on.times);
  }
  off.times.clear();
  on.times.clear();
  for (int i = 0; i < runs; ++i) {
    (i % 2 == 0 ? off : on).run();
    (i % 2 == 0 ? on : off).run();
  }
  std::printf(
      "\"launches_without\": %zu, \"launches\": %zu, \"kernels\": %zu, \"difference\": %.2g, \"without_ms\": %.3f, "
      "\"ms\": %.3f, \"ratio\": %.3f}\n",
      off.launches(""), on.launches(""), on.launches("fused"), difference(on, off), off.median(), on.median(),
      on.median() / off.median());
}

}  // namespace

int main(int argc, char** argv) try {
  std::string file;
  std::vector<int64_t> dims;
  int runs = 30;
  tenon::Compiling compiling = tenon::Compiling::wait;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--dims" && i + 1 < argc) {
      std::istringstream list(argv[++i]);
      for (std::string one; std::getline(list, one, ',');) dims.push_back(std::stoll(one));
    } else if (name == "--runs" && i + 1 < argc) {
      runs = std::max(1, std::atoi(argv[++i]));
    } else if (name == "--compile" && i + 1 < argc) {
      if (std::string(argv[++i]) == "beside") compiling = tenon::Compiling::beside;
    } else {
      file = name;
    }
  }
  compare(file, dims, runs, compiling);
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
