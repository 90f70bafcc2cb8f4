// GlobalValue: the state of a tensor whose elements are spread over ranks. Its handle is a Tensor without a storage;
// dtype and dims describe the whole tensor.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/global/layout.h"
#include "core/ops/op_call.h"
#include "core/symbolic/sym_dim.h"
#include "core/tensor/recording.h"
#include "core/tensor/tensor.h"

namespace tenon::global {

// A view whose elements had to move, so it is a copy. It behaves like a view: a write to it is passed on to `base`, and
// it is updated on its next use after a write to `base`.
struct CopiedView {
  Tensor base;
  const OpInfo* op = nullptr;
  std::vector<unsigned char> attributes;
  uint64_t seen = 0;  // the write count of `base` when the copy was made
  // The copy's metadata; views of it may share its elements.
  TensorMeta meta;
  Layout layout;
  Tensor local;
};

struct Ahead;  // for gradients (ahead.h)

// The sum of a partial tensor, in a layout in which it was needed. Valid as long as neither has been written since.
struct KnownSum {
  Layout layout;
  Tensor part;
  uint64_t writes = 0, version = 0;  // writes of the tensor, and the version of its part
  uint64_t own_version = 0;          // the version of `part`
  uint64_t program = 0;  // the program that `part` belongs to, as in GlobalValue; other programs cannot use the sum
};

// The number of writes to the elements, through the tensor or a view that shares them. While a program is recorded,
// also the time of the last write (GlobalProgram::time).
struct Written {
  uint64_t count = 0;
  uint64_t program = 0;  // the number of the program
  int64_t last = 0;

  void note();
};

class GlobalValue final : public SpreadValue {
 public:
  GlobalValue(Layout where, Tensor part);  // belongs to the program that the thread records, if there is one

  std::unique_ptr<StandIn> alias() const override;
  Interpreter& interpreter() const override;
  void compose(const OpCall& call) const override;
  Tensor gathered(const Tensor& tensor) const override;
  std::string origin() const override;
  uint64_t version() const override;
  std::string_view written_by() const override;
  void accumulated(const Tensor& gradient, std::shared_ptr<void>* of_leaf) override;
  int64_t ready_at(uint64_t of_program) const;  // the time of the last write

  const uint64_t program;  // the number of the program that `local` is a value of (global_program.h); 0: none
  // The time in that program (GlobalProgram::time) at which it was made, or at which the input was made that it follows
  // from by element-wise ops.
  int64_t ready;
  const Layout layout;
  const Tensor local;                  // the part of this rank; undefined outside the placement
  std::shared_ptr<CopiedView> copied;  // null: it has its own elements, or shares the base's elements
  std::shared_ptr<Written> writes;     // never null
  std::shared_ptr<Ahead> ahead;        // for the gradient of a leaf; else null
  std::shared_ptr<KnownSum> known;     // for a partial sum (ahead.h); null: it was not needed yet
};

// The value of a global tensor; null for others.
GlobalValue* value_of(const Tensor& tensor);

// A global tensor of `dims` whose part on this rank is `local`, which must fit.
Tensor make_global(DType dtype, const Dims& dims, const Layout& layout, Tensor local);

// The metadata of a global tensor.
struct Facts {
  DType dtype = DType::none;
  Dims dims = {}, strides = {};  // dims and strides of the whole tensor
  Layout layout;
};
std::optional<Facts> facts_of(const Tensor& tensor);  // nothing for a local tensor
Tensor make_global(const Facts& facts, Tensor local);

// The elements of `tensor` that this rank holds. For a global tensor, its part (undefined outside the placement); for a
// local tensor, the tensor itself.
const Tensor& held(const Tensor& tensor);

// The dims of this rank's part. Only inside the placement.
Dims local_dims(const Dims& dims, const Layout& layout);

}  // namespace tenon::global
