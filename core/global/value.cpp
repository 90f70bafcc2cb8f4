#include "core/global/value.h"

#include <algorithm>
#include <utility>

#include "core/device/call_site.h"
#include "core/global/ahead.h"
#include "core/global/global_program.h"
#include "core/global/interpreter.h"
#include "core/ops/sizes.h"
#include "core/tensor/factory.h"
#include "primitives/text/format.h"

namespace tenon::global {
namespace {}  // namespace

void Written::note() {
  ++count;
  GlobalProgram* recorded = current_program();
  program = recorded == nullptr ? 0 : recorded->number;
  last = recorded == nullptr ? 0 : ++recorded->time;
}

GlobalValue::GlobalValue(Layout where, Tensor part)
    : program(current_program() == nullptr ? 0 : current_program()->number),
      ready(current_program() == nullptr ? 0 : ++current_program()->time),
      layout(std::move(where)),
      local(std::move(part)),
      writes(std::make_shared<Written>()) {}

int64_t GlobalValue::ready_at(uint64_t of_program) const {
  return std::max(program == of_program ? ready : 0, writes->program == of_program ? writes->last : 0);
}

std::unique_ptr<StandIn> GlobalValue::alias() const {
  auto same = std::make_unique<GlobalValue>(layout, local);
  same->copied = copied;
  same->writes = writes;
  same->ahead = ahead;
  same->known = known;
  return same;
}

Interpreter& GlobalValue::interpreter() const { return global_interpreter(); }

void GlobalValue::compose(const OpCall& call) const { compose_global(call, layout.placement); }

Tensor GlobalValue::gathered(const Tensor& tensor) const {
  static constexpr OpName kRead{"a read"};
  const CalledScope called(kRead);
  refresh(tensor);
  const Layout whole{layout.placement, NdSbp::filled(layout.sbp.rank(), Sbp::broadcast())};
  const Tensor all = boxed(tensor, whole);
  if (all.defined()) return all;
  throw Error(Code::invalid_argument,
              fmt::format("The elements of a tensor on {} cannot be read on a rank outside of the placement.",
                          layout.to_string()),
              "First move it with to_global to a placement that includes this rank.");
}

std::string GlobalValue::origin() const { return fmt::format("a global tensor on {}", layout.to_string()); }

// A copy is updated on its next use, which does not count as a write; its base counts all writes.
uint64_t GlobalValue::version() const {
  if (copied != nullptr) return write_count(copied->base);
  return local.defined() ? write_count(local) : 0;
}

void GlobalValue::accumulated(const Tensor& gradient, std::shared_ptr<void>* of_leaf) {
  note_accumulation(gradient, of_leaf);
}

std::string_view GlobalValue::written_by() const {
  if (copied != nullptr) return last_writer(copied->base);
  return local.defined() ? last_writer(local) : std::string_view();
}

GlobalValue* value_of(const Tensor& tensor) {
  SpreadValue* value = spread_value(tensor);
  const bool global = value != nullptr && &value->interpreter() == &global_interpreter();
  return global ? static_cast<GlobalValue*>(value) : nullptr;
}

Tensor make_global(DType dtype, const Dims& dims, const Layout& layout, Tensor local) {
  DeviceState* device = layout.placement.device() ? layout.placement.device().state() : Device::host().state();
  Tensor made = make_meta(device, {dtype, dims, contiguous_strides(dims)});
  made.impl()->stand_in = new GlobalValue(layout, std::move(local));
  values_elsewhere.store(true, std::memory_order_relaxed);
  return made;
}

std::optional<Facts> facts_of(const Tensor& tensor) {
  const GlobalValue* value = value_of(tensor);
  if (value == nullptr) return std::nullopt;
  return Facts{tensor.dtype(), tensor.dims(), tensor.strides(), value->layout};
}

Tensor make_global(const Facts& facts, Tensor local) {
  Tensor made = make_global(facts.dtype, facts.dims, facts.layout, std::move(local));
  made.impl()->strides = facts.strides;
  settle_layout(made.impl());
  return made;
}

const Tensor& held(const Tensor& tensor) {
  const GlobalValue* value = value_of(tensor);
  return value == nullptr ? tensor : value->local;
}

Dims local_dims(const Dims& dims, const Layout& layout) {
  const Placement& placement = layout.placement;
  return box_of(dims, layout.sbp, placement.grid(), placement.coordinates(placement.position())).dims;
}

}  // namespace tenon::global
