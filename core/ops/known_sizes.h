// Tensors that hold sizes: small integer tensors on the host, made of the sizes of a program that is recorded. Their
// elements are hints; which expressions they are, the tensor knows. A recorder computes on the expressions what moves,
// adds or multiplies such elements; whoever else reads them binds the recording. Internal.
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
  std::unique_ptr<RecordedValue> alias() const override { return std::make_unique<KnownSizes>(*this); }

  std::vector<SymDim> elements;  // row-major
};

// What `tensor` knows of its elements; null: they are numbers.
inline const KnownSizes* known_sizes(const Tensor& tensor) {
  const TensorImpl* impl = tensor.impl();
  const bool known = impl != nullptr && impl->storage != nullptr && impl->recorded != nullptr;
  return known ? static_cast<const KnownSizes*>(impl->recorded) : nullptr;
}
// Says that the elements of `tensor`, which holds their hints, are `elements`.
void set_known_sizes(const Tensor& tensor, std::vector<SymDim> elements);

namespace sized {

// An i64 tensor of `dims` on the host with these elements.
Tensor ints(std::span<const SymDim> elements, const Dims& dims);
// The elements of an integer tensor whose elements are known, as expressions where they are.
std::vector<SymDim> elements(const Tensor& tensor);

}  // namespace sized
}  // namespace tenon
#pragma GCC visibility pop
