// Way: a way for cuDNN to compute a problem. WayGraph: the graph of one way.
#pragma once

#include <vector>

#include "providers/cuda/convolution/cudnn_problem.h"

namespace tenon::provider::cuda {

// cuDNN has all operands in one order of axes. `fused`: the tail is part of cuDNN's graph. `widened`: the inputs are
// converted to f32 first, and the tail follows as kernels. Tensor cores round f32 to TF32, which holds every f16 and
// bf16 exactly, so nothing is lost.
struct Way {
  bool channels_last;
  bool fused;
  bool widened;
};

// The ways to try, best first: each in the given order of axes, then in the other one. Pure.
std::vector<Way> ways_of(const ep_primitive_desc& desc);
// True if the convolution has a bias or epilogues.
bool has_tail(const ep_primitive_desc& desc);

// Tensor ids in a graph. They start at 1, since 0 could mean none.
constexpr int64_t id_of(int32_t operand) { return operand + 1; }
constexpr int64_t zeros_id = EP_MAX_OPERANDS + 1;

class WayGraph {
 public:
  // `desc` must outlive the graph.
  WayGraph(Cudnn& library, const ep_primitive_desc& desc, const Way& way);

  CudnnGraph& graph() { return graph_; }
  // Operand numbers of the graph, and those among them whose order or type differs from the graph's.
  const std::vector<int32_t>& operands() const { return operands_; }
  const std::vector<int32_t>& staged() const { return staged_; }
  // The bytes of zeros that the graph reads instead of a bias; 0: none.
  uint64_t zeros() const { return zeros_; }
  // Operand `index` in the order and type of the graph.
  ep_operand_desc dense(int32_t index) const;

 private:
  size_t operand(int32_t index);
  size_t between();
  size_t bias();
  void add_tail(size_t value);

  const ep_primitive_desc& desc_;
  const CudnnProblem problem_;
  const Way way_;
  CudnnGraph graph_;
  std::vector<int32_t> staged_;
  std::vector<int32_t> operands_;
  uint64_t zeros_ = 0;
  int64_t virtual_ = 0;
};

}  // namespace tenon::provider::cuda
