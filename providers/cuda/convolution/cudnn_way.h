// Way: how cuDNN may compute a problem, and WayGraph: the graph of one way.
#pragma once

#include <vector>

#include "providers/cuda/convolution/cudnn_problem.h"

namespace tenon::provider::cuda {

// cuDNN has all operands in one order of axes. `fused`: the tail is part of its graph. `widened`: the inputs become f32
// before it, and the tail follows. Products of f16 and bf16 are exact in TF32, so tensor cores that round f32 to it
// lose nothing of these.
struct Way {
  bool channels_last;
  bool fused;
  bool widened;
};

// The ways to try, the best first, each in the given order of axes and in the other one. Pure.
std::vector<Way> ways_of(const ep_primitive_desc& desc);
// True if the convolution has a bias or epilogues.
bool has_tail(const ep_primitive_desc& desc);

// Names of tensors in a graph; 0 could mean none.
constexpr int64_t id_of(int32_t operand) { return operand + 1; }
constexpr int64_t zeros_id = EP_MAX_OPERANDS + 1;

class WayGraph {
 public:
  // `desc` outlives the graph.
  WayGraph(Cudnn& library, const ep_primitive_desc& desc, const Way& way);

  CudnnGraph& graph() { return graph_; }
  // The operands of the graph, and those of them that lie in another order or type than the graph's.
  const std::vector<int32_t>& operands() const { return operands_; }
  const std::vector<int32_t>& staged() const { return staged_; }
  // The bytes of zeros that the graph reads in place of a bias; 0: none.
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
