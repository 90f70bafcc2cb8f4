// reduce in one dispatch or two. If few values are reduced from many elements, the first dispatch writes the value of
// each part to the workspace, and the second combines them. The shape alone decides the number of parts, so a repeated
// reduction gives the same bits.
#include "providers/vulkan/kernels/element.h"
#include "providers/vulkan/kernels/kernels.h"
#include "providers/vulkan/kernels/rows.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::vulkan {
namespace {

constexpr int64_t enough_threads = 65536;
constexpr int64_t least_part = 1024;
constexpr int64_t most_parts = 256;

// The dtype of the values of parts: as wide as the class's arithmetic.
int32_t value_dtype(int32_t dtype) {
  switch (dtype_class(dtype)) {
    case DTypeClass::FLOAT: return EP_DTYPE_f32;
    case DTypeClass::INT: return dtype_size(dtype) == 8 ? EP_DTYPE_i64 : EP_DTYPE_i32;
    default: return dtype_size(dtype) == 8 ? EP_DTYPE_u64 : EP_DTYPE_u32;
  }
}

constexpr uint32_t combining_lane_bits = 5;

int64_t parts_of(const RowsSpace& space, uint32_t lane_bits) {
  const int64_t threads = space.rows() << lane_bits;
  if (threads >= enough_threads) return 1;
  const int64_t by_length = space.length() / (least_part * (lane_bits == 0 ? 1 : 4));
  return std::max<int64_t>(1, std::min({by_length, most_parts, enough_threads / threads}));
}

class ReducePrimitive final : public ep_primitive {
 public:
  ReducePrimitive(const ep_primitive_desc& desc, const RowsSpace& space, uint32_t lane_bits, int64_t parts,
                  int64_t block, std::shared_ptr<Pipeline> first, std::shared_ptr<Pipeline> last)
      : space_(space),
        lane_bits_(lane_bits),
        parts_(parts),
        part_length_(static_cast<int64_t>(divide_up(divide_up(space.length(), parts), block)) * block),
        value_size_(dtype_size(value_dtype(desc.operands[1].dtype))),
        first_(std::move(first)),
        last_(std::move(last)) {}

  uint64_t workspace(const ep_shape*) const override {
    return parts_ == 1 ? 0 : static_cast<uint64_t>(space_.rows() * parts_ * value_size_);
  }
  bool has_workspace() const override { return parts_ != 1; }

  ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const override {
    CommandStream::Recording recording(*stream.commands);
    return for_each_piece(space_.kept(), [&](const Space& piece) {
      const uint64_t dst = address_of(launch.operands[0]) + static_cast<uint64_t>(piece.offsets[0] * piece.sizes[0]);
      const uint64_t src = address_of(launch.operands[1]) + static_cast<uint64_t>(piece.offsets[1] * piece.sizes[1]);
      if (parts_ == 1) return run(recording, *last_, piece, dst, src, error);
      const uint64_t partial = address_of(launch.workspace);
      const ep_status status = run(recording, *first_, piece, partial, src, error);
      return status == EP_STATUS_OK ? combine(recording, piece, dst, partial, error) : status;
    });
  }

 private:
  ep_status run(CommandStream::Recording& recording, const Pipeline& pipeline, const Space& piece, uint64_t dst,
                uint64_t src, ep_error** error) const {
    StagedRange range;
    if (const ep_status status = recording.parameters(sizeof(RowsBlock), &range, error); status != EP_STATUS_OK) {
      return status;
    }
    space_.write(piece, reinterpret_cast<RowsBlock*>(range.host()));
    const uint64_t values = static_cast<uint64_t>(piece.count());
    const RowsPush push = {dst,
                           src,
                           range.address(),
                           static_cast<uint32_t>(values),
                           static_cast<uint32_t>(space_.length()),
                           static_cast<uint32_t>(space_.length()),
                           static_cast<uint32_t>(parts_),
                           static_cast<uint32_t>(part_length_),
                           lane_bits_,
                           block_aligned(src) ? 1U : 0U};
    const Grid grid = rows_grid(*device, values * static_cast<uint64_t>(parts_), lane_bits_);
    return recording.add_dispatch({pipeline.handle(), &push, sizeof push, {grid.x, grid.y, 1}}, error);
  }

