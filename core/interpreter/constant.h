// Constant: a tensor that never changes, such as a weight, and what the kernels of its device have packed of it.
// Internal.
//
// A kernel may want a constant in a layout of its own, which makes some products up to 1.7 times as fast. The packed
// bytes are made once per layout, and all kernels and programs that have the same Constant share them. They are memory
// of the device like any other (memory::Stats::packed says how much).
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
  // The Constant of `tensor`, which has data. Callers with the same elements of one storage, unchanged since, get the
  // same object as long as one of them keeps it.
  static std::shared_ptr<Constant> of(const Tensor& tensor);
  ~Constant();
  Constant(const Constant&) = delete;
  Constant& operator=(const Constant&) = delete;

  // The tensor that a run of `prepared` takes as input `index`, which is this constant: the original, or a stand-in for
  // the packed bytes, which only a run of a kernel with this layout can read. Packs if nobody has, and waits until it
  // is done. Throws: errors of the allocation and of packing, after which the next call tries again; invalid_argument
  // if the original is needed and was given back.
  Tensor input_of(const Prepared& prepared, size_t index);

  // Drops the original; who calls this knows that no kernel will need it. The packed bytes stay.
  void give_back();
  // Undefined once it was given back.
  Tensor original() const;
  // How many bytes are packed, in all layouts together.
  uint64_t packed_bytes() const;

 private:
  explicit Constant(const Tensor& tensor);

  // What one layout made of it. `kernel`, retained, only where the layout is shared with no other kernel.
  struct Packed {
    uint64_t layout = 0;
    Primitive* kernel = nullptr;
    Dims dims;  // of the operand
    Tensor bytes;
  };
  const Packed* find(const Primitive& kernel, const Dims& dims) const;
  void pack(const Prepared& prepared, const PreparedOperand& operand);

  DeviceState* const device_;
  const TensorMeta meta_;        // of the original
  const int64_t offset_;         // of the original
  const SharedStorage storage_;  // of the original, to know it by
  const uint64_t version_;       // of the storage then
  mutable std::mutex mutex_;
  Tensor original_;
  std::vector<Packed> packed_;
};

}  // namespace tenon
