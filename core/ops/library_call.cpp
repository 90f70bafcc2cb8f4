#include "core/ops/library_call.h"

#include "primitives/text/format.h"

namespace tenon::library {
namespace {

std::string dtype_names(uint32_t dtypes) {
  std::string names;
  for (uint32_t id = 1; id < 32; ++id) {
    if ((dtypes >> id & 1) != 0)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", dtype_name(static_cast<DType>(id)));
  }
  return names;
}

// "input", or "argument 1" if the op's parameter names are unknown.
std::string argument(const OpInfo& op, size_t input) {
  return input < op.named.arguments.size() ? std::string(op.named.arguments[input]) : fmt::format("argument {}", input);
}

}  // namespace

Named::Named(const OpName& name) : previous_(call_site.called) {
  if (previous_ == nullptr || previous_->op == name.op) call_site.called = &name;
}
Named::~Named() { call_site.called = previous_; }

void submit(const OpInfo& op, std::span<const Tensor* const> inputs, std::span<const Scalar> scalars,
            const void* attributes, DeviceState* device, std::span<Tensor> outputs) {
  OpCall call;
  call.op = &op;
  call.inputs = inputs;
  call.scalars = scalars;
  call.attributes = attributes;
  call.device = device;
  call.outputs = outputs;
  tenon::submit(call);
}

void refuse_long(std::string_view op) {
  throw Error(
      Subject{op}, Code::invalid_argument,
      fmt::format("a list has more than {} numbers, or a text more than {} bytes.", EP_MAX_RANK, TextAttribute::kMost));
}

Status wrong_dtype(const OpInfo& op, size_t input, DType dtype, uint32_t dtypes) {
  return Status(Subject{op.name}, Code::invalid_argument,
                fmt::format("{} is {}; it may be {}.", argument(op, input), dtype_name(dtype), dtype_names(dtypes)));
}

Status missing(const OpInfo& op, size_t input) {
  return Status(Subject{op.name}, Code::invalid_argument,
                fmt::format("{} is an undefined tensor.", argument(op, input)));
}

void HostTensor::refuse_type(DType asked) const {
  throw Error(Subject{"span"}, Code::invalid_argument,
              fmt::format("the tensor holds {}, not {}.", dtype_name(dtype), dtype_name(asked)));
}

}  // namespace tenon::library
