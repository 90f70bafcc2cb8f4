// Host loops that search, count and select: positions in sorted lists, medians, counts of integers, masks.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/interpreter/host_loops/parts.h"
#include "core/ops/attributes.h"
#include "core/ops/floating_point.h"

namespace tenon::host_loops {
namespace {

// The positions at which values would be inserted into `list`. Of the elements from a position on, the first half is
// skipped if its last element comes before the value; NaN comes after all numbers. Handles several values at once,
// since each step depends on the previous one.
template <class T, bool kRight>
inline void search_some(const T* list, int32_t length, const T* values, int64_t* to, int32_t n) {
  int32_t position[16] = {};
  while (length > 0) {
    const int32_t half = (length + 1) / 2;
    const T* const probe = list + (half - 1);
    for (int32_t i = 0; i < n; ++i) {
      const T element = probe[position[i]];
      const bool ends = kRight ? element > values[i] : element >= values[i];
      position[i] += (static_cast<int32_t>(ends) - 1) & half;
    }
    length -= half;
  }
  for (int32_t i = 0; i < n; ++i) to[i] = position[i];
}

template <class T, bool kRight>
void search_list(const T* list, int32_t length, const T* values, int64_t* to, int64_t count) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) search_some<T, kRight>(list, length, values + i, to + i, 16);
  search_some<T, kRight>(list, length, values + i, to + i, static_cast<int32_t>(count - i));
}

template <class T>
void search(const Tensor& lists, const Tensor& values, int64_t* to, bool right) {
  const auto length = static_cast<int32_t>(lists.dim(-1));
  const int64_t rows = lists.rank() == 1 ? 1 : values.elements() / values.dim(-1);
  const int64_t each = values.elements() / rows;
  const auto run = right ? search_list<T, true> : search_list<T, false>;
  for (int64_t row = 0; row < rows; ++row) {
    run(elements_of<T>(lists) + row * length, length, elements_of<T>(values) + row * each, to + row * each, each);
  }
}

bool find_places(const OpCall& call, size_t list, size_t value, bool out_int32, bool right) {
  if (!at_hand(call, list) || !at_hand(call, value) || out_int32) return false;
  const Tensor &lists = *call.inputs[list], &values = *call.inputs[value];
  if (lists.dtype() != values.dtype() || lists.device() != values.device() || lists.rank() == 0) return false;
  if (lists.rank() > 1 && lists.rank() != values.rank()) return false;
  for (int32_t k = 0; k + 1 < lists.rank(); ++k) {
    if (lists.dim(k) != values.dim(k)) return false;
  }
  if (lists.dim(-1) > std::numeric_limits<int32_t>::max() / 2) return false;
  const DType dtype = lists.dtype();
  if (dtype != DType::f32 && dtype != DType::f64 && dtype != DType::i32 && dtype != DType::i64) return false;
  Tensor result = made(values.dims(), DType::i64, values.impl()->device);
  auto* to = static_cast<int64_t*>(result.data());
  const DefaultFloatingPoint floating_point;
  switch (dtype) {
    case DType::f32: search<float>(lists, values, to, right); break;
    case DType::f64: search<double>(lists, values, to, right); break;
    case DType::i32: search<int32_t>(lists, values, to, right); break;
    default: search<int64_t>(lists, values, to, right);
  }
  call.outputs[0] = std::move(result);
  return true;
}

template <class T>
void choose(void* to, const void* input, const uint8_t* mask, const void* source, int64_t count, int64_t last) {
  auto* result = static_cast<T*>(to);
  const auto *x = static_cast<const T*>(input), *next = static_cast<const T*>(source);
  int64_t taken = 0;
  for (int64_t i = 0; i < count; ++i) {
    const bool takes = mask[i] != 0;
    const T here = x[i], there = next[std::min(taken, last)];
    result[i] = here ^ ((here ^ there) & static_cast<T>(-static_cast<T>(takes)));  // a branch would be mispredicted
    taken += static_cast<int64_t>(takes);
  }
}

