// libtorch doing the same work, behind plain functions, so that its headers are compiled once. Inference mode
// throughout.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace tenon::bench {

class Torch {
 public:
  // Inputs a, b: f32 tensors of `elements` elements, filled from `values`.
  Torch(const float* values, int64_t elements);
  ~Torch();

  static std::string label(int threads);  // "libtorch 1.13.1, 1 thread"; sets its thread count
  void relu(int64_t n);
  void add(int64_t n);
  void view(int64_t n);  // [elements] as [elements/2, 2]
  void add_out(int64_t n);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::bench
