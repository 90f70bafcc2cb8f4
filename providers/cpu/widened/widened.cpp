#include "providers/cpu/widened/widened.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "providers/cpu/convolution/images.h"
#include "providers/cpu/elementwise/elementwise.h"
#include "providers/cpu/lists.h"
#include "providers/cpu/plain/epilogue.h"
#include "providers/cpu/rows/row.h"

namespace tenon::provider::cpu {
namespace {

bool has_channels(const ep_operand_desc& operand) {
  return operand.rank > 2 &&
         (operand.role == EP_ROLE_DST || operand.role == EP_ROLE_SRC || operand.role == EP_ROLE_GRADIENT);
}

bool is_repeated(const ep_operand_desc& operand, int32_t axis) {
  return operand.dims[axis] == 1 || operand.strides[axis] == 0;
}

// True if the elements of `operand` differ at most from channel to channel.
bool is_per_channel(const ep_operand_desc& operand) {
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    if (axis != 1 && !is_repeated(operand, axis)) return false;
  }
  return true;
}

// True if channels have the least stride.
bool has_inner_channels(const ep_operand_desc& operand) {
  if (!has_channels(operand) || is_repeated(operand, 1)) return false;
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    if (!is_repeated(operand, axis) && operand.strides[axis] < operand.strides[1]) return false;
  }
  return true;
}

// Makes `operand` dense: channels last if they are innermost, else row-major.
void make_dense(ep_operand_desc* operand) {
  const bool inner_channels = has_inner_channels(*operand);
  int64_t step = 1;
  if (inner_channels) {
    operand->strides[1] = 1;
    step = operand->dims[1];
  }
  for (int32_t axis = operand->rank; axis-- > 0;) {
    if (inner_channels && axis == 1) continue;
    operand->strides[axis] = step;
    step *= operand->dims[axis];
  }
}

// The operands that are copied: all, or all but SRC and WEIGHT, for products of narrow factors; or matrices whose rows
// and columns are both scattered, in their own dtype.
enum class Copied : uint8_t { all_but_factors, all, scattered };

bool is_matrix(const ep_operand_desc& operand) {
  return operand.role == EP_ROLE_DST || operand.role == EP_ROLE_SRC || operand.role == EP_ROLE_SRC_B;
}

// True if neither the rows nor the columns of a matrix are contiguous, or if it repeats one of them.
bool is_scattered(const ep_operand_desc& matrix) {
  bool has_unit = false;
  for (int32_t axis = matrix.rank - 2; axis < matrix.rank; ++axis) {
    if (matrix.strides[axis] == 0 && matrix.dims[axis] != 1) return true;
    has_unit |= matrix.strides[axis] == 1 || matrix.dims[axis] == 1;
  }
  return !has_unit;
}

// Makes `matrix` dense; batch axes that repeat matrices still do.
void gather_matrix(ep_operand_desc* matrix) {
  int64_t step = 1;
  for (int32_t axis = matrix->rank; axis-- > 0;) {
    if (axis < matrix->rank - 2 && matrix->strides[axis] == 0) continue;
    matrix->strides[axis] = step;
    step *= matrix->dims[axis];
  }
}

// `desc` over operands that are dense and of the wide type. An epilogue operand is laid out like DST, or has one
// element per channel. The type is f64 if any operand is f64, else f32.
ep_primitive_desc widened(const ep_primitive_desc& desc, Copied copied) {
  ep_primitive_desc wide = desc;
  const std::span<ep_operand_desc> operands(wide.operands, wide.operand_count);
  if (copied == Copied::scattered) {
    for (ep_operand_desc& operand : operands) {
      if (is_matrix(operand) && is_scattered(operand)) gather_matrix(&operand);
    }
    return wide;
  }
  const bool is_f64 = std::any_of(operands.begin(), operands.end(),
                                  [](const ep_operand_desc& operand) { return operand.dtype == EP_DTYPE_f64; });
  for (ep_operand_desc& operand : operands) {
    const bool is_factor = operand.role == EP_ROLE_SRC || operand.role == EP_ROLE_WEIGHT;
    if (is_factor && copied == Copied::all_but_factors) continue;
    operand.dtype = is_f64 ? EP_DTYPE_f64 : EP_DTYPE_f32;
    if (!is_epilogue_operand(operand)) {
      make_dense(&operand);
    } else if (is_per_channel(operand)) {
      for (int32_t axis = 0; axis < operand.rank; ++axis) operand.strides[axis] = is_repeated(operand, axis) ? 0 : 1;
    } else {
      std::copy_n(wide.operands[0].dims, operand.rank, operand.dims);
      std::copy_n(wide.operands[0].strides, operand.rank, operand.strides);
    }
  }
  return wide;
}