  // Combines the values of the parts of each row. The values are contiguous.
  ep_status combine(CommandStream::Recording& recording, const Space& piece, uint64_t dst, uint64_t partial,
                    ep_error** error) const {
    StagedRange range;
    if (const ep_status status = recording.parameters(sizeof(RowsBlock), &range, error); status != EP_STATUS_OK) {
      return status;
    }
    auto* block = reinterpret_cast<RowsBlock*>(range.host());
    space_.write(piece, block);
    int64_t stride = parts_;
    for (int32_t axis = piece.rank - 1; axis >= 0; --axis) {
      block->kept_src[axis] = static_cast<uint32_t>(stride);
      stride *= piece.dims[axis];
    }
    block->walked_rank = 1;
    block->walked_dims[0] = static_cast<uint32_t>(parts_);
    block->walked_src[0] = 1;
    const uint64_t values = static_cast<uint64_t>(piece.count());
    const auto parts = static_cast<uint32_t>(parts_);
    const RowsPush push = {dst,
                           partial,
                           range.address(),
                           static_cast<uint32_t>(values),
                           parts,
                           static_cast<uint32_t>(space_.length()),
                           1,
                           parts,
                           combining_lane_bits,
                           0};
    const Grid grid = rows_grid(*device, values, combining_lane_bits);
    return recording.add_dispatch({last_->handle(), &push, sizeof push, {grid.x, grid.y, 1}}, error);
  }

  RowsSpace space_;
  uint32_t lane_bits_;
  int64_t parts_;
  int64_t part_length_;  // a multiple of the block size
  int64_t value_size_;
  std::shared_ptr<Pipeline> first_;  // set if the reduction has parts
  std::shared_ptr<Pipeline> last_;
};

}  // namespace

Refusal Reduce::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (Refusal refusal = why_no_rows(device, desc, desc.attributes.reduce.axes)) return refusal;
  const int32_t op = desc.attributes.reduce.op;
  const int32_t dtype = desc.operands[1].dtype;
  const scalar::RowFacts facts = scalar::reduce_facts(op);
  if (!facts.known) return Refusal::because("unknown reduce row %d", op);
  if (!scalar::defined_on(facts.domain, dtype)) {
    return Refusal::because("reduce row %d is not defined on %s", op, dtype_name(dtype));
  }
  if (desc.operands[0].dtype != dtype) {
    return Refusal::because("a result of %s, not %s", dtype_name(desc.operands[0].dtype), dtype_name(dtype));
  }
  if (desc.accumulate_dtype != 0 && desc.accumulate_dtype != value_dtype(dtype)) {
    return Refusal::because("accumulation in %s", dtype_name(desc.accumulate_dtype));
  }
  return why_not_computed(device.context->physical->features, dtype);
}

Refusal Reduce::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const RowsSpace space(desc, desc.attributes.reduce.axes);
  const uint32_t lane_bits = lane_bits_on(device, space);
  const int64_t parts = parts_of(space, lane_bits);
  const auto dtype = static_cast<uint32_t>(desc.operands[1].dtype);
  const auto value = static_cast<uint32_t>(value_dtype(desc.operands[1].dtype));
  const auto op = static_cast<uint32_t>(desc.attributes.reduce.op);
  const uint32_t width = width_of(desc.operands[1].dtype);
  const std::string module =
      module_name("reduce", class_of_dtype(desc.operands[1].dtype), device.context->physical->features);
  std::shared_ptr<Pipeline> first;
  std::shared_ptr<Pipeline> last;
  const auto block = static_cast<uint32_t>(block_for(device, space, 1));
  const auto size = static_cast<uint32_t>(dtype_size(desc.operands[1].dtype));
  const auto value_size = static_cast<uint32_t>(dtype_size(value_dtype(desc.operands[1].dtype)));
  if (parts == 1) {
    const Constants whole = {row_threads, width, op, dtype, dtype, 0, 1, 1, block, size};
    if (Refusal refusal = compile(device, module, whole, &last)) return refusal;
  } else {
    const Constants part = {row_threads, width, op, dtype, value, 0, 1, 0, block, size};
    if (Refusal refusal = compile(device, module, part, &first)) return refusal;
    const Constants combining = {row_threads, width, op, value, dtype, 0, 0, 1, 1, value_size};
    if (Refusal refusal = compile(device, module, combining, &last)) return refusal;
  }
  *out =
      make_primitive<ReducePrimitive>(device, desc, space, lane_bits, parts, block, std::move(first), std::move(last));
  return {};
}

}  // namespace tenon::provider::vulkan
