// Signatures: how the tensors of a call may be spread along one axis of a grid, so that each rank computes its part of
// the results from its parts of the arguments. Defined by the column `sbp` of core/ops/ops.yaml. Internal.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/global/sbp.h"
#include "core/ops/op_call.h"

namespace tenon::global {

// A list that needs no heap memory for most calls.
template <class T, size_t kUsual>
using Few = boost::container::small_vector<T, kUsual>;

using SbpList = Few<Sbp, 8>;

struct Signature {
  SbpList inputs, outputs;  // one per tensor of the call; broadcast for an absent input
  friend bool operator==(const Signature&, const Signature&) = default;
};

// The facts of a call that a rule sees. Tensors are whole tensors, and results are given as metadata.
struct CallFacts {
  const OpCall& call;
  std::span<const TensorMeta> outputs;
  int64_t ranks;  // the ranks along the axis of the grid

  bool has(size_t input) const { return input < call.inputs.size() && call.inputs[input] != nullptr; }
  const Dims& dims(size_t input) const { return call.inputs[input]->dims(); }
  int32_t rank(size_t input) const { return dims(input).rank(); }
  template <class T>
  const T& attributes() const {
    return call.attributes_as<T>();
  }
};

// The signatures that a rule adds to. The first one always exists: each rank has all of every tensor.
class Signatures {
 public:
  explicit Signatures(const CallFacts& facts);

  // Adds a signature; tensors that are not given are broadcast.
  void add(std::initializer_list<Sbp> inputs, std::initializer_list<Sbp> outputs);
  void add(Signature signature) { all_.push_back(std::move(signature)); }
  // A signature to fill, all broadcast.
  Signature blank() const { return all_.front(); }
  std::span<const Signature> all() const { return {all_.data(), all_.size()}; }

 private:
  Few<Signature, 8> all_;
};

// The signatures of a call along the axes of a grid. If several axes of the grid choose the same signature, each
// divides the parts of the previous one. Together they act like one axis with all their ranks, and the signature must
// hold for that too.
class GridSignatures {
 public:
  GridSignatures(const OpCall& call, std::span<const TensorMeta> outputs, const Dims& grid);

  std::span<const Signature> along(int32_t axis) const { return at(grid_[axis]).all(); }
  // True if `axis` may take `signature` after the axes before it have taken `before`, one each.
  bool fits(const Signature& signature, int32_t axis, std::span<const Signature* const> taken) const;

 private:
  const Signatures& at(int64_t ranks) const;

  const OpCall& call_;
  std::span<const TensorMeta> outputs_;
  const Dims& grid_;
  mutable std::vector<std::pair<int64_t, std::unique_ptr<Signatures>>> made_;  // by number of ranks; few
};

constexpr uint16_t kNoDims = 0xffff;

// One row of the table that is generated from the column `sbp`.
struct SbpRow {
  // Null: the arguments must be whole (the op list says why), or the op is a composite of ops that have rules.
  void (*rule)(const CallFacts& facts, Signatures* signatures) = nullptr;
  // The offset of the results' dims in the attribute struct, where the dims of a part can be stored; kNoDims: it has
  // none.
  uint16_t dims_at = kNoDims;
};

const SbpRow& sbp_row(uint16_t op);

}  // namespace tenon::global