bool is_same(const ep_operand_desc& a, const ep_operand_desc& b) {
  if (a.dtype != b.dtype) return false;
  for (int32_t axis = 0; axis < a.rank; ++axis) {
    if (a.dims[axis] != b.dims[axis] || (a.dims[axis] != 1 && a.strides[axis] != b.strides[axis])) return false;
  }
  return true;
}

// The elements of an operand of widened(), which has no gaps.
int64_t elements_of(const ep_operand_desc& operand) {
  int64_t elements = 1;
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    if (operand.strides[axis] != 0) elements *= operand.dims[axis];
  }
  return elements;
}

// The bytes of all operands, which is the greatest penalty that a host expects.
uint64_t bytes_of(const ep_primitive_desc& desc) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    uint64_t size = static_cast<uint64_t>(dtype_size(operand.dtype));
    for (int32_t axis = 0; axis < operand.rank; ++axis) size *= static_cast<uint64_t>(operand.dims[axis]);
    bytes += size;
  }
  return bytes;
}

// Appends an axis of a copy, or joins it to the axis before, if both operands walk the two axes as one.
void add_axis(ep_primitive_desc* copy, int64_t dim, int64_t to_stride, int64_t from_stride) {
  ep_operand_desc &to = copy->operands[0], &from = copy->operands[1];
  const int32_t last = to.rank - 1;
  if (last >= 0 && to.strides[last] == dim * to_stride && from.strides[last] == dim * from_stride) {
    to.dims[last] = from.dims[last] = to.dims[last] * dim;
    to.strides[last] = to_stride;
    from.strides[last] = from_stride;
    return;
  }
  to.dims[to.rank] = from.dims[to.rank] = dim;
  to.strides[to.rank] = to_stride;
  from.strides[to.rank] = from_stride;
  from.rank = ++to.rank;
}

// A descriptor that copies `from` to `to`, with as few axes as possible, in the order of the dense one, which is `by`.
// Elements that `by` does not hold twice are copied once.
ep_primitive_desc copy_of(const ep_operand_desc& to, const ep_operand_desc& from, const ep_operand_desc& by) {
  ep_primitive_desc copy{};
  copy.kind = EP_PRIMITIVE_copy;
  copy.operand_count = 2;
  for (int32_t i = 0; i < 2; ++i) {
    copy.operands[i].role = i == 0 ? EP_ROLE_DST : EP_ROLE_SRC;
    copy.operands[i].dtype = i == 0 ? to.dtype : from.dtype;
    copy.operands[i].alignment = dtype_size(copy.operands[i].dtype);
  }
  int32_t axes[EP_MAX_RANK];
  for (int32_t axis = 0; axis < by.rank; ++axis) axes[axis] = axis;
  std::stable_sort(axes, axes + by.rank, [&](int32_t a, int32_t b) { return by.strides[a] > by.strides[b]; });
  const auto step = [&](const ep_operand_desc& operand, int32_t axis) {
    return operand.dims[axis] == by.dims[axis] ? operand.strides[axis] : 0;
  };
  for (int32_t i = 0; i < by.rank; ++i) {
    const int32_t axis = axes[i];
    if (by.dims[axis] != 1 && by.strides[axis] != 0) {
      add_axis(&copy, by.dims[axis], step(to, axis), step(from, axis));
    }
  }
  if (copy.operands[0].rank == 0) add_axis(&copy, 1, 1, 1);
  return copy;
}

// The implementations before Widened in the list of `kind`.
std::span<const Implementation> implementations_before(int32_t kind) {
  for (const ImplementationList& list : implementation_lists()) {
    if (list.kind != kind) continue;
    const auto self = std::find_if(list.implementations.begin(), list.implementations.end(),
                                   [](const Implementation& each) { return each.make == Widened::make; });
    return list.implementations.first(static_cast<size_t>(self - list.implementations.begin()));
  }
  return {};
}

