// Tensors that hold sizes: small integer tensors on the host, made from the sizes of a program that is being recorded.
// Their elements are hints, and the tensor also knows the expressions. A recorder computes ops that move, add or
// multiply such elements on the expressions. Any other read binds the recording. Internal.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/symbolic/sym_dim.h"
#include "core/tensor/recording.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

struct KnownSizes final : RecordedValue {
  explicit KnownSizes(std::vector<SymDim> of) : RecordedValue(nullptr), elements(std::move(of)) {}

  void read_sizes(TensorImpl&, SizeRead, int64_t) override {}
  void read_elements(TensorImpl&) override;
  void note_layout(RecordedValue&) override {}
  SymDims sizes(const TensorImpl& tensor) const override;
  std::unique_ptr<StandIn> alias() const override { return std::make_unique<KnownSizes>(*this); }

  std::vector<SymDim> elements;  // row-major
};

// The known elements of `tensor`; null: they are numbers.
inline const KnownSizes* known_sizes(const Tensor& tensor) {
  const TensorImpl* impl = tensor.impl();
  const bool known = impl != nullptr && impl->storage != nullptr && impl->stand_in != nullptr;
  return known ? static_cast<const KnownSizes*>(impl->stand_in) : nullptr;
}
// Stores `elements` as the expressions of `tensor`, which holds their hints.
void set_known_sizes(const Tensor& tensor, std::vector<SymDim> elements);

namespace sized {

// An i64 tensor of `dims` on the host with these elements.
Tensor ints(std::span<const SymDim> elements, const Dims& dims);
// The elements of an integer tensor with known elements; expressions where there are any.
std::vector<SymDim> elements(const Tensor& tensor);

}  // namespace sized
}  // namespace tenon
#pragma GCC visibility pop
