#include "core/global/part_reader.h"

#include <cstring>
#include <optional>
#include <vector>

namespace tenon::global {
namespace {

// If runs of elements are shorter than kLongRun, the bytes between them are read too, at most kMost bytes at once.
constexpr int64_t kLongRun = 16 << 10, kMost = 4 << 20;

// Adds an axis to a number, to treat it as a list of one.
Box with_axis(Box box) {
  if (box.dims.rank() == 0) box = {Dims{0}, Dims{1}};
  return box;
}

Dims byte_strides(const Dims& dims, DType dtype) {
  Dims strides = Dims::filled(dims.rank(), dtype_size(dtype));
  for (int32_t axis = dims.rank() - 2; axis >= 0; --axis) strides[axis] = strides[axis + 1] * dims[axis + 1];
  return strides;
}

class PartReader {
 public:
  PartReader(const files::FileReader& file, const Box& stored, const Box& wanted, const Box& piece, DType dtype)
      : file_(file),
        dims_(piece.dims),
        in_file_(byte_strides(stored.dims, dtype)),
        in_memory_(byte_strides(wanted.dims, dtype)),
        run_axis_(dims_.rank() - 1) {
    while (run_axis_ > 0 && dims_[run_axis_] == stored.dims[run_axis_] && dims_[run_axis_] == wanted.dims[run_axis_]) {
      --run_axis_;
    }
    run_ = dims_[run_axis_] * in_file_[run_axis_];
  }

  int64_t offset_in_file(const Box& stored, const Box& piece) const { return offset(stored, piece, in_file_); }
  int64_t offset_in_memory(const Box& wanted, const Box& piece) const { return offset(wanted, piece, in_memory_); }

  // Reads the elements at one position along each axis before `axis`.
  void read(int32_t axis, uint64_t from, char* to) {
    if (axis == run_axis_) return file_.read(from, to, static_cast<uint64_t>(run_));
    const int64_t span = span_of(axis);
    if (run_ < kLongRun && span <= kMost) {
      room_.resize(static_cast<size_t>(span));
      file_.read(from, room_.data(), room_.size());
      return pick(axis, room_.data(), to);
    }
    for (int64_t i = 0; i < dims_[axis]; ++i) {
      read(axis + 1, from + static_cast<uint64_t>(i * in_file_[axis]), to + i * in_memory_[axis]);
    }
  }

 private:
  static int64_t offset(const Box& whole, const Box& piece, const Dims& strides) {
    int64_t bytes = 0;
    for (int32_t axis = 0; axis < strides.rank(); ++axis)
      bytes += (piece.begin[axis] - whole.begin[axis]) * strides[axis];
    return bytes;
  }
  // Bytes from the first to the last.
  int64_t span_of(int32_t axis) const {
    int64_t span = run_;
    for (; axis < run_axis_; ++axis) span += (dims_[axis] - 1) * in_file_[axis];
    return span;
  }
  void pick(int32_t axis, const char* from, char* to) const {
    if (axis == run_axis_) {
      std::memcpy(to, from, static_cast<size_t>(run_));
      return;
    }
    for (int64_t i = 0; i < dims_[axis]; ++i) pick(axis + 1, from + i * in_file_[axis], to + i * in_memory_[axis]);
  }

  const files::FileReader& file_;
  Dims dims_, in_file_, in_memory_;
  int32_t run_axis_;  // from this axis on, the elements are contiguous in file and memory
  int64_t run_;       // bytes of such a run
  std::vector<char> room_;
};

}  // namespace

void read_part(const files::FileReader& file, uint64_t begin, const Box& stored, DType dtype, const Box& wanted,
               void* memory) {
  const Box from = with_axis(stored), to = with_axis(wanted);
  const std::optional<Box> piece = overlap(from, to);
  if (!piece) return;
  PartReader reader(file, from, to, *piece, dtype);
  reader.read(0, begin + static_cast<uint64_t>(reader.offset_in_file(from, *piece)),
              static_cast<char*>(memory) + reader.offset_in_memory(to, *piece));
}

}  // namespace tenon::global
