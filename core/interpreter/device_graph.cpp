#include "core/interpreter/device_graph.h"

#include "core/device/process.h"
#include "core/interpreter/execution_report.h"
#include "core/interpreter/operands.h"
#include "core/interpreter/order.h"
#include "core/tensor/factory.h"
#include "core/vm/vm.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

vm::Operand operand_of(const Tensor& tensor, bool write) {
  const TensorImpl& impl = *tensor.impl();
  return {impl.storage, static_cast<uint64_t>(dtype_bytes(impl.dtype, impl.offset)), write, write};
}

void count(const CompiledGraph& graph, uint64_t bytes_copied) {
  const size_t nodes = graph.nodes.size();
  const ExecutionEntry entry{fmt::format("graph of {} node{}", nodes, nodes == 1 ? "" : "s"),
                             graph.device->opened->spelling,
                             graph.implementation,
                             Rung::native,
                             "",
                             1,
                             bytes_copied,
                             std::string(tier_name(graph.tier))};
  count_execution(entry);
  if (process::attention.load(std::memory_order_relaxed) & process::kReport) note_execution(entry);
}

}  // namespace

std::vector<Tensor> launch_graph(const std::shared_ptr<const CompiledGraph>& graph,
                                 std::span<const Tensor* const> inputs, std::span<const TensorMeta> input_metas,
                                 std::span<const TensorMeta> output_metas) {
  std::vector<Tensor> kept, outputs;
  std::vector<vm::Operand> operands;
  uint64_t bytes_copied = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& given = *inputs[i];
    const bool fits = same_layout(given.dims(), given.strides(), input_metas[i].strides);
    kept.push_back(fits ? given : dense_on_device(given, input_metas[i].strides));
    if (!fits) bytes_copied += static_cast<uint64_t>(given.bytes());
    operands.push_back(operand_of(kept.back(), false));
  }
  for (const TensorMeta& meta : output_metas) {
    outputs.push_back(value_or_throw(make_tensor(graph->device, meta.dtype, meta.dims, meta.strides)));
    operands.push_back(operand_of(outputs.back(), true));
  }
  throw_if_error(vm::launch(vm::GraphLaunch{graph, operands, vm::current_stream(graph->device)}));
  count(*graph, bytes_copied);
  return outputs;
}

void wait_for_bytes(const Tensor& tensor) { throw_if_error(vm::settle(tensor.impl()->storage, false, false)); }

ep_buffer buffer_of(const Tensor& tensor) { return address_of(*tensor.impl()); }

}  // namespace tenon
