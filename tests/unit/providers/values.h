// Operands of any dtype and layout whose elements are known as numbers.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "sdk/provider/float_formats.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {

// `gaps`: every second element along each axis. `slices`: rows that are parts of rows twice as long. `repeated`: all
// images of SRC are one.
enum class Order : uint8_t { rows, channels_last, gaps, slices, repeated };

// Filled with random numbers: floats in [-1, 1), integers in [0, 100). Numbers are at most 2^53 in magnitude.
class Values {
 public:
  Values(int32_t role, int32_t dtype, std::vector<int64_t> dims, Order order, std::mt19937* generator)
      : desc_(dense(role, dtype, dims)) {
    const auto rank = static_cast<int32_t>(dims.size());
    if (order == Order::channels_last && rank > 2) {
      int64_t step = dims[1];
      desc_.strides[1] = 1;
      for (int32_t axis = rank; axis-- > 0;) {
        if (axis == 1) continue;
        desc_.strides[axis] = step;
        step *= dims[static_cast<size_t>(axis)];
      }
    }
    for (int32_t axis = 0; axis < rank; ++axis) {
      if (order == Order::gaps || (order == Order::slices && axis + 1 < rank)) desc_.strides[axis] *= 2;
    }
    if (order == Order::repeated && role == EP_ROLE_SRC) desc_.strides[0] = 0;
    bytes_.assign(static_cast<size_t>(extent(desc_) * size()), '\x7f');
    std::uniform_real_distribution<double> range(-1, 1);
    for (int64_t i = 0; i < count(); ++i) {
      const double number = range(*generator);
      set(i, is_float() ? number : static_cast<double>(static_cast<int64_t>(50 * (number + 1))));
    }
  }

  const ep_operand_desc& desc() const { return desc_; }
  void* address() { return bytes_.data(); }
  bool is_float() const {
    return desc_.dtype == EP_DTYPE_f16 || desc_.dtype == EP_DTYPE_bf16 || desc_.dtype == EP_DTYPE_f32 ||
           desc_.dtype == EP_DTYPE_f64;
  }
  int64_t count() const {
    int64_t count = 1;
    for (int32_t axis = 0; axis < desc_.rank; ++axis) count *= desc_.dims[axis];
    return count;
  }
  // Element number `i` in row-major order.
  double at(int64_t i) const {
    const char* const from = bytes_.data() + offset(i) * size();
    switch (desc_.dtype) {
      case EP_DTYPE_f64: return read<double>(from);
      case EP_DTYPE_f32: return static_cast<double>(read<float>(from));
      case EP_DTYPE_f16: return static_cast<double>(F16::to_f32(read<uint16_t>(from)));
      case EP_DTYPE_bf16: return static_cast<double>(bf16_to_f32(read<uint16_t>(from)));
      case EP_DTYPE_i8: return read<int8_t>(from);
      case EP_DTYPE_u8: return read<uint8_t>(from);
      case EP_DTYPE_i16: return read<int16_t>(from);
      case EP_DTYPE_u16: return read<uint16_t>(from);
      case EP_DTYPE_i32: return read<int32_t>(from);
      case EP_DTYPE_u32: return read<uint32_t>(from);
      case EP_DTYPE_u64: return static_cast<double>(read<uint64_t>(from));
      default: return static_cast<double>(read<int64_t>(from));
    }
  }
  std::vector<double> numbers() const {
    std::vector<double> numbers;
    for (int64_t i = 0; i < count(); ++i) numbers.push_back(at(i));
    return numbers;
  }
  void set(int64_t i, double value) {
    char* const to = bytes_.data() + offset(i) * size();
    const auto single = static_cast<float>(value);
    switch (desc_.dtype) {
      case EP_DTYPE_f64: return write(to, value);
      case EP_DTYPE_f32: return write(to, single);
      case EP_DTYPE_f16: return write(to, static_cast<uint16_t>(F16::from_f32(single)));
      case EP_DTYPE_bf16: return write(to, static_cast<uint16_t>(bf16_from_f32(single)));
      default: break;
    }
    const auto integer = static_cast<int64_t>(value);
    std::memcpy(to, &integer, static_cast<size_t>(size()));
  }

 private:
  template <class T>
  static T read(const char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  template <class T>
  static void write(char* to, T value) {
    std::memcpy(to, &value, sizeof value);
  }

  int64_t size() const {
    switch (desc_.dtype) {
      case EP_DTYPE_f64:
      case EP_DTYPE_i64:
      case EP_DTYPE_u64: return 8;
      case EP_DTYPE_f32:
      case EP_DTYPE_i32:
      case EP_DTYPE_u32: return 4;
      case EP_DTYPE_i8:
      case EP_DTYPE_u8: return 1;
      default: return 2;
    }
  }
  int64_t offset(int64_t i) const {
    int64_t sum = 0;
    for (int32_t axis = desc_.rank; axis-- > 0;) {
      sum += i % desc_.dims[axis] * desc_.strides[axis];
      i /= desc_.dims[axis];
    }
    return sum;
  }

  ep_operand_desc desc_;
  std::vector<char> bytes_;
};

}  // namespace tenon::provider
