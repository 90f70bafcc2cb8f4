#include "providers/cpu/elementwise/map.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "providers/cpu/elementwise/boxes.h"
#include "providers/cpu/elementwise/scalar.h"
#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t block_bytes = 4096;
constexpr int64_t longest_direct = 16384;  // elements per kernel call if all operands are used in place

// One thread's share of a launch.
class Walk {
 public:
  // `stream` copies f32 past the cache; NULL: results are written through the cache.
  Walk(const MapPlan& plan, const MapShape& shape, const ep_launch& launch, const MapContext& context,
       StreamCopy stream)
      : plan_(plan), shape_(shape), context_(context) {
    inner_ = shape.dims[shape.rank - 1];
    bool direct = true;
    int64_t block = block_bytes;
    const bool two_scalars =
        plan.takes_two_scalars && !plan.operands[1].scalar && plan.operands[2].scalar && plan.operands[3].scalar;
    if (two_scalars) context_.single = 0b110;
    for (int32_t i = 0; i < plan.count; ++i) {
      const MapOperand& operand = plan.operands[i];
      inner_strides_[i] = operand.scalar ? 0 : shape.strides[i][shape.rank - 1];
      base_[i] = operand.scalar ? nullptr : address_of(launch.operands[i]);
      direct_[i] = operand.direct && (inner_strides_[i] == 1 || (inner_ == 1 && !operand.scalar));
      // The kernel repeats one source; a second repeated source goes through a block.
      const bool takes_single = plan.takes_single || (plan.takes_first_single && i == 1 && !operand.scalar);
      const bool taken = operand.scalar ? plan.takes_single || plan.takes_scalar : takes_single && operand.direct;
      if (i > 0 && taken && context_.single == 0 && !direct_[i] && inner_strides_[i] == 0) {
        context_.single = static_cast<uint8_t>(1 << (i - 1));
        direct_[i] = true;
      }
      if (two_scalars && i > 1) direct_[i] = true;
      direct = direct && direct_[i];
      block = std::min<int64_t>(block, block_bytes / operand.block_size);
    }
    if (direct_[0] && inner_strides_[0] == 1 && plan.operands[0].size >= 4) stream_ = stream;
    if (plan.function == nullptr && !direct_[0] && inner_strides_[0] == 1 && !plan.operands[1].scalar) {
      casts_past_cache_ = stream != nullptr && plan.stream_cast != nullptr && inner_strides_[1] == 1;
      if (!casts_past_cache_) cast_stream_ = stream;
      block = std::min<int64_t>(block, block_bytes / plan.operands[0].size);
    }
    context_.stream = stream_ != nullptr && plan.streams;
    fills_ = plan.function == nullptr && plan.operands[1].scalar && plan.fills[0] != nullptr && inner_strides_[0] == 1;
    const bool converts_once = plan.function == nullptr && !plan.operands[1].scalar && cast_stream_ == nullptr &&
                               (plan.operands[0].direct || plan.operands[1].direct);
    const bool whole = casts_past_cache_ || fills_ || converts_once ||
                       (direct && (stream_ == nullptr || context_.stream || plan.function == nullptr));
    length_ = std::min(inner_, whole ? longest_direct : block);
    per_row_ = (inner_ + length_ - 1) / length_;
    by_rows_ = whole && per_row_ == 1 && shape.rank > 1 && plan.function != nullptr;
    if (by_rows_ && plan.takes_single && context_.single == 0) context_.single = MapContext::no_single;
    takes_rows_ = by_rows_ && (plan.takes_single || plan.takes_first_single) && std::has_single_bit(context_.single);
    for (int32_t i = 1; i < plan.count; ++i) {
      if (plan.operands[i].scalar) fill_scalar(i, launch.scalars[i - 1]);
    }
    for (int32_t i = 2; i < plan.count; ++i) repeats_first_[i] = repeats_first(i);
  }

  // The number of blocks of the whole launch.
  int64_t units() const {
    int64_t rows = 1;
    for (int32_t axis = 0; axis + 1 < shape_.rank; ++axis) rows *= shape_.dims[axis];
    return rows * per_row_;
  }

