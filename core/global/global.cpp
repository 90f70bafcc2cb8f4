#include "core/global/global.h"

#include <cstring>
#include <utility>
#include <vector>

#include "core/autograd/autograd.h"
#include "core/global/ahead.h"
#include "core/global/communicator.h"
#include "core/global/global_program.h"
#include "core/global/interpreter.h"
#include "core/global/value.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::global {
namespace {

const GlobalValue& need_value(std::string_view caller, const Tensor& tensor) {
  if (!tensor.defined()) throw Error(Subject{caller}, Code::invalid_argument, "the tensor is undefined.");
  if (const GlobalValue* value = value_of(tensor)) return *value;
  throw Error(Subject{caller}, Code::invalid_argument,
              fmt::format("the tensor of shape {} is local; a global tensor is needed.", tensor.dims()));
}

void check_partial(DType dtype, const Layout& layout) {
  if (dtype != DType::boolean) return;
  for (const Sbp sbp : layout.sbp) {
    if (sbp.is_partial())
      throw Error(Subject{"to_global"}, Code::unsupported, "elements of bool have no partial sums.");
  }
}

// The facts about its part that each rank sends.
struct Said {
  int64_t rank = -1;  // -1: it has no part
  int64_t dims[EP_MAX_RANK] = {};
  int32_t dtype = 0, reserved = 0;
};

// Dtype and dims of the tensor whose part on each rank is `local`. All ranks get the same error.
TensorMeta whole_of(const Tensor& local, const Layout& layout) {
  Communicator& world = *value_or_throw(Communicator::world());
  const Placement& placement = layout.placement;
  Said own;
  if (placement.here()) {
    own.rank = local.rank();
    own.dtype = static_cast<int32_t>(local.dtype());
    std::copy(local.dims().begin(), local.dims().end(), own.dims);
  }
  std::vector<Said> all(static_cast<size_t>(world.size()));
  const std::vector<int64_t> counts(all.size(), sizeof(Said));
  throw_if_error(world.all_gather(&own, all.data(), counts, DType::u8, "to_global"));
  const auto said = [&](int32_t position) -> const Said& {
    return all[static_cast<size_t>(placement.ranks()[static_cast<size_t>(position)])];
  };
  const auto dims_of = [&](int32_t position) {
    return Dims(std::span<const int64_t>(said(position).dims, static_cast<size_t>(said(position).rank)));
  };
  const auto refuse = [&](int32_t position, std::string_view why) {
    const int32_t rank = placement.ranks()[static_cast<size_t>(position)];
    throw Error(Subject{"to_global"}, Code::invalid_argument,
                fmt::format("rank {} gives {} {}, {}.", rank, dtype_name(static_cast<DType>(said(position).dtype)),
                            dims_of(position), why));
  };
  // The sum of the lengths along each split, over the ranks that differ from the first rank only along that axis of the
  // grid.
  Dims dims = dims_of(0);
  throw_if_error(check_layout("to_global", dims, layout));
  const Dims& grid = placement.grid();
  for (int32_t axis = grid.rank() - 1; axis >= 0; --axis) {
    if (!layout.sbp[axis].is_split()) continue;
    int64_t& length = dims[layout.sbp[axis].axis()];
    // Ranks after the first hold parts of the same nesting, so lengths add up starting at the innermost split.
    length = 0;
    for (int32_t position = 0; position < placement.size(); ++position) {
      const Dims at = placement.coordinates(position);
      bool counts_here = true;
      for (int32_t each = 0; each < grid.rank(); ++each) {
        counts_here = counts_here && (at[each] == 0 || layout.sbp[each] == layout.sbp[axis]);
      }
      if (counts_here && said(position).rank == dims.rank()) length += said(position).dims[layout.sbp[axis].axis()];
    }
  }
  for (int32_t position = 0; position < placement.size(); ++position) {
    const Dims wanted = box_of(dims, layout.sbp, grid, placement.coordinates(position)).dims;
    if (said(position).dtype != said(0).dtype) {
      refuse(position,
             fmt::format("and rank {} {}", placement.ranks()[0], dtype_name(static_cast<DType>(said(0).dtype))));
    }
    if (dims_of(position) == wanted) continue;
    refuse(position,
           fmt::format("and its part of a tensor of shape {} as {} has shape {}", dims, to_string(layout.sbp), wanted));
  }
  return {static_cast<DType>(said(0).dtype), dims, {}};
}

Tensor spread(const Tensor& local, const Layout& layout) {
  const TensorMeta whole = whole_of(local, layout);
  check_partial(whole.dtype, layout);
  if (!layout.placement.here()) return make_global(whole.dtype, whole.dims, layout, {});
  const Device device = layout.placement.device();
  return make_global(whole.dtype, whole.dims, layout, local.device() == device ? local.detach() : local.to(device));
}

// True if `part`, of `value` in the layout `to`, may share memory with `value`. Values of a program cannot tell; they
// share if nothing moves.
bool may_share(const Tensor& part, const GlobalValue& value, const Layout& to) {
  if (!value.local.defined()) return false;
  if (current_program() == nullptr) return part.impl()->storage == value.local.impl()->storage;
  if (!(value.layout.placement == to.placement)) return false;
  for (int32_t axis = 0; axis < to.sbp.rank(); ++axis) {
    if (value.layout.sbp[axis] != to.sbp[axis] && !value.layout.sbp[axis].is_broadcast()) return false;
  }
  return true;
}

Tensor moved(const Tensor& tensor, const Layout& to) {
  refresh(tensor);
  check_partial(tensor.dtype(), to);
  const GlobalValue& value = *value_of(tensor);
  throw_if_error(check_layout("to_global", tensor.dims(), to));
  const bool is_large = value.local.defined() && value.local.bytes() >= kLarge;
  Tensor part = boxed(tensor, to, is_large ? Needed::later : Needed::now);
  forget_shared(value_of(tensor), part);
  // Tensors of two layouts must never share memory: a write would be visible through the other one on some ranks only.
  if (part.defined() && !(value.layout == to) && may_share(part, value, to)) {
    const InterpreterScope scope(parts_interpreter());
    part = tenon::clone(part);
  }
  return make_global(tensor.dtype(), tensor.dims(), to, std::move(part));
}

class ToGlobal final : public Function {
 public:
  explicit ToGlobal(Layout to) : to_(std::move(to)) {}
  std::string name() const override { return "to_global"; }