// An operand that the inner primitive reads from, or writes to, a copy in the workspace.
struct CopiedOperand {
  uint32_t index;
  uint64_t offset;  // place of the copy in the workspace
  uint64_t bytes;
  OwnedPrimitive copy;  // to the workspace; for DST from it
};

class WidenedPrimitive final : public ep_primitive {
 public:
  // `constant` is the number of an operand that the host keeps packed; -1: none. `widen_constant` copies it to the wide
  // type before `inner` packs it. If `inner` does not pack it, the copy is the packed operand.
  WidenedPrimitive(OwnedPrimitive inner, std::vector<CopiedOperand> copies, OwnedPrimitive widen_constant,
                   uint64_t constant_bytes, bool inner_packs)
      : inner_(std::move(inner)),
        copies_(std::move(copies)),
        widen_constant_(std::move(widen_constant)),
        constant_bytes_(constant_bytes),
        inner_packs_(inner_packs) {
    for (const CopiedOperand& each : copies_) inner_offset_ = std::max(inner_offset_, each.offset + each.bytes);
  }

  uint64_t workspace(const ep_shape*) const override { return inner_offset_ + inner_->workspace(nullptr); }
  bool has_workspace() const override { return workspace(nullptr) != 0; }

  ep_status pack(char* dst, const char* src, ep_error** error) override {
    if (widen_constant_ == nullptr) return inner_->pack(dst, src, error);
    std::vector<char> room(inner_packs_ ? constant_bytes_ : 0);
    char* const wide = inner_packs_ ? room.data() : dst;
    ep_memory memories[] = {{host, wide, 0, true}, {host, const_cast<char*>(src), 0, true}};
    const ep_buffer buffers[] = {{&memories[0], 0}, {&memories[1], 0}};
    const ep_status status = copy(*widen_constant_, buffers, {}, nullptr, error);
    return status == EP_STATUS_OK && inner_packs_ ? inner_->pack(dst, wide, error) : status;
  }

  ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error** error) override {
    if (has_workspace() && launch.workspace.memory == nullptr) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "The launch of a widened primitive has no workspace.");
    }
    ep_buffer operands[EP_MAX_OPERANDS];
    std::copy_n(launch.operands, launch.operand_count, operands);
    const CopiedOperand* result = nullptr;
    for (const CopiedOperand& each : copies_) {
      operands[each.index] = within(launch.workspace, each.offset);
      if (each.index == 0) {
        result = &each;
        continue;
      }
      const ep_buffer both[] = {operands[each.index], launch.operands[each.index]};
      const ep_status status = copy(*each.copy, both, launch, out_fault, error);
      if (status != EP_STATUS_OK) return status;
    }
    ep_launch inner = launch;
    inner.operands = operands;
    inner.workspace = within(launch.workspace, inner_offset_);
    const ep_status status = inner_->launch(inner, out_fault, error);
    if (status != EP_STATUS_OK || result == nullptr) return status;
    const ep_buffer both[] = {launch.operands[0], operands[0]};
    return copy(*result->copy, both, launch, out_fault, error);
  }

 private:
  static ep_buffer within(ep_buffer buffer, uint64_t offset) {
    buffer.offset += offset;
    return buffer;
  }

  static ep_status copy(ep_primitive& primitive, const ep_buffer (&operands)[2], const ep_launch& of,
                        ep_fault* out_fault, ep_error** error) {
    ep_launch launch{};
    launch.operands = operands;
    launch.operand_count = 2;
    launch.tag = of.tag;
    return primitive.launch(launch, out_fault, error);
  }

  OwnedPrimitive inner_;
  std::vector<CopiedOperand> copies_;
  OwnedPrimitive widen_constant_;
  uint64_t constant_bytes_;
  bool inner_packs_;
  uint64_t inner_offset_ = 0;  // place of the workspace of `inner_`
};

Refusal make_copy(ep_device& device, const ep_primitive_desc& copy, OwnedPrimitive* out) {
  ep_primitive* made = nullptr;
  ep_primitive_info ignored{};
  Refusal refusal = Elementwise::make(device, copy, &made, ignored);
  out->reset(made);
  return refusal;
}

