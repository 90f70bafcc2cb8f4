#include "core/ops/sizes.h"

#include "core/ops/size_list.h"
#include "core/symbolic/arena.h"
#include "core/tensor/recording.h"
#include "primitives/text/format.h"

namespace tenon {

SymDims sizes(const Tensor& tensor) {
  if (tensor.defined() && tensor.impl()->open) return recorded_value(*tensor.impl())->sizes(*tensor.impl());
  SymDims result;
  for (const int64_t dim : tensor.dims()) result.push_back(dim);
  return result;
}

SymDim size_at(const Tensor& tensor, int64_t axis) {
  return is_open(tensor) ? sizes(tensor)[axis] : SymDim(tensor.impl()->dims[axis]);
}

void note_layout(const Tensor& from, const Tensor& made) {
  if (!is_open(from)) return;
  recorded_value(*from.impl())->note_layout(*recorded_value(*made.impl()));
}

bool is_empty(const Tensor& tensor) {
  if (!is_open(tensor)) return tensor.elements() == 0;
  for (const SymDim dim : sizes(tensor)) {
    if (dim == 0) return true;
  }
  return false;
}

bool same_sizes(const SymDims& a, const SymDims& b) {
  if (a.rank() != b.rank()) return false;
  for (int32_t axis = 0; axis < a.rank(); ++axis) {
    if (!identical(a[axis], b[axis]) && !(a[axis] == b[axis])) return false;
  }
  return true;
}

int64_t hint_of(SymDim size) {
  if (size.is_number()) return size.number();
  symbolic::Arena& arena = symbolic::arena_of(size);
  const SymDim resolved = arena.resolve(size);
  if (const auto hint = arena.hint(resolved)) return *hint;
  throw symbolic::Undecided(fmt::format("The size {} is known only when the program runs.", arena.text(resolved)));
}

int64_t bound(SymDim size, std::string_view reader) {
  if (size.is_number()) return size.number();
  symbolic::Arena& arena = symbolic::arena_of(size);
  const SymDim resolved = arena.resolve(size);
  if (resolved.is_number()) return resolved.number();
  const int64_t hint = hint_of(resolved);
  arena.context(reader);
  arena.decide({Relation::eq, resolved, hint});
  return hint;
}

const std::vector<int64_t>& SizeList::numbers() const {
  numbers_.clear();
  for (const SymDim size : sizes_) numbers_.push_back(bound(size, "a list of sizes"));
  return numbers_;
}

const int64_t* IntList::numbers() const { return sizes_->numbers().data(); }
size_t IntList::count() const { return sizes_->sizes().size(); }

bool has_open(const SizeList& list) {
  for (const SymDim size : list.sizes()) {
    if (!size.is_number()) return true;
  }
  return false;
}

std::vector<SymDim> sizes_of(const IntList& list) {
  if (list.sizes() != nullptr) return list.sizes()->sizes();
  std::vector<SymDim> result;
  for (const int64_t number : list) result.push_back(SymDim::saturated(number));
  return result;
}

}  // namespace tenon
