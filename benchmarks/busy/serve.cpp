// Measures answers per second of threads that run one model at the same time, each with its own request.
//
//   bench_serve MODEL --dims 1,128 [--threads 4] [--seconds 5]
//
// Integer inputs of a request are ones, other inputs are random; dims that the model leaves open come from --dims, in
// order. Every answer must have the bits of the first one. Prints one JSON line. Answers per second of processor time
// stay stable even if other programs use the processors.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/tensor/tensor.h"
#include "primitives/status/error.h"
#include "sdk/onnx/onnx.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string model;
  std::vector<int64_t> dims;
  int threads = 4;
  double seconds = 5;
};

Arguments read(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const bool has_value = i + 1 < argc;
    if (name == "--threads" && has_value) {
      arguments.threads = std::atoi(argv[++i]);
    } else if (name == "--seconds" && has_value) {
      arguments.seconds = std::atof(argv[++i]);
    } else if (name == "--dims" && has_value) {
      std::istringstream list(argv[++i]);
      for (std::string one; std::getline(list, one, ',');) arguments.dims.push_back(std::stoll(one));
    } else {
      arguments.model = name;
    }
  }
  return arguments;
}

tenon::onnx::Inputs request(const tenon::onnx::Model& model, const std::vector<int64_t>& open_dims) {
  std::mt19937 generator(5);
  std::normal_distribution<float> distribution;
  tenon::onnx::Inputs inputs;
  for (const tenon::onnx::ValueInfo& input : model.inputs()) {
    std::vector<int64_t> dims;
    size_t open = 0;
    int64_t count = 1;
    for (const tenon::onnx::Dim& dim : input.dims) {
      dims.push_back(dim.value >= 0 ? dim.value : open_dims.at(open++));
      count *= dims.back();
    }
    if (input.dtype == tenon::DType::i64) {
      inputs[input.name] =
          tenon::Tensor::from<int64_t>(std::vector<int64_t>(static_cast<size_t>(count), 1), tenon::Dims(dims));
    } else {
      std::vector<float> values(static_cast<size_t>(count));
      for (float& value : values) value = distribution(generator);
      inputs[input.name] = tenon::Tensor::from<float>(values, tenon::Dims(dims));
    }
  }
  return inputs;
}

// Runs until `end` and counts the answers; false if one differs from `want`.
bool serve(const tenon::onnx::Model& model, const tenon::onnx::Inputs& inputs, const std::vector<float>& want,
           Clock::time_point end, std::atomic<int64_t>* answers) {
  while (Clock::now() < end) {
    const std::vector<float> got = model.run(inputs)[0].to_host<float>();
    if (got.size() != want.size() || std::memcmp(got.data(), want.data(), got.size() * sizeof(float)) != 0)
      return false;
    ++*answers;
  }
  return true;
}

int run(const Arguments& arguments) {
  const tenon::onnx::Model model = tenon::onnx::load(arguments.model);
  const tenon::onnx::Inputs first = request(model, arguments.dims);
  const std::vector<float> want = model.run(first)[0].to_host<float>();
  std::atomic<int64_t> answers{0};
  std::atomic<bool> good{true};
  const std::clock_t cpu_begin = std::clock();
  const Clock::time_point begin = Clock::now();
  const Clock::time_point end =
      begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(arguments.seconds));
  std::vector<std::thread> threads;
  for (int i = 0; i < arguments.threads; ++i) {
    threads.emplace_back([&] {
      if (!serve(model, request(model, arguments.dims), want, end, &answers)) good = false;
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const double cpu_seconds = static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC;
  std::printf("{\"threads\": %d, \"answers\": %lld, \"answers_per_s\": %.3f, \"answers_per_cpu_s\": %.3f}\n",
              arguments.threads, static_cast<long long>(answers.load()), static_cast<double>(answers.load()) / seconds,
              static_cast<double>(answers.load()) / cpu_seconds);
  if (!good) std::fprintf(stderr, "An answer has other bits than the first one.\n");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try { return run(read(argc, argv)); } catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
