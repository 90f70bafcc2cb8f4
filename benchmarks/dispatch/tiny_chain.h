// TinyChain: a chain of element-wise ops on four floats, as one segment of the CPU and eagerly.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ops/ops.h"
#include "tests/unit/interpreter/recorded_segment.h"

namespace tenon::bench {

class TinyChain {
 public:
  explicit TinyChain(int64_t length)
      : length_(length),
        recorded_([length](std::span<const Tensor> x) { return TensorList{chain(x[0], length)}; }, {x_}) {}

  // The result of one run, into new memory.
  Tensor run() const {
    TensorList outputs;
    throw_if_error(recorded_.run(std::span(&x_, 1), &outputs));
    return outputs[0];
  }
  Tensor run_eagerly() const { return chain(x_, length_); }

 private:
  // No pass could leave one of them out: relu of a negated value, and back.
  static Tensor chain(Tensor x, int64_t length) {
    for (int64_t i = 0; i < length; ++i) x = i % 2 == 0 ? neg(x) : relu(x);
    return x;
  }

  int64_t length_;
  Tensor x_ = Tensor::from<float>(std::vector<float>{-1.5f, 2.25f, -0.125f, 3.0f}, {4}, Device("cpu"));
  testing::RecordedSegment recorded_;
};

}  // namespace tenon::bench
