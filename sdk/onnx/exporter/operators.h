// The table of ops that can be written, one row per op of Tenon. Each family of ops has a list.
#pragma once

#include <span>
#include <string_view>

#include "sdk/onnx/exporter/node_writer.h"

namespace tenon::onnx {

// The opset of written models: the newest one that Debian's onnx checks.
constexpr int64_t kWrittenOpset = 17;
constexpr int64_t kWrittenIrVersion = 8;

struct OperatorRow {
  std::string_view op;    // the op of Tenon
  std::string_view onnx;  // the ONNX operator for it, or the main one of several
  // Writes the node. Null: `onnx` takes the inputs as they are, without attributes.
  void (*write)(NodeWriter& n) = nullptr;
};

std::span<const OperatorRow> assemble_rows();
std::span<const OperatorRow> elementwise_rows();
std::span<const OperatorRow> layer_rows();
std::span<const OperatorRow> product_rows();
std::span<const OperatorRow> recurrent_rows();
std::span<const OperatorRow> reduce_rows();
std::span<const OperatorRow> view_rows();

// The row of `op`; null if there is none.
const OperatorRow* find_row(std::string_view op);
// Writes the node with its row.
void write_node(const OperatorRow& row, NodeWriter& n);

}  // namespace tenon::onnx
