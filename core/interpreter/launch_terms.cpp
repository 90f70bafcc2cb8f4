#include "core/interpreter/launch_terms.h"

#include <algorithm>
#include <vector>

#include "core/device/device_state.h"
#include "core/interpreter/inference.h"
#include "core/interpreter/lower.h"
#include "primitives/descriptor/descriptor.h"

namespace tenon {

Result<LaunchTerms> launch_terms(const OpCall& call, DeviceState* device) {
  if (call.op->form != OpForm::elementwise && call.op->form != OpForm::kernel) return LaunchTerms{};
  std::vector<TensorMeta> outputs;
  TENON_RETURN_IF_ERROR(infer_outputs(call, &outputs));
  if (std::any_of(outputs.begin(), outputs.end(),
                  [](const TensorMeta& output) { return element_count(output.dims) == 0; })) {
    return LaunchTerms{};
  }
  LoweredCall lowered;
  TENON_RETURN_IF_ERROR(lower_call(call, outputs, &lowered));
  ep_support_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_SUPPORT_INFO;
  ep_error* error = nullptr;
  const ep_primitive_desc& desc = lowered.lowering.desc;
  const ep_status code = device->ops.primitive_support(device->handle, &desc, &info, &error);
  TENON_RETURN_IF_ERROR(loader::take_error(code, error, {}));
  LaunchTerms terms;
  if (info.implementation.size != 0) terms.implementation.assign(info.implementation.data, info.implementation.size);
  terms.penalty = std::min(info.penalty_bytes, descriptor::greatest_penalty(desc));
  return terms;
}

}  // namespace tenon