// counts[x] for every element. Increments of equal elements depend on each other, so short counts use four lists in
// turn; they have 32 bits, so that more of them fit into the nearest cache.
template <class T>
void count_elements(const T* from, int64_t count, int64_t* counts, int64_t length) {
  int64_t i = 0;
  if (length <= count / 8 && length <= 4096 && count <= INT64_C(0xffffffff)) {
    std::vector<uint32_t> all(static_cast<size_t>(4 * length));
    uint32_t* const lists[] = {all.data(), all.data() + length, all.data() + 2 * length, all.data() + 3 * length};
    for (; i + 4 <= count; i += 4) {
      for (int64_t k = 0; k < 4; ++k) ++lists[k][from[i + k]];
    }
    for (int64_t k = 0; k < length; ++k) {
      for (const uint32_t* list : lists) counts[k] += list[k];
    }
  }
  for (; i < count; ++i) ++counts[from[i]];
}

// Like the function above, for many elements in one pass that also finds the greatest element; uses four consecutive
// lists of kMostCounted. Returns the greatest element; -1: some element is negative or not below kMostCounted.
constexpr int64_t kMostCounted = 4096;
template <class T>
int64_t count_in_one_pass(const T* from, int64_t count, std::vector<uint32_t>* lists) {
  lists->assign(static_cast<size_t>(4 * kMostCounted), 0);
  uint32_t* const all = lists->data();
  T greatest = 0;
  bool fits = true;
  by_blocks(
      count, [&](int64_t first, int32_t n) __attribute__((always_inline)) {
        T low = 0, high = greatest;
        for (int32_t i = 0; i < n; ++i) {
          low = std::min(low, from[first + i]);
          high = std::max(high, from[first + i]);
        }
        fits = fits && low >= 0 && static_cast<int64_t>(high) < kMostCounted;
        if (!fits) return;
        greatest = high;
        int32_t i = 0;
        for (; i + 4 <= n; i += 4) {
          for (int64_t k = 0; k < 4; ++k) ++all[k * kMostCounted + static_cast<int64_t>(from[first + i + k])];
        }
        for (; i < n; ++i) ++all[from[first + i]];
      });
  return fits ? static_cast<int64_t>(greatest) : -1;
}

template <class T>
bool count_into(const OpCall& call, int64_t least_length) {
  constexpr int64_t most = int64_t{1} << 28, many = int64_t{1} << 17;  // the limits of counts and of elements
  const TensorImpl& input = *call.inputs[0]->impl();
  const T* from = elements_of<T>(*call.inputs[0]);
  if (input.elements >= many && input.elements <= INT64_C(0xffffffff) && least_length <= most) {
    std::vector<uint32_t> lists;
    const int64_t greatest_counted = count_in_one_pass(from, input.elements, &lists);
    if (greatest_counted >= 0) {
      const int64_t length = std::max(least_length, greatest_counted + 1);
      Tensor result = made(Dims{length}, DType::i64, input.device);
      auto* const counts = static_cast<int64_t*>(result.data());
      std::memset(counts, 0, static_cast<size_t>(length) * sizeof(int64_t));
      for (int64_t i = 0; i < 4 * kMostCounted; ++i) {
        if (i % kMostCounted <= greatest_counted) counts[i % kMostCounted] += lists[static_cast<size_t>(i)];
      }
      call.outputs[0] = std::move(result);
      return true;
    }
  }
  T least = from[0], greatest = from[0];
  by_blocks(
      input.elements, [&](int64_t first, int32_t n) __attribute__((always_inline)) {
        T low = least, high = greatest;
        for (int32_t i = 0; i < n; ++i) {
          low = std::min(low, from[first + i]);
          high = std::max(high, from[first + i]);
        }
        least = low;
        greatest = high;
      });
  if (least < 0 || static_cast<int64_t>(greatest) >= most || least_length > most) return false;
  const int64_t length = std::max(least_length, static_cast<int64_t>(greatest) + 1);
  Tensor result = made(Dims{length}, DType::i64, input.device);
  auto* const counts = static_cast<int64_t*>(result.data());
  std::memset(counts, 0, static_cast<size_t>(length) * sizeof(int64_t));
  count_elements(from, input.elements, counts, length);
  call.outputs[0] = std::move(result);
  return true;
}

}  // namespace

