// Steps of a decoder that takes the keys and values of all earlier tokens, like llama of export.py.
//
//   bench_decode MODEL --first 128 --last 255 [--logits FILE]
//
// A step has one token; its outputs "present.*" are the next step's "past.*". The cache before the first step comes
// from a formula that measure.py also has. Prints one JSON line: the milliseconds of each step, and the speed at which
// two threads read memory afterwards, which bounds a step. FILE receives the logits of the last step.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/tensor/tensor.h"
#include "primitives/status/error.h"
#include "sdk/onnx/onnx.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string model, logits;
  int64_t first = 128, last = 255;
};

Arguments read(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const bool has_value = i + 1 < argc;
    if (name == "--first" && has_value) {
      arguments.first = std::atoll(argv[++i]);
    } else if (name == "--last" && has_value) {
      arguments.last = std::atoll(argv[++i]);
    } else if (name == "--logits" && has_value) {
      arguments.logits = argv[++i];
    } else {
      arguments.model = name;
    }
  }
  return arguments;
}

bool is_cache(const tenon::onnx::ValueInfo& value) { return value.name.rfind("past.", 0) == 0; }

tenon::Tensor cache(const tenon::onnx::ValueInfo& input, int64_t length) {
  tenon::Dims dims;
  int64_t count = 1;
  for (const tenon::onnx::Dim& dim : input.dims) {
    dims.push_back(dim.value >= 0 ? dim.value : length);
    count *= dims.back();
  }
  std::vector<float> values(static_cast<size_t>(count));
  for (uint32_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((i * 2654435761u) >> 8) / 8388608.0f - 1.0f;
  }
  return tenon::Tensor::from<float>(values, dims);
}

tenon::Tensor number(int64_t value) { return tenon::Tensor::from<int64_t>(std::vector<int64_t>{value}, {1, 1}); }

uint64_t sum(const uint64_t* begin, size_t count) {
  std::array<uint64_t, 32> sums{};
  for (size_t i = 0; i + sums.size() <= count; i += sums.size()) {
    for (size_t k = 0; k < sums.size(); ++k) sums[k] += begin[i + k];
  }
  uint64_t all = 0;
  for (uint64_t one : sums) all += one;
  return all;
}

// Two threads read 512 MB each, ten times: the best, in GB/s.
double read_bandwidth() {
  constexpr size_t kWords = size_t{64} << 20;
  const std::vector<uint64_t> words(2 * kWords, 3);
  double best = 0;
  for (int turn = 0; turn < 10; ++turn) {
    std::array<uint64_t, 2> sums{};
    const Clock::time_point begin = Clock::now();
    std::thread other([&] { sums[1] = sum(words.data() + kWords, kWords); });
    sums[0] = sum(words.data(), kWords);
    other.join();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (sums[0] == sums[1]) best = std::max(best, static_cast<double>(2 * kWords * sizeof(uint64_t)) / seconds / 1e9);
  }
  return best;
}

int run(const Arguments& arguments) {
  const tenon::onnx::Model model = tenon::onnx::load(arguments.model);
  tenon::onnx::Inputs inputs;
  for (const tenon::onnx::ValueInfo& input : model.inputs()) {
    if (is_cache(input)) inputs[input.name] = cache(input, arguments.first);
  }
  std::vector<float> logits;
  std::printf("{\"steps_ms\": [");
  for (int64_t step = arguments.first; step <= arguments.last; ++step) {
    inputs["token"] = number(step * 7919 % 32000);
    inputs["position"] = number(step);
    if (step == arguments.first) model.run(inputs);  // the cost of the very first run is another row
    const Clock::time_point begin = Clock::now();
    const tenon::TensorList outputs = model.run(inputs);
    logits = outputs[0].to_host<float>();
    const double time = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    std::printf("%s%.3f", step == arguments.first ? "" : ", ", time);
    for (size_t i = 1; i < outputs.size(); ++i) {
      inputs["past." + model.outputs()[i].name.substr(std::string("present.").size())] = outputs[i];
    }
  }
  std::printf("], \"read_gbs\": %.2f}\n", read_bandwidth());
  if (!arguments.logits.empty()) {
    std::ofstream file(arguments.logits, std::ios::binary);
    file.write(reinterpret_cast<const char*>(logits.data()), static_cast<std::streamsize>(logits.size() * 4));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return run(read(argc, argv)); } catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
