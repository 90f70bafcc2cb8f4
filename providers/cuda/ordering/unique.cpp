// unique of elements: sorts them, numbers the heads of groups, and writes all results in one launch.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/movement/mover.h"
#include "providers/cuda/ordering/ordering.h"
#include "providers/cuda/ordering/pieces.h"
#include "providers/cuda/ordering/sorter.h"
#include "providers/cuda/reduction/axes.h"

namespace tenon::provider::cuda {
namespace {

enum Slot : int32_t { DST, SRC, COUNT, INDICES, INVERSE, COUNTS, slots };
constexpr int32_t roles[slots] = {EP_ROLE_DST,         EP_ROLE_SRC,         EP_ROLE_DST_COUNT,
                                  EP_ROLE_DST_INDICES, EP_ROLE_DST_INVERSE, EP_ROLE_DST_COUNTS};

struct UniqueKernels {
  Mover mover;
  Sorter sorter;
  CUfunction head_count = nullptr;
  CUfunction offset = nullptr;
  CUfunction group = nullptr;
  CUfunction rank_count = nullptr;
  CUfunction rank = nullptr;
  CUfunction write = nullptr;
};

// The offsets of arrays in the workspace of a launch.
struct Room {
  uint64_t bytes = 0;
  uint64_t take(int64_t size) {
    const uint64_t at = bytes;
    bytes += aligned_bytes(size);
    return at;
  }
};
struct Layout {
  uint64_t counts, groups, heads, ranks, run, keys, places, sorter;
  uint64_t bytes;
};

class UniquePrimitive final : public ep_primitive {
 public:
  UniquePrimitive(const ep_device& on, const ep_primitive_desc& desc, const UniqueKernels& kernels)
      : desc_(desc), order_(desc.attributes.unique.order), processors_(on.facts.processors), kernels_(kernels) {
    for (int32_t slot = 0; slot < slots; ++slot) places_[slot] = find_operand(desc, roles[slot]);
    dtype_ = desc.operands[places_[SRC]].dtype;
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    UniqueArguments unique{};
    uint64_t* const addresses[slots] = {&unique.dst,         &unique.src,         &unique.pieces.total,
                                        &unique.dst_indices, &unique.dst_inverse, &unique.dst_counts};
    int64_t ignored = 0;
    int64_t* const strides[slots] = {
        &unique.dst_stride, &ignored, &ignored, &unique.indices_stride, &unique.inverse_stride, &unique.counts_stride};
    for (int32_t slot = 0; slot < slots; ++slot) {
      if (places_[slot] < 0) continue;
      *addresses[slot] = address_of(launch.operands[places_[slot]]);
      *strides[slot] = shape(launch.shapes, static_cast<Slot>(slot)).strides[0];
    }
    const uint64_t total = unique.pieces.total;
    const CUdeviceptr workspace = address_of(launch.workspace);
    const Layout layout = layout_of(launch.shapes);
    unique.pieces = pieces_of(row_major_axes(shape(launch.shapes, SRC)).count, processors_);
    unique.pieces.total = total;
    unique.pieces.counts = workspace + layout.counts;
    unique.form = key_arguments(dtype_, false);
    unique.groups = workspace + layout.groups;
    unique.heads = workspace + layout.heads;
    ep_status status = make_run(stream, launch.shapes, workspace + layout.run, &unique, error);
    if (status == EP_STATUS_OK) status = sort(stream, workspace, layout, &unique, error);
    if (status == EP_STATUS_OK && order_ == EP_UNIQUE_FIRST)
      status = clear_ranks(stream, workspace + layout.ranks, &unique, error);
    if (status == EP_STATUS_OK) status = number(stream, kernels_.head_count, kernels_.group, unique, error);
    if (status == EP_STATUS_OK && order_ == EP_UNIQUE_FIRST)
      status = number(stream, kernels_.rank_count, kernels_.rank, unique, error);
    if (status != EP_STATUS_OK) return status;
    return launch_kernel(stream, kernels_.write, blocks_for(unique.pieces.count), &unique, error);
  }

  uint64_t workspace(const ep_shape* shapes) const override { return layout_of(shapes).bytes; }
  bool has_workspace() const override { return true; }

 private:
  OperandShape shape(const ep_shape* shapes, Slot slot) const {
    return shape_of(desc_.operands[places_[slot]], shapes, static_cast<uint32_t>(places_[slot]));
  }
  static bool is_run(const AxisSet& axes) { return axes.rank == 1 && axes.src[0] == 1; }

  Layout layout_of(const ep_shape* shapes) const {
    const AxisSet axes = row_major_axes(shape(shapes, SRC));
    const int64_t n = axes.count;
    const bool sorts = order_ != EP_UNIQUE_CONSECUTIVE;
    Room room;
    Layout layout{};
    layout.counts = room.take(static_cast<int64_t>(counts_bytes(pieces_of(n, processors_))));
    layout.groups = room.take(n * 4);
    layout.heads = room.take((n + 1) * 4);
    layout.ranks = room.take(order_ == EP_UNIQUE_FIRST ? n * 4 : 0);
    layout.run = room.take(is_run(axes) ? 0 : n * dtype_size(dtype_));
    layout.keys = room.take(sorts ? n * key_bytes(dtype_size(dtype_)) : 0);
    layout.places = room.take(sorts ? n * 4 : 0);
    layout.sorter = room.take(sorts ? static_cast<int64_t>(kernels_.sorter.workspace(1, n, n)) : 0);
    layout.bytes = room.bytes;
    return layout;
  }

