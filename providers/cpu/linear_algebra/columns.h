// Storage for columns that kernels of any target can read in whole vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::provider::cpu {

// Zero-initialised columns of `rows` elements, aligned to 64 bytes, `stride` elements apart. The padding after the
// rows, which fills the last vector, is 0 too.
class Columns {
 public:
  static constexpr int widest = 16;  // lanes

  Columns(int64_t rows, int64_t count) : stride_((rows + widest - 1) / widest * widest) {
    room_.resize(static_cast<size_t>(count * stride_ + widest));
    const auto beyond = reinterpret_cast<uintptr_t>(room_.data()) / sizeof(float) % widest;
    first_ = room_.data() + (beyond == 0 ? 0 : widest - beyond);
  }
  Columns(Columns&&) = default;

  float* at(int64_t column) { return first_ + column * stride_; }
  const float* at(int64_t column) const { return first_ + column * stride_; }
  int64_t stride() const { return stride_; }

 private:
  int64_t stride_;
  std::vector<float> room_;
  float* first_;
};

}  // namespace tenon::provider::cpu
