// Dims and dtype of element-wise ops: arguments of one dtype broadcast. core/interpreter lowers them.
#include "core/ops/rules/elementwise.h"

#include "primitives/infer/broadcast-inl.h"
#include "primitives/text/format.h"

namespace tenon::ops {
namespace {

// The common dtype of the inputs.
template <class Call>
Result<DType> compute_dtype(const Call& call) {
  DType dtype = DType::none;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const auto* input = call.inputs[i];
    if (input == nullptr) continue;
    const bool condition = i == 0 && call.op->cond_first;
    if (condition && input->dtype() != DType::boolean) {
      return Status(Subject{call.op->name}, Code::invalid_argument,
                    fmt::format("the condition is {}, not bool.", dtype_name(input->dtype())));
    }
    if (condition) continue;
    if (dtype == DType::none) dtype = input->dtype();
    if (dtype != input->dtype()) {
      return Status(Subject{call.op->name}, Code::invalid_argument,
                    fmt::format("arguments of dtype {} and {} are mixed; cast them to one dtype.", dtype_name(dtype),
                                dtype_name(input->dtype())));
    }
  }
  if (dtype == DType::none) {
    return Status(Subject{call.op->name}, Code::invalid_argument, "no argument is a tensor.");
  }
  return dtype;
}

}  // namespace

template <class Call>
Status infer_elementwise(const Call& call, typename Call::Meta* output) {
  TENON_ASSIGN_OR_RETURN(const DType compute, compute_dtype(call));
  output->dtype = call.op->bool_result ? DType::boolean : compute;
  bool first = true;
  for (const auto* input : call.inputs) {
    if (input == nullptr) continue;
    if (first) {
      output->dims = input->dims();
      first = false;
    } else if (!identical(output->dims, input->dims())) {
      TENON_ASSIGN_OR_RETURN(output->dims,
                             infer::broadcast<typename Call::Size>(call.op->name, output->dims, input->dims()));
    }
  }
  return {};
}

template Status infer_elementwise(const OpCall&, TensorMeta*);
template Status infer_elementwise(const SymCall&, SymMeta*);

}  // namespace tenon::ops
