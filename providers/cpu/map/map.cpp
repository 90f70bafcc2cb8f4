#include "providers/cpu/map/map.h"

#include <algorithm>
#include <cstring>

#include "providers/cpu/map/scalar.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t block_bytes = 4096;
constexpr int64_t longest_direct = 16384;  // elements per call of a kernel that runs on the operands themselves

// One thread's share of a launch.
class Walk {
 public:
  Walk(const MapPlan& plan, const MapShape& shape, const ep_launch& launch, MapContext context)
      : plan_(plan), shape_(shape), context_(context) {
    inner_ = shape.dims[shape.rank - 1];
    bool direct = true;
    int64_t block = block_bytes;
    for (int32_t i = 0; i < plan.count; ++i) {
      const MapOperand& operand = plan.operands[i];
      inner_strides_[i] = operand.scalar ? 0 : shape.strides[i][shape.rank - 1];
      base_[i] = operand.scalar ? nullptr : address_of(launch.operands[i]);
      direct_[i] = operand.direct && (inner_strides_[i] == 1 || (inner_ == 1 && !operand.scalar));
      direct = direct && direct_[i];
      block = std::min<int64_t>(block, block_bytes / operand.block_size);
    }
    length_ = std::min(inner_, direct ? longest_direct : block);
    per_row_ = (inner_ + length_ - 1) / length_;
    for (int32_t i = 1; i < plan.count; ++i) {
      if (plan.operands[i].scalar) fill_scalar(i, launch.scalars[i - 1]);
    }
  }

  // Blocks in all.
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
    int64_t part = begin % per_row_;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t start = part * length_;
      run_block(row, start, std::min(length_, inner_ - start));
      if (++part == per_row_) {
        part = 0;
        next_row(index, row);
      }
    }
  }

  const MapContext& context() const { return context_; }

 private:
  void fill_scalar(int32_t i, const ep_scalar& scalar) {
    const MapOperand& operand = plan_.operands[i];
    write_scalar(scalar, operand.direct ? operand.dtype : operand.block_dtype, blocks_[i]);
    move_elements(operand.block_size)(blocks_[i], 1, blocks_[i], 0, length_);
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
    operand.convert(blocks_[i], 1, from, inner_strides_[i], n);
    return blocks_[i];
  }

  void run_block(const char* const* row, int64_t start, int64_t n) {
    const MapOperand& dst = plan_.operands[0];
    char* to = const_cast<char*>(row[0]) + start * inner_strides_[0] * dst.size;
    if (plan_.function == nullptr) return move_block(row, start, n, to);
    const void* sources[map_max_operands - 1];
    for (int32_t i = 1; i < plan_.count; ++i) sources[i - 1] = source(row, i, start, n);
    void* result = direct_[0] ? to : blocks_[0];
    plan_.function(result, sources, n, context_);
    if (!direct_[0]) dst.convert(to, inner_strides_[0], blocks_[0], 1, n);
  }

  // Without a kernel one conversion does the work where one of the two has the block's bits already.
  void move_block(const char* const* row, int64_t start, int64_t n, char* to) {
    const MapOperand& dst = plan_.operands[0];
    const MapOperand& src = plan_.operands[1];
    const char* from = row[1] + start * inner_strides_[1] * src.size;
    if (src.scalar) {
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
  int64_t inner_ = 0;
  int64_t length_ = 0;   // elements per block
  int64_t per_row_ = 0;  // blocks per row of the inner axis
  int64_t inner_strides_[map_max_operands];
  char* base_[map_max_operands];
  bool direct_[map_max_operands];
  alignas(64) char blocks_[map_max_operands][block_bytes];
};

int64_t element_count(const MapShape& shape) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < shape.rank; ++axis) count *= shape.dims[axis];
  return count;
}

// One contiguous run of elements, all of the kernel's type.
bool is_plain_run(const MapPlan& plan, const MapShape& shape) {
  if (shape.rank != 1 || plan.function == nullptr) return false;
  for (int32_t i = 0; i < plan.count; ++i) {
    if (!plan.operands[i].direct || plan.operands[i].scalar || shape.strides[i][0] != 1) return false;
  }
  return true;
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

MapPrimitive::MapPrimitive(const MapPlan& plan, const ep_primitive_desc& desc) : plan_(plan) {
  if (is_dynamic(desc)) return;
  ep_shape shapes[map_max_operands];
  for (int32_t i = 0; i < plan.count; ++i) {
    shapes[i] = {desc.operands[i].dims, desc.operands[i].strides, desc.operands[i].rank, 0};
  }
  read_shape(plan, shapes, &shape_);
}

ep_status MapPrimitive::launch(const ep_launch& launch, ep_fault* out_fault, ep_error**) {
  MapContext context;
  if (plan_.has_parameters) {
    for (uint32_t slot = 0; slot < std::min(launch.scalar_count, 2U); ++slot) {
      write_scalar(launch.scalars[slot], plan_.operands[1].block_dtype, slot == 0 ? context.a : context.b);
    }
  }
  MapShape given;
  const MapShape* shape = &shape_;
  if (launch.shapes != nullptr) {
    read_shape(plan_, launch.shapes, &given);
    shape = &given;
  }
  const int64_t count = element_count(*shape);
  if (count <= longest_direct && is_plain_run(plan_, *shape)) {
    const void* sources[map_max_operands - 1];
    for (int32_t i = 1; i < plan_.count; ++i) sources[i - 1] = address_of(launch.operands[i]);
    plan_.function(address_of(launch.operands[0]), sources, count, context);
  } else {
    MapContext* const shared = &context;
    parallel(device->threads, count * plan_.picoseconds / 1000, [&](int32_t thread, int32_t width) {
      Walk walk(plan_, *shape, launch, *shared);
      const int64_t units = walk.units();
      walk.run(units * thread / width, units * (thread + 1) / width);
      if (walk.context().fault_code == 0) return;
      __atomic_store_n(&shared->fault_value, walk.context().fault_value, __ATOMIC_RELAXED);
      __atomic_store_n(&shared->fault_code, walk.context().fault_code, __ATOMIC_RELAXED);
    });
  }
  if (context.fault_code == 0) return EP_STATUS_OK;
  if (out_fault != nullptr) {
    *out_fault = {launch.tag, context.fault_code, plan_.fault_operand, context.fault_value, 0, 0};
  }
  return EP_STATUS_FAULT;
}

}  // namespace tenon::provider::cpu