  // Copies a source that is not contiguous into one run.
  ep_status make_run(ep_stream* stream, const ep_shape* shapes, CUdeviceptr run, UniqueArguments* unique,
                     ep_error** error) const {
    const OperandShape src = shape(shapes, SRC);
    if (is_run(row_major_axes(src))) return EP_STATUS_OK;
    int64_t strides[EP_MAX_RANK] = {};
    int64_t count = 1;
    for (int32_t axis = src.rank - 1; axis >= 0; --axis) {
      strides[axis] = count;
      count *= src.dims[axis];
    }
    const CUdeviceptr from = unique->src;
    unique->src = run;
    return kernels_.mover.run(stream, {src.dims, strides, src.rank}, run, src, from, error);
  }

  ep_status sort(ep_stream* stream, CUdeviceptr workspace, const Layout& layout, UniqueArguments* unique,
                 ep_error** error) const {
    if (order_ == EP_UNIQUE_CONSECUTIVE) return EP_STATUS_OK;
    unique->keys = workspace + layout.keys;
    unique->places = workspace + layout.places;
    SortArguments sort{};
    sort.src = unique->src;
    sort.next_keys = unique->keys;
    sort.next_places = unique->places;
    sort.form = unique->form;
    sort.length = sort.kept = unique->pieces.count;
    sort.strides[0] = 1;
    sort.rows.rank = 1;
    sort.rows.count = sort.rows.dims[0] = 1;
    return kernels_.sorter.run(stream, sort, workspace + layout.sorter, error);
  }

  static ep_status clear_ranks(ep_stream* stream, CUdeviceptr ranks, UniqueArguments* unique, ep_error** error) {
    unique->ranks = ranks;
    const auto bytes = static_cast<size_t>(unique->pieces.count) * 4;
    const CUresult result = stream->device->driver->memset_d8_async(ranks, 0, bytes, stream->handle);
    if (result == CUDA_SUCCESS) return EP_STATUS_OK;
    return driver_failed(stream->device, result, "clearing a workspace", error);
  }

  ep_status number(ep_stream* stream, CUfunction count, CUfunction write, const UniqueArguments& unique,
                   ep_error** error) const {
    const Geometry geometry = geometry_of(unique.pieces);
    ep_status status = launch_kernel(stream, count, geometry, &unique, error);
    if (status != EP_STATUS_OK) return status;
    status = launch_kernel(stream, kernels_.offset, {1, row_block}, &unique.pieces, error);
    if (status != EP_STATUS_OK) return status;
    return launch_kernel(stream, write, geometry, &unique, error);
  }

  ep_primitive_desc desc_;
  int32_t order_;
  int64_t processors_;
  UniqueKernels kernels_;
  int32_t places_[slots];
  int32_t dtype_ = 0;
};

constexpr uint64_t most_places = 0xffffffff;  // positions have 32 bits

}  // namespace

Refusal Unique::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* found[slots];
  uint32_t count = 0;
  for (int32_t slot = 0; slot < slots; ++slot) {
    found[slot] = operand(desc, roles[slot]);
    if (found[slot] != nullptr) ++count;
  }
  if (found[DST] == nullptr || found[SRC] == nullptr || found[COUNT] == nullptr || count != desc.operand_count)
    return Refusal::because("its operands are not SRC, DST, DST_COUNT and lists");
  const ep_unique_attributes& attributes = desc.attributes.unique;
  const ep_operand_desc& src = *found[SRC];
  if (attributes.axis != -1) return Refusal::because("slices along axis %d", attributes.axis);
  if (attributes.order < EP_UNIQUE_SORTED || attributes.order > EP_UNIQUE_CONSECUTIVE)
    return Refusal::because("order %d", attributes.order);
  if (!has_keys(src.dtype)) return Refusal::because("no kernel compares %s", dtype_name(src.dtype));
  if (found[DST]->dtype != src.dtype)
    return Refusal::because("a source of %s, a result of %s", dtype_name(src.dtype), dtype_name(found[DST]->dtype));
  for (int32_t slot = 0; slot < slots; ++slot) {
    if (found[slot] == nullptr || slot == SRC) continue;
    if (found[slot]->rank != 1 || (slot != DST && found[slot]->dtype != EP_DTYPE_i64))
      return Refusal::because("a list of %s of rank %d", dtype_name(found[slot]->dtype), found[slot]->rank);
  }
  double elements = 1;
  for (int32_t axis = 0; axis < src.rank; ++axis) elements *= static_cast<double>(std::max<int64_t>(src.dims[axis], 1));
  if (is_scalar(src) || elements > static_cast<double>(most_places)) return Refusal::because("%.0f elements", elements);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  info.greatest_elements = most_places;
  return {};
}

Refusal Unique::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const int32_t dtype = operand(desc, EP_ROLE_SRC)->dtype;
  UniqueKernels kernels;
  if (Refusal refusal = Mover::make(device, dtype, &kernels.mover)) return refusal;
  if (Refusal refusal = Sorter::make(device, dtype, &kernels.sorter)) return refusal;
  const int64_t key = key_bytes(dtype_size(dtype));
  const std::pair<std::string, CUfunction*> functions[] = {
      {fmt::format("unique_head_count_{}_block", key), &kernels.head_count},
      {fmt::format("unique_group_{}_block", key), &kernels.group},
      {"select_offset_block", &kernels.offset},
      {"unique_rank_count_block", &kernels.rank_count},
      {"unique_rank_block", &kernels.rank},
      {"unique_write", &kernels.write}};
  for (const auto& [name, function] : functions) {
    if (Refusal refusal = find_kernel(device, Family::SELECT, name.c_str(), function)) return refusal;
  }
  *out = make_primitive<UniquePrimitive>(device, device, desc, kernels);
  return {};
}

}  // namespace tenon::provider::cuda
