// ProgramWriter: a program as the nodes of a model.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "sdk/onnx/exporter/node_writer.h"
#include "sdk/onnx/onnx.h"

namespace tenon::onnx {

class ProgramWriter {
 public:
  // `options` must name every input and output.
  ProgramWriter(graph::Graph& graph, const ExportOptions& options);

  // Errors: unsupported, with a line for each node that no row can write.
  void write();

  const std::vector<Operand>& inputs() const { return inputs_; }
  const std::vector<Operand>& outputs() const { return outputs_; }
  ModelWriter& model() { return model_; }
  // The name of an open dim of an input or output; empty if it has none.
  std::string dim_name(SymDim dim) const;

 private:
  void add_inputs();
  void fix_sizes();
  void check_sizes();
  Operand operand(graph::ValueId id);
  std::string constant_name(const Tensor& tensor) const;
  void write_node(graph::NodeId id);
  void write_epilogues(const graph::Node& node, Operand* result);
  void write_by_row(const OpInfo& op, NodeWriter& n) const;
  void refuse_dtype(DType dtype) const;
  void name_outputs();

  graph::Graph& graph_;
  const ExportOptions& options_;
  compilation::ProgramSizes sizes_;
  ModelWriter model_;
  std::map<graph::ValueId, Operand> values_;
  std::vector<Operand> inputs_, outputs_;
  std::map<uint64_t, std::string> dim_names_;  // by word of the symbol
  std::vector<std::string> refusals_;
};

}  // namespace tenon::onnx