  TensorList forward(const TensorList& inputs) override {
    const GlobalValue* value = value_of(inputs[0]);
    was_global_ = value != nullptr;
    from_ = without_partial(was_global_ ? value->layout : to_);
    return {was_global_ ? moved(inputs[0], to_) : spread(inputs[0], to_)};
  }

  TensorList backward(const TensorList& gradients) override {
    const Tensor gradient = moved(gradients[0], from_);
    return {was_global_ ? gradient : to_local(gradient)};
  }

 private:
  Layout to_, from_;
  bool was_global_ = false;
};

class ToLocal final : public Function {
 public:
  std::string name() const override { return "to_local"; }

  TensorList forward(const TensorList& inputs) override {
    refresh(inputs[0]);
    const GlobalValue& value = *value_of(inputs[0]);
    from_ = without_partial(value.layout);
    dims_ = inputs[0].dims();
    return {value.local};
  }

  TensorList backward(const TensorList& gradients) override {
    return {make_global(gradients[0].dtype(), dims_, from_, gradients[0])};
  }

 private:
  Layout from_;
  Dims dims_;
};

}  // namespace

namespace {

Layout checked(std::string_view caller, const Dims& dims, const Placement& placement, const NdSbp& sbp) {
  Layout layout{placement, sbp};
  throw_if_error(check_layout(caller, dims, layout));
  return layout;
}

// True if this rank holds the elements of a partial sum, while the others hold zeros.
bool holds_sum(const Layout& layout) {
  const Dims at = layout.placement.coordinates(layout.placement.position());
  for (int32_t axis = 0; axis < at.rank(); ++axis) {
    if (layout.sbp[axis].is_partial() && at[axis] != 0) return false;
  }
  return true;
}

template <class Make>
Tensor random(std::string_view caller, IntList size, const Placement& placement, const NdSbp& sbp, DType dtype,
              const Make& make) {
  const Dims dims{std::span<const int64_t>(size)};
  const Layout to = checked(caller, dims, placement, sbp);
  const NoGrad scope;
  const Tensor whole = make(size, dtype);
  const Layout everywhere{placement, NdSbp::filled(sbp.rank(), Sbp::broadcast())};
  const Tensor there = placement.here() ? whole.to(placement.device()) : Tensor();
  return moved(make_global(dtype, dims, everywhere, there), to);
}

}  // namespace

int32_t rank() { return value_or_throw(Communicator::world())->rank(); }
int32_t world_size() { return value_or_throw(Communicator::world())->size(); }

Tensor full(IntList size, Scalar value, const Placement& placement, const NdSbp& sbp, DType dtype) {
  const Dims dims{std::span<const int64_t>(size)};
  const Layout layout = checked("full", dims, placement, sbp);
  check_partial(dtype, layout);
  if (!placement.here()) return make_global(dtype, dims, layout, {});
  const Dims part = local_dims(dims, layout);
  return make_global(dtype, dims, layout,
                     tenon::full(part, holds_sum(layout) ? value : Scalar(0), dtype, placement.device()));
}
Tensor zeros(IntList size, const Placement& placement, const NdSbp& sbp, DType dtype) {
  return full(size, Scalar(0), placement, sbp, dtype);
}
Tensor ones(IntList size, const Placement& placement, const NdSbp& sbp, DType dtype) {
  return full(size, Scalar(1), placement, sbp, dtype);
}
Tensor rand(IntList size, const Placement& placement, const NdSbp& sbp, DType dtype) {
  return random("rand", size, placement, sbp, dtype,
                [](IntList dims, DType of) { return tenon::rand(dims, of, Device::host()); });
}
Tensor randn(IntList size, const Placement& placement, const NdSbp& sbp, DType dtype) {
  return random("randn", size, placement, sbp, dtype,
                [](IntList dims, DType of) { return tenon::randn(dims, of, Device::host()); });
}

bool is_global(const Tensor& tensor) { return value_of(tensor) != nullptr; }

Layout layout_of(const Tensor& tensor) { return need_value("layout_of", tensor).layout; }

Tensor to_global(const Tensor& tensor, const Placement& placement, const NdSbp& sbp) {
  if (!tensor.defined()) throw Error(Subject{"to_global"}, Code::invalid_argument, "the tensor is undefined.");
  Layout to{placement, sbp};
  // The parts of a local tensor are checked collectively, so that all ranks get the same error.
  const bool fits_grid = placement.defined() && sbp.rank() == placement.grid().rank();
  if (!fits_grid || is_global(tensor)) throw_if_error(check_layout("to_global", tensor.dims(), to));
  return call_function(std::make_shared<ToGlobal>(std::move(to)), {tensor})[0];
}

Tensor to_global(const Tensor& tensor, const NdSbp& sbp) {
  return to_global(tensor, need_value("to_global", tensor).layout.placement, sbp);
}

Tensor to_local(const Tensor& tensor) {
  const GlobalValue& value = need_value("to_local", tensor);
  if (!value.local.defined()) return {};
  return call_function(std::make_shared<ToLocal>(), {tensor})[0];
}

}  // namespace tenon::global
