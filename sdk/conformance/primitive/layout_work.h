// LayoutWork: one launch whose operands lie in layouts of the device's own, from conversion to result.
#pragma once

#include <cstdint>
#include <vector>

#include "sdk/conformance/subject.h"
#include "tests/cases/case.h"
#include "tests/cases/image.h"

namespace tenon::conformance {

// `operand` in the layout `token`, and `operand`, opaque or not, with row-major strides.
ep_operand_desc in_layout(ep_operand_desc operand, int64_t token);
ep_operand_desc row_major(ep_operand_desc operand);

// What layout_info says of `operand`, which is opaque.
Result<ep_layout_info> ask_layout(Subject& subject, const ep_operand_desc& operand);
// Memory for one value that lies as `operand` says.
Result<Memory> make_value(Subject& subject, const ep_operand_desc& operand);

// The copy of `operand`, which is opaque, to (or from) row-major elements.
ep_primitive_desc conversion(const ep_operand_desc& operand, bool to_layout);

class LayoutWork {
 public:
  // `test` on the terms of the provider, `desc`, with its operands in the layouts that `tokens` says (0: as they are).
  LayoutWork(Subject& subject, const cases::Case& test, const ep_primitive_desc& desc, const int64_t* tokens);
  LayoutWork(const LayoutWork&) = delete;
  LayoutWork& operator=(const LayoutWork&) = delete;

  const ep_primitive_desc& desc() const { return desc_; }
  // Converts the inputs, launches, and converts the outputs. Code::unsupported: the provider refuses this mixture.
  Status run(const Stream& stream);
  // Compares every output with the reference, and everything else with what was there. The stream has finished.
  Status compare();

 private:
  struct Value {
    Memory memory, plain;
    std::vector<uint8_t> elements;  // row-major
  };

  Status put(const Stream& stream, uint32_t index);
  Status take(const Stream& stream, uint32_t index);
  Status launch(const Stream& stream);

  Subject& subject_;
  cases::Case test_;
  ep_primitive_desc plain_, desc_;
  cases::Image start_, want_, got_;
  std::vector<Value> values_;  // by operand
  Memory block_, workspace_, scratch_;
  std::vector<uint8_t> zeros_;
  std::vector<Primitive> primitives_;  // until the work is done
};

// Creates the primitive `desc` and launches it on `operands`, without scalars. `kept` gets what has to live until the
// work is done.
Status convert(Subject& subject, const Stream& stream, const ep_primitive_desc& desc, ep_memory* dst, ep_memory* src,
               std::vector<Primitive>* kept, std::vector<Memory>* rooms);

}  // namespace tenon::conformance
