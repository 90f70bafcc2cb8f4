// TinyChain: a chain of element-wise ops on four floats, as a program on the CPU and eagerly.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/execute/executable.h"
#include "core/graph/recorder.h"
#include "core/ops/ops.h"

namespace tenon::bench {

class TinyChain {
 public:
  explicit TinyChain(int64_t length) : length_(length), program_(recorded(length)) {}

  // The result of one run, into new memory.
  Tensor run() const { return graph::run(program_, std::span(&x_, 1))[0]; }
  Tensor run_eagerly() const { return chain(x_, length_); }

 private:
  // No pass may remove an op of the chain: relu of a negated value, then negated back.
  static Tensor chain(Tensor x, int64_t length) {
    for (int64_t i = 0; i < length; ++i) x = i % 2 == 0 ? neg(x) : relu(x);
    return x;
  }

  static graph::Executable recorded(int64_t length) {
    graph::Recorder recorder(Device("cpu"));
    const InterpreterScope scope(recorder);
    const Tensor result = chain(recorder.input(DType::f32, {4}), length);
    return graph::prepare(recorder.finish(std::span(&result, 1)));
  }

  int64_t length_;
  Tensor x_ = Tensor::from<float>(std::vector<float>{-1.5f, 2.25f, -0.125f, 3.0f}, {4}, Device("cpu"));
  graph::Executable program_;
};

}  // namespace tenon::bench
