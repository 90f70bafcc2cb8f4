// The shared list of cases: for each kind of primitive the dtypes, shapes, strides and attributes worth running, with
// the values its operands hold and how close the answer must be. Read by the provider runner, by the references' own
// tests and by whoever measures. Adding a kind: a function in one of the files beside this one, and a line in list.cpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "ep_api/ep_api.h"
#include "primitives/dtype/dtype.h"
#include "primitives/shape/shape.h"

namespace tenon::cases {

// What an operand is filled with before the run; never only zeros.
enum class Fill : uint8_t {
  RANDOM,     // uniform in [low, high], 0 left out; integers are the whole numbers in there
  SPECIAL,    // every special value of the dtype (NaN, infinities, -0, denormals, extremes), then random ones
  SPECIAL_A,  // the special values in such an order that each
  SPECIAL_B,  // meets each of the other operand, then random ones
  FINITE,     // SPECIAL without NaN and infinities, and nothing above `high` in magnitude
  GRID,  // multiples of 1/8 in [low, high] other than 0: differences and quotients of them are exact or far from a step
  DIVISOR,  // RANDOM without 0 and -1 for integers
  INDEX,    // whole numbers in [low, high], low and high among them
  TIES,     // few distinct values, so that maxima repeat
  LAST,     // `low`, but the last element `high`
  PEAKS,    // RANDOM in [low, -low], but one element of each row of a matrix `high`: in row 0 the last, in row 1 the
            // one before it, and so on
};

struct Values {
  Fill fill = Fill::RANDOM;
  double low = -2;
  double high = 2;
};

// How far from the reference, rounded to the dtype, an answer may be: `ulps` steps of the dtype, or `epsilons` times
// the machine epsilon of the type computed in (f32 for narrower ones), or `tiny` times its least normal number,
// whichever is most. Integers and bool are always exact; NaN matches NaN; 0 matches -0.
struct Tolerance {
  double ulps = 0;
  double epsilons = 0;
  double tiny = 0;
};

struct Case {
  std::string name;  // kind/op/dtype/layout
  ep_primitive_desc desc;
  std::vector<ep_scalar> scalars;
  std::vector<Values> values;  // one per operand; outputs' are not looked at
  Tolerance tolerance;
  int32_t fault = 0;  // EP_FAULT_* that must be reported, once per launch at least
};

// All of them, in a fixed order.
std::vector<Case> all_cases();

// --- building descriptors ---

ep_primitive_desc make_desc(int32_t kind);
// Appends an operand; strides default to row-major. A rank-0 operand is scalar.
ep_operand_desc& add_operand(ep_primitive_desc& desc, int32_t role, DType dtype, const Dims& dims);
ep_operand_desc& add_operand(ep_primitive_desc& desc, int32_t role, DType dtype, const Dims& dims, const Dims& strides);
void add_scalar_operand(ep_primitive_desc& desc, int32_t role, DType dtype);

ep_scalar make_scalar(DType dtype, double value);

// Row-major strides in which axis `order[0]` is the outermost, order.back() the innermost: a transposed layout of
// `dims`.
Dims permuted_strides(const Dims& dims, std::initializer_list<int32_t> order);
// Row-major strides with `gap` elements left unused after each run of the last axis.
Dims gapped_strides(const Dims& dims, int64_t gap);

// --- the parts of the list ---

void add_elementwise_cases(std::vector<Case>* cases);
void add_copy_cases(std::vector<Case>* cases);
void add_reduce_cases(std::vector<Case>* cases);
void add_matmul_cases(std::vector<Case>* cases);
void add_convolution_cases(std::vector<Case>* cases);
void add_pooling_cases(std::vector<Case>* cases);
void add_norm_cases(std::vector<Case>* cases);
void add_move_cases(std::vector<Case>* cases);

}  // namespace tenon::cases
