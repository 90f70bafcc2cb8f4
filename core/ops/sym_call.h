// SymCall: a record on values whose sizes are expressions (core/symbolic), in the form that rules take. A rule is a
// template over OpCall and SymCall. Internal.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/ops/dims_attribute.h"
#include "core/ops/op_call.h"
#include "core/symbolic/sym_dim.h"

namespace tenon {

// The metadata of an output, written by a rule.
struct SymMeta {
  DType dtype = DType::none;
  SymDims dims;
};

// An input.
class SymValue {
 public:
  SymValue(DType dtype, const SymDims& dims) : dtype_(dtype), dims_(dims) {}
  explicit SymValue(const SymMeta& meta) : SymValue(meta.dtype, meta.dims) {}

  DType dtype() const { return dtype_; }
  const SymDims& dims() const { return dims_; }
  int32_t rank() const { return dims_.rank(); }

 private:
  DType dtype_;
  SymDims dims_;
};

// A number of the attribute struct that is an expression, and the word of its i64.
struct Patch {
  uint32_t word = 0;
  SymDim size = 0;
};

// The numbers of a record's attributes that are expressions.
struct Patches {
  std::vector<Patch> list;
};

struct SymCall {
  using Size = SymDim;
  using Meta = SymMeta;

  const OpInfo* op = nullptr;
  std::span<const SymValue* const> inputs;  // one per tensor parameter; null where absent or a scalar
  const void* attributes = nullptr;         // with hints where patched
  std::span<const Patch> patches;
  size_t output_count = 1;

  template <class T>
  const T& attributes_as() const {
    return *static_cast<const T*>(attributes);
  }
};

// A size from the attributes of `call`. `field` is an i64 of its attribute struct.
inline int64_t size_of(const OpCall&, const int64_t& field) { return field; }
inline SymDim size_of(const SymCall& call, const int64_t& field) {
  const auto word = static_cast<uint32_t>(&field - static_cast<const int64_t*>(call.attributes));
  for (const Patch& patch : call.patches) {
    if (patch.word == word) return patch.size;
  }
  return SymDim::saturated(field);
}

// `count` sizes from the attributes, starting at `first`.
inline std::span<const int64_t> sizes_of(const OpCall&, const int64_t* first, size_t count) { return {first, count}; }
inline std::vector<SymDim> sizes_of(const SymCall& call, const int64_t* first, size_t count) {
  std::vector<SymDim> sizes;
  for (size_t i = 0; i < count; ++i) sizes.push_back(size_of(call, first[i]));
  return sizes;
}
template <class Call>
auto sizes_of(const Call& call, const DimsAttribute& list) {
  return sizes_of(call, list.values, static_cast<size_t>(list.rank));
}

// The shapes of all inputs of `call`. Every input must be present.
template <class Call>
std::vector<BasicDims<typename Call::Size>> shapes_of(const Call& call) {
  std::vector<BasicDims<typename Call::Size>> shapes;
  for (const auto* input : call.inputs) shapes.push_back(input->dims());
  return shapes;
}

}  // namespace tenon