bool run_searchsorted(const OpCall& call) {
  const auto& a = call.attributes_as<SearchsortedAttributes>();
  return find_places(call, 0, 1, a.out_int32 != 0, a.right != 0);
}
bool run_bucketize(const OpCall& call) {
  const auto& a = call.attributes_as<BucketizeAttributes>();
  if (call.inputs[1] == nullptr || !call.inputs[1]->defined() || call.inputs[1]->rank() != 1) return false;
  return find_places(call, 1, 0, a.out_int32 != 0, a.right != 0);
}

// The median of all elements. Floats become unsigned keys in the same order, with NaN last.
bool run_median(const OpCall& call) {
  if (call.attributes_as<MedianAttributes>().overload != 0 || !at_hand(call, 0)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  if (input.dtype != DType::f32) return false;
  const float* from = elements_of<float>(*call.inputs[0]);
  const int64_t count = input.elements;
  const auto key = [](float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    return bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000U);
  };
  float median = std::numeric_limits<float>::quiet_NaN();
  bool broken = false;
  for (int64_t i = 0; i < count; ++i) broken |= std::isunordered(from[i], from[i]);
  if (!broken) {
    std::vector<uint32_t> keys;
    int64_t wanted = (count - 1) / 2;
    constexpr int32_t shift = 20;
    if (count > 16384) {  // keep only the elements that share the leading bits of the median
      std::vector<int64_t> counts(size_t{1} << (32 - shift));
      for (int64_t i = 0; i < count; ++i) ++counts[key(from[i]) >> shift];
      uint32_t bucket = 0;
      while (wanted >= counts[bucket]) wanted -= counts[bucket++];
      keys.reserve(static_cast<size_t>(counts[bucket]));
      for (int64_t i = 0; i < count; ++i) {
        if (key(from[i]) >> shift == bucket) keys.push_back(key(from[i]));
      }
    } else {
      keys.resize(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) keys[static_cast<size_t>(i)] = key(from[i]);
    }
    std::nth_element(keys.begin(), keys.begin() + wanted, keys.end());
    const uint32_t found = keys[static_cast<size_t>(wanted)];
    median = std::bit_cast<float>((found & 0x80000000U) != 0 ? found ^ 0x80000000U : ~found);
  }
  Tensor result = made(Dims(), DType::f32, input.device);
  *static_cast<float*>(result.data()) = median;
  call.outputs[0] = std::move(result);
  return true;
}

// Only without weights.
bool run_bincount(const OpCall& call) {
  const int64_t least_length = call.attributes_as<BincountAttributes>().minlength;
  if (!at_hand(call, 0) || call.inputs[0]->rank() != 1 || least_length < 0) return false;
  if (call.inputs.size() > 1 && call.inputs[1] != nullptr) return false;
  switch (call.inputs[0]->dtype()) {
    case DType::i64: return count_into<int64_t>(call, least_length);
    case DType::i32: return count_into<int32_t>(call, least_length);
    case DType::u8: return count_into<uint8_t>(call, least_length);
    default: return false;
  }
}

bool run_masked_scatter(const OpCall& call) {
  if (!at_hand(call, 0) || !at_hand(call, 1) || !alike(call, 2)) return false;
  const TensorImpl &input = *call.inputs[0]->impl(), &mask = *call.inputs[1]->impl(), &source = *call.inputs[2]->impl();
  if (mask.dtype != DType::boolean || !(mask.dims == input.dims) || mask.device != input.device) return false;
  const int64_t size = dtype_size(input.dtype);
  if (size != 2 && size != 4 && size != 8) return false;
  const auto* chosen = elements_of<uint8_t>(*call.inputs[1]);
  int64_t wanted = 0;
  for (int64_t i = 0; i < input.elements; ++i) wanted += chosen[i] != 0 ? 1 : 0;
  if (wanted > source.elements) return false;
  Tensor result = made(input.dims, input.dtype, input.device);
  const auto run = size == 2 ? choose<uint16_t> : size == 4 ? choose<uint32_t> : choose<uint64_t>;
  run(result.data(), call.inputs[0]->data(), chosen, call.inputs[2]->data(), input.elements, source.elements - 1);
  call.outputs[0] = std::move(result);
  return true;
}

}  // namespace tenon::host_loops
