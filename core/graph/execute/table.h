// Describes steps of a graph as a table of the ABI (ep_api.h, "Whole graphs"). Internal to core/graph/execute.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/graph/execute/executable.h"
#include "core/graph/execute/roots.h"
#include "core/interpreter/device_graph.h"
#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon::graph {

// A step as a node: its descriptor, and the location of each operand.
struct TableNode {
  uint32_t step = 0;
  ep_primitive_desc desc{};  // with baked scalars
  struct Operand {
    uint32_t root = 0;    // value of the graph; 0: the operand is a scalar
    uint64_t offset = 0;  // in bytes
  };
  std::array<Operand, EP_MAX_OPERANDS> operands{};
  CompiledGraph::Node name;
};

// The node of step number `step`, which has an elementwise or kernel op, on `device`. Errors: unsupported or
// invalid_argument, with the reason why the step cannot be a node.
Result<TableNode> make_node(const Executable& program, const Roots& roots, DeviceState* device, uint32_t step);

// The table of `nodes`, which are in the order of their steps. The graph keeps `constants` alive.
class Table {
 public:
  // `wanted` returns true for a value written by the nodes that is also needed outside of them.
  Table(const Executable& program, std::span<const TableNode* const> nodes,
        const std::function<bool(uint32_t root)>& wanted);
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const ep_graph_desc& desc() const { return desc_; }
  // The values of the graph that are inputs of the table, and those that are its outputs.
  const std::vector<uint32_t>& inputs() const { return inputs_; }
  const std::vector<uint32_t>& outputs() const { return outputs_; }
  const std::vector<Tensor>& constants() const { return constants_; }

 private:
  uint32_t add(const Executable& program, uint32_t root, uint64_t flags);
  void number_values(const Executable& program, std::span<const TableNode* const> nodes,
                     const std::function<bool(uint32_t root)>& wanted);

  std::vector<uint32_t> numbers_;  // by value of the graph: 1 + its number in the table, or 0 if it has none
  std::vector<uint32_t> inputs_, outputs_;
  std::vector<Tensor> constants_;
  std::vector<ep_graph_value> values_;
  std::vector<ep_buffer> buffers_;
  std::vector<ep_graph_node> nodes_;
  ep_graph_desc desc_{};
};

}  // namespace tenon::graph
