// LayoutWork: one launch with opaque operands, from conversion to result.
#pragma once

#include <cstdint>
#include <vector>

#include "sdk/conformance/subject.h"
#include "tests/cases/case.h"
#include "tests/cases/image.h"

namespace tenon::conformance {

// in_layout returns `operand` with the layout `token`; the second function returns it with row-major strides.
ep_operand_desc in_layout(ep_operand_desc operand, int64_t token);
ep_operand_desc row_major(ep_operand_desc operand);

// Returns layout_info for the opaque `operand`.
Result<ep_layout_info> ask_layout(Subject& subject, const ep_operand_desc& operand);
// Allocates memory for one value with the layout of `operand`.
Result<Memory> make_value(Subject& subject, const ep_operand_desc& operand);

// Returns the copy that converts row-major elements to the layout of the opaque `operand`, or back.
ep_primitive_desc conversion(const ep_operand_desc& operand, bool to_layout);

class LayoutWork {
 public:
  // `desc` is the descriptor of `test`, changed as the provider requires. `tokens` has the layout of each operand (0:
  // unchanged).
  LayoutWork(Subject& subject, const cases::Case& test, const ep_primitive_desc& desc, const int64_t* tokens);
  LayoutWork(const LayoutWork&) = delete;
  LayoutWork& operator=(const LayoutWork&) = delete;

  const ep_primitive_desc& desc() const { return desc_; }
  // Converts the inputs, launches, and converts the outputs. Errors: Code::unsupported if the provider refuses this
  // combination.
  Status run(const Stream& stream);
  // Compares every output with the reference, and checks that no other byte changed. The stream has finished.
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
  std::vector<Value> values_;  // one per operand
  Memory block_, workspace_, scratch_;
  std::vector<uint8_t> zeros_;
  std::vector<Primitive> primitives_;  // kept until the work is done
};

// Creates the primitive `desc` and launches it on `operands`, without scalars. Adds the objects that must live until
// the work is done to `kept`.
Status convert(Subject& subject, const Stream& stream, const ep_primitive_desc& desc, ep_memory* dst, ep_memory* src,
               std::vector<Primitive>* kept, std::vector<Memory>* rooms);

}  // namespace tenon::conformance
