// GradientState: what a tensor stores for gradients. core/autograd defines its contents. Internal.
#pragma once

namespace tenon {

struct GradientState {
  virtual ~GradientState() = default;
};

}  // namespace tenon
