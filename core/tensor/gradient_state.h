// GradientState: what a tensor holds for gradients. core/autograd defines what is in it. Internal.
#pragma once

namespace tenon {

struct GradientState {
  virtual ~GradientState() = default;
};

}  // namespace tenon
