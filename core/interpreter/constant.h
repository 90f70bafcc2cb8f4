// Constant: a tensor that never changes, such as a weight, with the packed forms that primitives of its device use.
// Internal.
//
// A primitive may want a constant in a layout of its own, which makes some products up to 1.7 times as fast. The packed
// bytes are made once per layout, and shared by all primitives and programs that have the same Constant. They are
// ordinary device memory (memory::Stats::packed counts them).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/interpreter/prepared.h"
#include "core/tensor/tensor.h"

namespace tenon {

// Threads: every function is thread-safe.
class Constant {
 public:
  // The Constant of `tensor`, which has data. Calls with the same unchanged elements of one storage return the same
  // object, as long as it is in use.
  static std::shared_ptr<Constant> of(const Tensor& tensor);
  ~Constant();
  Constant(const Constant&) = delete;
  Constant& operator=(const Constant&) = delete;

  // The tensor to pass to a run of `prepared` as input `index`, which is this constant: the original, or a stand-in for
  // the packed bytes, which only a primitive with this layout can read. Packs it on the first call, and waits until
  // packing is done. Throws: errors of the allocation and of packing, after which the next call tries again;
  // invalid_argument if the original is needed but was dropped.
  Tensor input_of(const Prepared& prepared, size_t index);

  // Drops the original; the caller must know that no primitive will need it. The packed bytes stay.
  void give_back();
  // The original; undefined after give_back.
  Tensor original() const;
  // The bytes of all packed layouts together.
  uint64_t packed_bytes() const;

 private:
  explicit Constant(const Tensor& tensor);

  // The constant packed in one layout. `primitive`, retained, only if no other primitive shares the layout.
  struct Packed {
    uint64_t layout = 0;
    Primitive* primitive = nullptr;
    Dims dims;  // the dims of the operand
    Tensor bytes;
  };
  const Packed* find(const Primitive& primitive, const Dims& dims) const;
  void pack(const Prepared& prepared, const PreparedOperand& operand);

  DeviceState* const device_;
  const TensorMeta meta_;        // the original's metadata
  const int64_t offset_;         // the original's offset
  const SharedStorage storage_;  // the original's storage, to identify it
  const uint64_t version_;       // the storage's version at that time
  mutable std::mutex mutex_;
  Tensor original_;
  std::vector<Packed> packed_;
};

}  // namespace tenon
