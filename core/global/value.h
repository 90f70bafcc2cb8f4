// What a tensor whose elements are spread over ranks is made of. Its handle is a Tensor without a storage: dtype and
// dims are those of the whole.
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

// A view whose elements had to move, so that they are a copy. It is kept to be one: a write to it goes on to `base`,
// and one to `base` is fetched when the view is used next.
struct CopiedView {
  Tensor base;
  const OpInfo* op = nullptr;
  std::vector<unsigned char> attributes;
  uint64_t seen = 0;  // how often `base` was written when the copy was made
  // The copy: views of it may share its elements.
  TensorMeta meta;
  Layout layout;
  Tensor local;
};

struct Ahead;  // of a gradient (ahead.h)

// The sum that a tensor is, in a layout that somebody needed. As long as neither was written since.
struct KnownSum {
  Layout layout;
  Tensor part;
  uint64_t writes = 0, version = 0;  // of the tensor, and of its part
  uint64_t own_version = 0;          // of `part`
  uint64_t program = 0;              // of which `part` is a value, as GlobalValue has it; no other one knows the sum
};

// How often elements were written, through their tensor or a view that shares them; while a program is recorded, at
// which time of it (Recorded::time) for the last time.
struct Written {
  uint64_t count = 0;
  uint64_t program = 0;  // the number of the program
  int64_t last = 0;

  void note();
};

class GlobalValue final : public RecordedValue {
 public:
  GlobalValue(Layout where, Tensor part);  // of the program that the thread records, if it records one

  std::unique_ptr<RecordedValue> alias() const override;
  Interpreter* interpreter() const override;
  void compose(const OpCall& call) const override;
  Tensor gathered(const Tensor& tensor) const override;
  std::string origin() const override;
  void read_sizes(TensorImpl&, SizeRead, int64_t) override {}
  void note_layout(RecordedValue&) override {}
  BasicDims<SymDim> sizes(const TensorImpl& tensor) const override;
  uint64_t version() const override;
  std::string_view written_by() const override;
  void accumulated(const Tensor& gradient, std::shared_ptr<void>* of_leaf) override;
  int64_t ready_at(uint64_t of_program) const;  // since the last write

  const uint64_t program;  // the number of the program of which `local` is a value (recorded.h); 0: of none
  // At which time of that program (Recorded::time) it was made, or what it follows from by element-wise ops alone.
  int64_t ready;
  const Layout layout;
  const Tensor local;                  // the part of this rank; undefined outside of the placement
  std::shared_ptr<CopiedView> copied;  // null: the elements are its own, or lie in those of what it is a view of
  std::shared_ptr<Written> writes;     // never null
  std::shared_ptr<Ahead> ahead;        // of the gradient of a leaf; null: of others
  std::shared_ptr<KnownSum> known;     // of a partial sum (ahead.h); null: nobody has needed it
};

// That of a global tensor; null of others.
GlobalValue* value_of(const Tensor& tensor);

// A global tensor of `dims` whose part on this rank is `local`, which fits.
Tensor make_global(DType dtype, const Dims& dims, const Layout& layout, Tensor local);

// What a global tensor is but for its elements.
struct Facts {
  DType dtype = DType::none;
  Dims dims = {}, strides = {};  // of the whole
  Layout layout;
};
std::optional<Facts> facts_of(const Tensor& tensor);  // of a local tensor none
Tensor make_global(const Facts& facts, Tensor local);

// The elements of `tensor` that this rank holds: its part of a global tensor, undefined outside of the placement; of a
// local tensor the tensor itself.
const Tensor& held(const Tensor& tensor);

// The dims of the part of this rank. Only in the placement.
Dims local_dims(const Dims& dims, const Layout& layout);

}  // namespace tenon::global