// Calls attempt(wide descriptor, implementation) until it does not refuse, or fails.
template <class Attempt>
Refusal first_that_serves(const ep_primitive_desc& desc, const Attempt& attempt) {
  Refusal last = Refusal::because("no implementation of wide, dense operands");
  constexpr Copied of_windows[] = {Copied::all_but_factors, Copied::all}, of_matrices[] = {Copied::scattered};
  const bool is_matmul = desc.kind == EP_PRIMITIVE_matmul;
  for (const Copied copied : is_matmul ? std::span<const Copied>(of_matrices) : std::span<const Copied>(of_windows)) {
    const ep_primitive_desc wide = widened(desc, copied);
    if (std::equal(wide.operands, wide.operands + wide.operand_count, desc.operands, is_same)) continue;
    for (const Implementation& implementation : implementations_before(desc.kind)) {
      last = attempt(wide, implementation);
      if (!last || last.status() != EP_STATUS_UNSUPPORTED) return last;
    }
  }
  return last;
}

}  // namespace

Refusal Widened::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (is_dynamic(desc)) return Refusal::because("copies of operands need static dims");
  if (desc.kind == EP_PRIMITIVE_matmul && desc.operands[0].dtype != EP_DTYPE_bf16) {
    return Refusal::because("blocks read scattered matrices of %s in place", dtype_name(desc.operands[0].dtype));
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& operand = desc.operands[i];
    if (is_scalar(operand)) return Refusal::because("operand %u is a scalar", i);
    if (!is_row_float(operand.dtype)) return Refusal::because("operand %u is %s", i, dtype_name(operand.dtype));
    if (is_epilogue_operand(operand) && operand.rank != desc.operands[0].rank) {
      return Refusal::because("operand %u has rank %d", i, operand.rank);
    }
  }
  return first_that_serves(desc, [&](const ep_primitive_desc& wide, const Implementation& implementation) {
    ep_support_info terms{};
    const Refusal refusal = provider::why_not(implementation, device, wide, terms);
    if (!refusal) info.penalty_bytes = std::min(terms.penalty_bytes, bytes_of(desc));
    return refusal;
  });
}

Refusal Widened::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info) {
  ep_primitive_desc wide{};
  OwnedPrimitive inner, widen_constant;
  ep_primitive_info inner_info{};
  const Refusal none =
      first_that_serves(desc, [&](const ep_primitive_desc& tried, const Implementation& implementation) {
        ep_support_info terms{};
        if (Refusal refusal = provider::why_not(implementation, device, tried, terms)) return refusal;
        ep_primitive* made = nullptr;
        inner_info = {};
        Refusal refusal = implementation.make(device, tried, &made, inner_info);
        inner.reset(made);
        wide = tried;
        return refusal;
      });
  if (none) return none;
  info.host_bytes = std::max(inner_info.host_bytes, inner->size) + sizeof(WidenedPrimitive);
  info.pack_operand = inner_info.pack_operand;
  info.pack_bytes = inner_info.pack_bytes;
  info.pack_layout = inner_info.pack_layout;
  std::vector<CopiedOperand> copies;
  uint64_t offset = 0, constant_bytes = 0;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc &given = desc.operands[i], &copied = wide.operands[i];
    if (is_same(given, copied)) continue;
    const uint64_t bytes = static_cast<uint64_t>(elements_of(copied) * dtype_size(copied.dtype));
    const bool is_constant =
        (given.flags & EP_OPERAND_FLAG_CONSTANT) != 0 &&
        (inner_info.pack_operand == 0 ? given.role == EP_ROLE_WEIGHT : inner_info.pack_operand == i + 1);
    if (is_constant) {
      if (Refusal refusal = make_copy(device, copy_of(copied, given, copied), &widen_constant)) return refusal;
      constant_bytes = bytes;
      if (inner_info.pack_operand != 0) continue;
      info.pack_operand = i + 1;
      info.pack_bytes = bytes;
      info.pack_layout = packed_layout("widened", copied.dtype, dtype_size(copied.dtype));
      continue;
    }
    CopiedOperand one{i, offset, (bytes + 255) / 256 * 256, {}};
    const ep_primitive_desc copy = i == 0 ? copy_of(given, copied, copied) : copy_of(copied, given, copied);
    if (Refusal refusal = make_copy(device, copy, &one.copy)) return refusal;
    offset += one.bytes;
    info.host_bytes += one.copy->size;
    copies.push_back(std::move(one));
  }
  *out = make_primitive<WidenedPrimitive>(device, std::move(inner), std::move(copies), std::move(widen_constant),
                                          constant_bytes, inner_info.pack_operand != 0);
  return {};
}

}  // namespace tenon::provider::cpu
