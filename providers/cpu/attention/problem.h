// The problem of one launch of attention: sizes, operands, and the keys that each query sees.
#pragma once

#include <algorithm>

#include "providers/cpu/elementwise/convert.h"
#include "providers/cpu/movement/bad_index.h"
#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// An operand of rank 4.
struct Matrices {
  char* base = nullptr;  // NULL if absent
  int64_t strides[4] = {};
  int32_t dtype = 0;
  int32_t size = 0;  // bytes per element

  Matrices() = default;
  Matrices(const ep_primitive_desc& desc, const ep_launch& launch, int32_t role) {
    const int32_t index = find_operand(desc, role);
    if (index < 0) return;
    base = address_of(launch.operands[index]);
    dtype = desc.operands[index].dtype;
    size = dtype_size(dtype);
    std::copy_n(shape_of(desc.operands[index], launch.shapes, static_cast<uint32_t>(index)).strides, 4, strides);
  }
  char* at(int64_t batch, int64_t head, int64_t row) const {
    return base + (batch * strides[0] + head * strides[1] + row * strides[2]) * size;
  }
  // True if rows are contiguous and of type `compute`, so kernels can use them in place.
  bool direct(int32_t compute) const { return dtype == compute && strides[3] == 1; }
};

// The keys from `first` up to, but not including, `end`.
struct KeyRange {
  int64_t first, end;
};

struct AttentionSizes {
  int64_t batch, heads, groups, queries, keys, width, columns;

  AttentionSizes(const ep_primitive_desc& desc, const ep_shape* shapes) {
    const auto dims = [&](int32_t role) {
      const int32_t index = find_operand(desc, role);
      return shape_of(desc.operands[index], shapes, static_cast<uint32_t>(index)).dims;
    };
    const int64_t* query = dims(EP_ROLE_SRC);
    const int64_t* value = dims(EP_ROLE_SRC_C);
    batch = query[0];
    heads = query[1];
    queries = query[2];
    width = query[3];
    groups = value[1];
    keys = value[2];
    columns = value[3];
  }
};

struct AttentionProblem : AttentionSizes {
  Matrices dst, log_sum, query, key, value, bias;
  ep_attention_attributes at;
  double scale;
  double softcap;

  AttentionProblem(const ep_primitive_desc& desc, const ep_launch& launch)
      : AttentionSizes(desc, launch.shapes),
        dst(desc, launch, EP_ROLE_DST),
        log_sum(desc, launch, EP_ROLE_LOG_SUM),
        query(desc, launch, EP_ROLE_SRC),
        key(desc, launch, EP_ROLE_SRC_B),
        value(desc, launch, EP_ROLE_SRC_C),
        bias(desc, launch, EP_ROLE_BIAS),
        at(desc.attributes.attention),
        scale(launch.scalars[0].value.f64),
        softcap(launch.scalar_count > 1 ? launch.scalars[1].value.f64 : 0) {
    const int32_t index = find_operand(desc, EP_ROLE_LENGTHS);
    if (index < 0) return;
    lengths_ = address_of(launch.operands[index]);
    length_stride_ = shape_of(desc.operands[index], launch.shapes, static_cast<uint32_t>(index)).strides[0];
    wide_lengths_ = desc.operands[index].dtype == EP_DTYPE_i64;
  }

  int64_t head_of_key(int64_t head) const { return head / (heads / groups); }
  int64_t length(int64_t b) const {
    if (lengths_ == nullptr) return keys;
    return std::clamp<int64_t>(index_at(lengths_, b * length_stride_, wide_lengths_), 0, keys);
  }
  // The keys that query `i` of a batch with `count` keys sees, before BIAS masks any.
  KeyRange range(int64_t count, int64_t i) const {
    const int64_t position = i + (at.align == EP_ATTENTION_END ? count - queries : 0);
    KeyRange range{0, count};
    if (at.before >= 0) range.first = std::max<int64_t>(0, position - std::min(at.before, keys + queries));
    if (at.after >= 0) range.end = std::min(count, position + std::min(at.after, keys + queries) + 1);
    if (range.first >= range.end) return {0, 0};
    return range;
  }
  void store_log_sum(int64_t b, int64_t head, int64_t i, double result) const {
    if (log_sum.base == nullptr) return;
    char* to = log_sum.at(b, head, i);
    if (log_sum.dtype == EP_DTYPE_f64) {
      *reinterpret_cast<double*>(to) = result;
    } else {
      *reinterpret_cast<float*>(to) = static_cast<float>(result);
    }
  }

 private:
  const char* lengths_ = nullptr;
  int64_t length_stride_ = 0;
  bool wide_lengths_ = false;
};

}  // namespace tenon::provider::cpu
