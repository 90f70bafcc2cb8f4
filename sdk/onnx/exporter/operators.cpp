#include "sdk/onnx/exporter/operators.h"

#include <unordered_map>

#include "sdk/onnx/onnx.h"

namespace tenon::onnx {
namespace {

const std::vector<std::span<const OperatorRow>>& families() {
  static const std::vector<std::span<const OperatorRow>> all = {
      assemble_rows(), elementwise_rows(), layer_rows(), product_rows(), recurrent_rows(), reduce_rows(), view_rows(),
  };
  return all;
}

}  // namespace

const OperatorRow* find_row(std::string_view op) {
  static const auto rows = [] {
    std::unordered_map<std::string_view, const OperatorRow*> by_name;
    for (const auto& family : families()) {
      for (const OperatorRow& row : family) by_name.emplace(row.op, &row);
    }
    return by_name;
  }();
  const auto found = rows.find(op);
  return found == rows.end() ? nullptr : found->second;
}

void write_node(const OperatorRow& row, NodeWriter& n) {
  if (row.write != nullptr) return row.write(n);
  n.give(n.add(row.onnx, n.all()));
}

std::vector<ExportedOp> exported_ops() {
  std::vector<ExportedOp> ops;
  for (const auto& family : families()) {
    for (const OperatorRow& row : family) ops.push_back({row.op, row.onnx});
  }
  return ops;
}

}  // namespace tenon::onnx