  void run(int64_t begin, int64_t end) {
    if (begin >= end) return;
    int64_t index[EP_MAX_RANK] = {};
    const char* row[map_max_operands];
    seek(begin / per_row_, index, row);
    if (by_rows_) {
      run_rows(index, row, end - begin);
      fence();
      return;
    }
    int64_t part = begin % per_row_;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t start = part * length_;
      run_block(row, start, std::min(length_, inner_ - start));
      if (++part == per_row_) {
        part = 0;
        next_row(index, row);
      }
    }
    fence();
  }

  const MapContext& context() const { return context_; }

 private:
  void fence() const {
    if (stream_ != nullptr || cast_stream_ != nullptr || casts_past_cache_) store_fence();
  }

  void fill_scalar(int32_t i, const ep_scalar& scalar) {
    const MapOperand& operand = plan_.operands[i];
    write_scalar(scalar, operand.direct ? operand.dtype : operand.block_dtype, blocks_[i]);
    if (!direct_[i] && !fills_) move_elements(operand.block_size)(blocks_[i], 1, blocks_[i], 0, length_);
  }

  // True if source i is the same as the first source, as in mul(x, x). Its elements are then converted only once.
  bool repeats_first(int32_t i) const {
    const MapOperand& first = plan_.operands[1];
    const MapOperand& other = plan_.operands[i];
    if (first.scalar || other.scalar || direct_[1] || base_[1] != base_[i]) return false;
    if (first.dtype != other.dtype || first.block_dtype != other.block_dtype) return false;
    return std::equal(shape_.strides[1], shape_.strides[1] + shape_.rank, shape_.strides[i]);
  }

  void seek(int64_t row_number, int64_t* index, const char** row) const {
    for (int32_t i = 0; i < plan_.count; ++i) row[i] = base_[i];
    for (int32_t axis = shape_.rank - 2; axis >= 0; --axis) {
      index[axis] = row_number % shape_.dims[axis];
      row_number /= shape_.dims[axis];
      for (int32_t i = 0; i < plan_.count; ++i) step(row[i], i, index[axis] * shape_.strides[i][axis]);
    }
  }

  void next_row(int64_t* index, const char** row) const {
    for (int32_t axis = shape_.rank - 2; axis >= 0; --axis) {
      const bool carry = ++index[axis] == shape_.dims[axis];
      const int64_t steps = carry ? 1 - shape_.dims[axis] : 1;
      for (int32_t i = 0; i < plan_.count; ++i) step(row[i], i, steps * shape_.strides[i][axis]);
      if (!carry) return;
      index[axis] = 0;
    }
  }

  void step(const char*& pointer, int32_t i, int64_t elements) const {
    if (!plan_.operands[i].scalar) pointer += elements * plan_.operands[i].size;
  }

  const void* source(const char* const* row, int32_t i, int64_t start, int64_t n) {
    const MapOperand& operand = plan_.operands[i];
    if (operand.scalar) return blocks_[i];
    const char* from = row[i] + start * inner_strides_[i] * operand.size;
    if (direct_[i]) return from;
    if (repeats_first_[i]) return blocks_[1];
    if (plan_.fills[i] != nullptr && inner_strides_[i] == 0) {
      plan_.fills[i](blocks_[i], from, n);
      return blocks_[i];
    }
    operand.convert(blocks_[i], 1, from, inner_strides_[i], n);
    return blocks_[i];
  }

  void run_block(const char* const* row, int64_t start, int64_t n) {
    const MapOperand& dst = plan_.operands[0];
    char* to = const_cast<char*>(row[0]) + start * inner_strides_[0] * dst.size;
    if (plan_.function == nullptr) return move_block(row, start, n, to);
    const void* sources[map_max_operands - 1] = {};
    for (int32_t i = 1; i < plan_.count; ++i) sources[i - 1] = source(row, i, start, n);
    if (stream_ != nullptr && !context_.stream) {
      plan_.function(blocks_[0], sources, n, context_);
      return stream_(reinterpret_cast<float*>(to), reinterpret_cast<const float*>(blocks_[0]), n * dst.size / 4);
    }
    void* result = direct_[0] ? to : blocks_[0];
    plan_.function(result, sources, n, context_);
    if (!direct_[0]) dst.convert(to, inner_strides_[0], blocks_[0], 1, n);
  }

  // Processes whole rows in place: one kernel call per row, or one for all rows along the axis before the last.
  void run_rows(int64_t* index, const char** row, int64_t rows) {
    const int32_t axis = shape_.rank - 2;
    int64_t steps[map_max_operands] = {};
    for (int32_t i = 0; i < plan_.count; ++i)
      steps[i] = plan_.operands[i].scalar ? 0 : shape_.strides[i][axis] * plan_.operands[i].size;
    while (rows > 0) {
      const int64_t run = std::min(rows, shape_.dims[axis] - index[axis]);
      char* to = const_cast<char*>(row[0]);
      const char* from[map_max_operands - 1] = {};
      for (int32_t i = 1; i < plan_.count; ++i) from[i - 1] = plan_.operands[i].scalar ? blocks_[i] : row[i];
      if (takes_rows_) {
        const void* const sources[map_max_operands - 1] = {from[0], from[1], from[2]};
        context_.rows = run;
        std::copy_n(steps, map_max_operands, context_.row_steps);
        plan_.function(to, sources, inner_, context_);
      }
      for (int64_t r = takes_rows_ ? run : 0; r < run; ++r) {
        const void* const sources[map_max_operands - 1] = {from[0], from[1], from[2]};
        plan_.function(to, sources, inner_, context_);
        to += steps[0];
        for (int i = 0; i < map_max_operands - 1; ++i) from[i] += steps[i + 1];
      }
      rows -= run;
      if (rows == 0) return;
      for (int32_t i = 0; i < plan_.count; ++i) row[i] += (run - 1) * steps[i];
      index[axis] += run - 1;
      next_row(index, row);
    }
  }

  // A plan without a kernel is a copy. One conversion is enough if either operand has the block's type.
  void move_block(const char* const* row, int64_t start, int64_t n, char* to) {
    const MapOperand& dst = plan_.operands[0];
    const MapOperand& src = plan_.operands[1];
    const char* from = row[1] + start * inner_strides_[1] * src.size;
    const int64_t bytes = n * dst.size;
    if (casts_past_cache_) return plan_.stream_cast(to, from, n);
    if (cast_stream_ != nullptr && src.direct &&
        (reinterpret_cast<uintptr_t>(to) | static_cast<uint64_t>(bytes)) % 4 == 0) {
      dst.convert(blocks_[0], 1, from, inner_strides_[1], n);
      return cast_stream_(reinterpret_cast<float*>(to), reinterpret_cast<const float*>(blocks_[0]), bytes / 4);
    }
    if (stream_ != nullptr && direct_[1]) {
      stream_(reinterpret_cast<float*>(to), reinterpret_cast<const float*>(from), n * dst.size / 4);
    } else if (fills_) {
      plan_.fills[0](to, blocks_[1], n);
    } else if (plan_.fills[0] != nullptr && src.direct && inner_strides_[0] == 1 && inner_strides_[1] == 0) {
      plan_.fills[0](to, from, n);
    } else if (src.scalar) {
      dst.convert(to, inner_strides_[0], blocks_[1], 1, n);
    } else if (src.direct) {
      dst.convert(to, inner_strides_[0], from, inner_strides_[1], n);
    } else if (dst.direct) {
      src.convert(to, inner_strides_[0], from, inner_strides_[1], n);
    } else {
      src.convert(blocks_[1], 1, from, inner_strides_[1], n);
      dst.convert(to, inner_strides_[0], blocks_[1], 1, n);
    }
  }

  const MapPlan& plan_;
  const MapShape& shape_;
  MapContext context_;
  StreamCopy stream_ = nullptr;
  StreamCopy cast_stream_ = nullptr;  // for a cast: writes the converted block past the cache
  bool casts_past_cache_ = false;     // uses plan_.stream_cast, without a block
  bool fills_ = false;                // uses plan_.fills, without a block
  int64_t inner_ = 0;
  int64_t length_ = 0;   // elements per block
  int64_t per_row_ = 0;  // blocks per row of the inner axis
  bool by_rows_ = false;
  bool takes_rows_ = false;  // the kernel processes several rows per call
  int64_t inner_strides_[map_max_operands] = {};
  char* base_[map_max_operands] = {};
  bool direct_[map_max_operands] = {};
  bool repeats_first_[map_max_operands] = {};
  alignas(64) char blocks_[map_max_operands][block_bytes];
};

