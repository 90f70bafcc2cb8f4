// Channels: iterates over tensors of one shape, a block of channels at a time. A chunk is a number of positions of a
// block, as dense rows of 16 lanes. If channels are contiguous, each lane is a channel, and the last block may have
// fewer than 16. Otherwise a block is one channel, and its positions fill the lanes one after the other.
#pragma once

#include <algorithm>
#include <cstdint>

#include "providers/cpu/rows/row.h"

namespace tenon::provider::cpu {

class Channels {
 public:
  static constexpr int64_t lanes = 16;
  static constexpr int64_t chunk = 4096;  // elements of a buffer

  // Adds a tensor and returns its number. All tensors have the same dims.
  int32_t add(const OperandShape& shape, char* base);
  // Called after the last add. Lanes are channels if this axis has unit stride in every tensor and the innermost axis
  // does not.
  void begin(int32_t axis);

  int64_t blocks() const { return (channels_ + width() - 1) / width(); }
  int64_t positions() const { return positions_; }
  bool lane_is_channel() const { return by_channel_; }
  // The first channel of block `b`, and the number of its channels.
  int64_t first(int64_t b) const { return b * width(); }
  int64_t count(int64_t b) const { return std::min(width(), channels_ - first(b)); }

  // Calls body(run, start, n) for each chunk of block `b`: n elements if a block is one channel, else n rows of lanes.
  template <class Body>
  void for_each_chunk(Body&& body) const {
    const int64_t length = rank_ == 0 ? 1 : dims_[rank_ - 1];
    const int64_t step = by_channel_ ? chunk / lanes : chunk;
    for (int64_t run = 0; run < positions_ / length; ++run) {
      for (int64_t start = 0; start < length; start += step) body(run, start, std::min(step, length - start));
    }
  }

  // Returns the elements of a chunk of tensor `t`: in place, or copied to `buffer`, where unused lanes are 0.
  template <class T>
  const T* read(const RowFormat& format, int32_t t, int64_t b, int64_t run, int64_t start, int64_t n, T* buffer) const {
    const char* from = at(format, t, b, run, start);
    const int64_t stride = stride_of(t);
    if (!by_channel_) {
      if (format.same && stride == 1) return reinterpret_cast<const T*>(from);
      format.read(buffer, 1, from, stride, n);
      return buffer;
    }
    const int64_t used = count(b);
    for (int64_t i = 0; i < n; ++i) {
      T* const row = buffer + i * lanes;
      if (used < lanes) std::fill_n(row, lanes, T{0});
      if (format.same && used == lanes) {
        std::copy_n(reinterpret_cast<const T*>(from + i * stride * format.size), lanes, row);
      } else if (format.same) {
        std::copy_n(reinterpret_cast<const T*>(from + i * stride * format.size), used, row);
      } else {
        format.read(row, 1, from + i * stride * format.size, 1, used);
      }
    }
    return buffer;
  }

  template <class T>
  void write(const RowFormat& format, int32_t t, int64_t b, int64_t run, int64_t start, int64_t n,
             const T* values) const {
    char* to = at(format, t, b, run, start);
    const int64_t stride = stride_of(t);
    if (!by_channel_) return format.write(to, stride, values, 1, n);
    if (format.same && count(b) == lanes) {
      for (int64_t i = 0; i < n; ++i) {
        std::copy_n(values + i * lanes, lanes, reinterpret_cast<T*>(to + i * stride * format.size));
      }
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      format.write(to + i * stride * format.size, 1, values + i * lanes, 1, count(b));
    }
  }

 private:
  static constexpr int32_t most = 3;  // most tensors

  int64_t width() const { return by_channel_ ? lanes : 1; }
  int64_t stride_of(int32_t t) const { return rank_ == 0 ? 1 : strides_[t][rank_ - 1]; }
  char* at(const RowFormat& format, int32_t t, int64_t b, int64_t run, int64_t start) const;

  OperandShape shapes_[most];
  char* bases_[most] = {};
  int32_t tensors_ = 0;
  bool by_channel_ = false;
  int64_t channels_ = 1;
  int64_t positions_ = 1;
  int64_t channel_strides_[most] = {};
  // The other axes, merged where all tensors have compatible strides.
  int32_t rank_ = 0;
  int64_t dims_[EP_MAX_RANK] = {};
  int64_t strides_[most][EP_MAX_RANK] = {};
};

}  // namespace tenon::provider::cpu
