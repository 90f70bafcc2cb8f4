#include "providers/cpu/index/strided_copy.h"

#include "providers/cpu/map/convert.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

void fold(StridedCopy* copy) {
  int32_t kept = 0;
  for (int32_t axis = 0; axis < copy->rank; ++axis) {
    if (copy->dims[axis] == 1) continue;
    const bool joins = kept > 0 && copy->dst_strides[kept - 1] == copy->dims[axis] * copy->dst_strides[axis] &&
                       copy->src_strides[kept - 1] == copy->dims[axis] * copy->src_strides[axis];
    if (joins) {
      --kept;
      copy->dims[kept] *= copy->dims[axis];
    } else {
      copy->dims[kept] = copy->dims[axis];
    }
    copy->dst_strides[kept] = copy->dst_strides[axis];
    copy->src_strides[kept] = copy->src_strides[axis];
    ++kept;
  }
  if (kept == 0) {
    copy->dims[0] = copy->dst_strides[0] = copy->src_strides[0] = 1;
    kept = 1;
  }
  copy->rank = kept;
}

}  // namespace

void strided_copy(StridedCopy copy, char* dst, const char* src, int32_t threads) {
  fold(&copy);
  const ConvertFunction move = move_elements(copy.size);
  const int32_t last = copy.rank - 1;
  const int64_t length = copy.dims[last];
  int64_t rows = 1;
  for (int32_t axis = 0; axis < last; ++axis) rows *= copy.dims[axis];
  // One long row is cut too.
  const int64_t parts = rows >= threads ? 1 : (length + 65535) / 65536;
  parallel(threads, rows * length * copy.size / 8, [&](int32_t thread, int32_t width) {
    const int64_t units = rows * parts;
    for (int64_t unit = units * thread / width; unit < units * (thread + 1) / width; ++unit) {
      int64_t row = unit / parts;
      const int64_t begin = length * (unit % parts) / parts;
      const int64_t end = length * (unit % parts + 1) / parts;
      int64_t to = begin * copy.dst_strides[last];
      int64_t from = begin * copy.src_strides[last];
      for (int32_t axis = last - 1; axis >= 0; --axis) {
        const int64_t index = row % copy.dims[axis];
        row /= copy.dims[axis];
        to += index * copy.dst_strides[axis];
        from += index * copy.src_strides[axis];
      }
      move(dst + to * copy.size, copy.dst_strides[last], src + from * copy.size, copy.src_strides[last], end - begin);
    }
  });
}

}  // namespace tenon::provider::cpu