// True if the elements are contiguous in the order of the axes.
bool is_row(int32_t rank, const int64_t* dims, const int64_t* strides) {
  int64_t step = 1;
  for (int32_t axis = rank - 1; axis >= 0; --axis) {
    if (strides[axis] != step) return false;
    step *= dims[axis];
  }
  return true;
}

// Copies elements between a contiguous row and positions with `strides`, in the order of the axes: from the row to the
// positions (kScatter) or from the positions to the row.
template <bool kScatter, class T>
void move_elements_of(int32_t rank, const int64_t* dims, const int64_t* strides, char* places, char* row) {
  auto* at = reinterpret_cast<T*>(places);
  auto* next = reinterpret_cast<T*>(row);
  int64_t index[EP_MAX_RANK] = {};
  const int64_t length = dims[rank - 1];
  const int64_t step = strides[rank - 1];
  for (;;) {
    if constexpr (kScatter) {
      for (int64_t i = 0; i < length; ++i) at[i * step] = next[i];
    } else {
      gather(next, at, step, length);
    }
    next += length;
    int32_t axis = rank - 2;
    for (; axis >= 0; --axis) {
      at += strides[axis];
      if (++index[axis] < dims[axis]) break;
      at -= strides[axis] * dims[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

template <bool kScatter>
void move_rows(int32_t size, int32_t rank, const int64_t* dims, const int64_t* strides, char* places, char* row) {
  switch (size) {
    case 1: return move_elements_of<kScatter, uint8_t>(rank, dims, strides, places, row);
    case 2: return move_elements_of<kScatter, uint16_t>(rank, dims, strides, places, row);
    case 4: return move_elements_of<kScatter, uint32_t>(rank, dims, strides, places, row);
    default: return move_elements_of<kScatter, uint64_t>(rank, dims, strides, places, row);
  }
}

int64_t element_count(const MapShape& shape) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < shape.rank; ++axis) count *= shape.dims[axis];
  return count;
}

void read_shape(const MapPlan& plan, const ep_shape* shapes, MapShape* shape) {
  shape->rank = shapes[0].rank;
  for (int32_t axis = 0; axis < shape->rank; ++axis) shape->dims[axis] = shapes[0].dims[axis];
  for (int32_t i = 0; i < plan.count; ++i) {
    if (plan.operands[i].scalar) continue;
    for (int32_t axis = 0; axis < shape->rank; ++axis) shape->strides[i][axis] = shapes[i].strides[axis];
  }
}

}  // namespace

MapPrimitive::MapPrimitive(const ep_device& on, const MapPlan& plan, const ep_primitive_desc& desc)
    : plan_(plan), stream_copy_(stream_copy_kernel(on.simd)) {
  all_direct_ = true;
  for (int32_t i = 0; i < plan.count; ++i) all_direct_ = all_direct_ && plan.operands[i].direct;
  if (is_dynamic(desc)) return;
  ep_shape shapes[map_max_operands];
  for (int32_t i = 0; i < plan.count; ++i) {
    shapes[i] = {desc.operands[i].dims, desc.operands[i].strides, desc.operands[i].rank, 0};
  }
  read_shape(plan, shapes, &shape_);
  short_count_ = short_run(shapes);
}

// Returns the number of elements if the operands of `shapes` form a short run, else -1. A short run is a few contiguous
// elements, possibly with scalar sources. Most launches on small tensors are short runs.
int64_t MapPrimitive::short_run(const ep_shape* shapes) const {
  if (shapes[0].rank != 1) return -1;
  const int64_t count = shapes[0].dims[0];
  if (count > shortest_block) return -1;
  if (count == 1) return 1;
  for (int32_t i = 0; i < plan_.count; ++i) {
    if (!plan_.operands[i].scalar && shapes[i].strides[0] != 1) return -1;
  }
  return count;
}

// Writes a scalar to `block`, in the block type of source `i`: one element if the kernel can repeat it, else `count`.
const void* MapPrimitive::scalar_source(int32_t i, const ep_launch& launch, int64_t count, MapContext& context,
                                        char* block) const {
  const MapOperand& operand = plan_.operands[i];
  write_scalar(launch.scalars[i - 1], operand.direct ? operand.dtype : operand.block_dtype, block);
  if (context.single == 0 && (plan_.takes_single || plan_.takes_scalar))
    context.single = static_cast<uint8_t>(1 << (i - 1));
  else if (count > 1)
    move_elements(operand.block_size)(block, 1, block, 0, count);
  return block;
}

void MapPrimitive::run_short(const ep_launch& launch, int64_t count, MapContext& context) const {
  if (!all_direct_) return run_converted(launch, count, context);
  const void* sources[map_max_operands - 1] = {};
  alignas(64) char scalars[map_max_operands - 1][shortest_block * 8];
  for (int32_t i = 1; i < plan_.count; ++i) {
    const MapOperand& operand = plan_.operands[i];
    if (operand.scalar)
      sources[i - 1] = scalar_source(i, launch, count, context, scalars[i - 1]);
    else
      sources[i - 1] = address_of(launch.operands[i]);
  }
  char* to = address_of(launch.operands[0]);
  if (plan_.function != nullptr)
    plan_.function(to, sources, count, context);
  else
    plan_.operands[0].convert(to, 1, sources[0], 1, count);
}

// Runs a short run in which an operand needs conversion.
void MapPrimitive::run_converted(const ep_launch& launch, int64_t count, MapContext& context) const {
  const void* sources[map_max_operands - 1] = {};
  alignas(64) char blocks[map_max_operands][shortest_block * 8];
  const MapOperand& dst = plan_.operands[0];
  char* const to = address_of(launch.operands[0]);
  if (plan_.function == nullptr && dst.direct && !plan_.operands[1].scalar) {  // one conversion is enough
    return plan_.operands[1].convert(to, 1, address_of(launch.operands[1]), 1, count);
  }
  for (int32_t i = 1; i < plan_.count; ++i) {
    const MapOperand& operand = plan_.operands[i];
    if (operand.scalar) {
      sources[i - 1] = scalar_source(i, launch, count, context, blocks[i]);
    } else if (operand.direct) {
      sources[i - 1] = address_of(launch.operands[i]);
    } else {
      operand.convert(blocks[i], 1, address_of(launch.operands[i]), 1, count);
      sources[i - 1] = blocks[i];
    }
  }
  if (plan_.function == nullptr) return dst.convert(to, 1, sources[0], 1, count);
  plan_.function(dst.direct ? to : blocks[0], sources, count, context);
  if (!dst.direct) dst.convert(to, 1, blocks[0], 1, count);
}

// Runs a small launch with strided or broadcast operands of the kernel's types: copies each source that is not
// contiguous into a block, so that one kernel call is enough. Returns false if the launch does not qualify.
bool MapPrimitive::run_gathered(const ep_launch& launch, MapContext& context) const {
  if (!all_direct_ || plan_.function == nullptr) return false;
  const int32_t rank = launch.shapes != nullptr ? launch.shapes[0].rank : shape_.rank;
  const int64_t* dims = launch.shapes != nullptr ? launch.shapes[0].dims : shape_.dims;
  int64_t count = 1;
  for (int32_t axis = 0; axis < rank; ++axis) count *= dims[axis];
  if (count > shortest_block) return false;
  const auto strides = [&](int32_t i) {
    return launch.shapes != nullptr ? launch.shapes[i].strides : shape_.strides[i];
  };
  const void* sources[map_max_operands - 1] = {};
  alignas(64) char blocks[map_max_operands][shortest_block * 8];
  for (int32_t i = 1; i < plan_.count; ++i) {
    const MapOperand& operand = plan_.operands[i];
    if (operand.scalar) {
      sources[i - 1] = scalar_source(i, launch, count, context, blocks[i]);
    } else if (is_row(rank, dims, strides(i))) {
      sources[i - 1] = address_of(launch.operands[i]);
    } else {
      move_rows<false>(operand.size, rank, dims, strides(i), address_of(launch.operands[i]), blocks[i]);
      sources[i - 1] = blocks[i];
    }
  }
  char* to = address_of(launch.operands[0]);
  const bool in_place = is_row(rank, dims, strides(0));
  plan_.function(in_place ? to : blocks[0], sources, count, context);
  if (!in_place) move_rows<true>(plan_.operands[0].size, rank, dims, strides(0), to, blocks[0]);
  return true;
}

void MapPrimitive::run_walk(const ep_launch& launch, MapContext* context) const {
  MapShape given{};
  const MapShape* shape = &shape_;
  if (launch.shapes != nullptr) {
    read_shape(plan_, launch.shapes, &given);
    shape = &given;
  }
  if (moves_short_runs(*shape)) return move(launch, *shape);
  const int64_t count = element_count(*shape);
  const bool stream = count * plan_.operands[0].size >= stream_bytes && !shares_memory(launch);
  const MapContext start = *context;  // a part with a fault writes to *context
  const auto run = [&](auto&& share, int32_t part, int32_t parts) {
    const int64_t units = share.units();
    share.run(units * part / parts, units * (part + 1) / parts);
    if (share.context().fault_code == 0) return;
    __atomic_store_n(&context->fault_value, share.context().fault_value, __ATOMIC_RELAXED);
    __atomic_store_n(&context->fault_code, share.context().fault_code, __ATOMIC_RELAXED);
  };
  const bool boxes = Boxes::suit(plan_, *shape);
  const StreamCopy stream_copy = stream ? stream_copy_ : nullptr;
  parallel(device->threads, count * plan_.picoseconds / 1000, [&](int32_t part, int32_t parts) {
    if (boxes)
      run(Boxes(plan_, *shape, launch, start, device->simd, stream_copy), part, parts);
    else
      run(Walk(plan_, *shape, launch, start, stream_copy), part, parts);
  });
}

// True for a copy between equal types whose innermost axes differ between source and destination, or are short.
bool MapPrimitive::moves_short_runs(const MapShape& shape) const {
  constexpr int64_t few = 16;
  const int32_t last = shape.rank - 1;
  return plan_.function == nullptr && all_direct_ && !plan_.operands[1].scalar && shape.strides[0][last] == 1 &&
         (shape.strides[1][last] > 1 || (shape.rank > 1 && shape.dims[last] <= few));
}

void MapPrimitive::move(const ep_launch& launch, const MapShape& shape) const {
  StridedCopy copy;
  copy.rank = shape.rank;
  copy.size = plan_.operands[0].size;
  for (int32_t axis = 0; axis < shape.rank; ++axis) {
    copy.dims[axis] = shape.dims[axis];
    copy.dst_strides[axis] = shape.strides[0][axis];
    copy.src_strides[axis] = shape.strides[1][axis];
  }
  strided_copy(copy, address_of(launch.operands[0]), address_of(launch.operands[1]), device->simd, device->threads);
}

// True if the destination is also a source; writing past the cache would then be slower.
bool MapPrimitive::shares_memory(const ep_launch& launch) const {
  for (int32_t i = 1; i < plan_.count; ++i) {
    if (!plan_.operands[i].scalar && address_of(launch.operands[i]) == address_of(launch.operands[0])) return true;
  }
  return false;
}

ep_status MapPrimitive::launch(const ep_launch& launch, ep_fault* out_fault, ep_error**) {
  MapContext context;
  if (plan_.has_parameters) {
    for (uint32_t slot = 0; slot < std::min(launch.scalar_count, 2U); ++slot) {
      write_scalar(launch.scalars[slot], plan_.operands[1].block_dtype, slot == 0 ? context.a : context.b);
    }
  }
  const int64_t count = launch.shapes != nullptr ? short_run(launch.shapes) : short_count_;
  if (count >= 0)
    run_short(launch, count, context);
  else if (!run_gathered(launch, context))
    run_walk(launch, &context);
  if (context.fault_code == 0) return EP_STATUS_OK;
  if (out_fault != nullptr) {
    *out_fault = {launch.tag, context.fault_code, plan_.fault_operand, context.fault_value, 0, 0};
  }
  return EP_STATUS_FAULT;
}

}  // namespace tenon::provider::cpu
