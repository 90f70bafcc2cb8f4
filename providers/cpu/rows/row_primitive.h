// RowPrimitive: a primitive that loops over independent rows and divides them among threads.
#pragma once

#include <algorithm>

#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {

class RowPrimitive : public ep_primitive {
 public:
  // Copies `desc`. Each thread gets a buffer of `rows_of_buffer` rows with row_length() elements each.
  RowPrimitive(const ep_device& on, const ep_primitive_desc& desc, int64_t rows_of_buffer);
  uint64_t workspace(const ep_shape* shapes) const override;
  bool has_workspace() const override { return rows_of_buffer_ != 0; }

 protected:
  OperandShape shape(const ep_shape* shapes, int32_t index) const {
    return shape_of(desc_.operands[index], shapes, static_cast<uint32_t>(index));
  }
  // The number of elements of the longest row.
  virtual int64_t row_length(const ep_shape* shapes) const = 0;

  // Calls body(begin, end, buffer) for each part of `rows`, with the buffer of the calling thread.
  template <class Body>
  void for_rows(const ep_launch& launch, int64_t rows, int64_t nanoseconds, const Body& body) const {
    const int64_t length = row_length(launch.shapes);
    parallel(device->threads, nanoseconds, [&](int32_t part, int32_t parts) {
      const int64_t begin = rows * part / parts;
      const int64_t end = rows * (part + 1) / parts;
      if (begin >= end) return;
      if (length > stack_row) {
        return body(begin, end, address_of(launch.workspace) + runner() * rows_of_buffer_ * length * 8);
      }
      alignas(64) char buffer[max_rows * stack_row * 8];
      body(begin, end, buffer);
    });
  }

  static constexpr int64_t max_rows = 3;
  ep_primitive_desc desc_;

 private:
  int32_t threads_;
  int64_t rows_of_buffer_;
};

}  // namespace tenon::provider::cpu
