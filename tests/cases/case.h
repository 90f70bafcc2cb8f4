// The shared list of cases. For each kind of primitive it has the dtypes, shapes, strides and attributes that are worth
// running, the values of the operands, and the tolerance of the result. The conformance kit, the tests of the reference
// and the benchmarks read it. To add a kind: a function in one of the files here, and a line in list.cpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ep_api/ep_api.h"
#include "primitives/accuracy/accuracy.h"
#include "primitives/dtype/dtype.h"
#include "primitives/shape/shape.h"

namespace tenon::cases {

// How to fill an operand before the run. No fill gives only zeros.
enum class Fill : uint8_t {
  RANDOM,     // uniform in [low, high] without 0; integers are the whole numbers in that range
  SPECIAL,    // every special value of the dtype (NaN, infinities, -0, denormals, extremes), then random ones
  SPECIAL_A,  // special values, then random ones; for a first operand
  SPECIAL_B,  // the same in another order, for a second operand: all pairs of special values occur
  FINITE,     // SPECIAL without NaN and infinities, and nothing above `high` in magnitude
  GRID,  // multiples of 1/8 in [low, high] without 0: differences and quotients are exact, or far from a rounding step
  DIVISOR,  // RANDOM without 0 and -1 for integers
  INDEX,    // whole numbers in [low, high], both ends included
  TIES,     // few distinct values, so that maxima repeat
  LAST,     // `low` everywhere except for the last element, which is `high`
  PEAKS,  // RANDOM in [low, -low], except for one element of each row of a matrix, which is `high`: the last one in row
          // 0, the one before it in row 1, and so on
  DIAGONAL,  // RANDOM in [low, -low], except for element i of the diagonal of each matrix, which is (i + 1) * `high`
};

struct Values {
  Fill fill = Fill::RANDOM;
  double low = -2;
  double high = 2;
};

// How far a result may be from the reference, rounded to the dtype: `ulps` steps of the dtype, `epsilons` times the
// machine epsilon of the compute type (f32 for narrower types), or `tiny` times its least normal number, whichever is
// greatest. Integers and bool are exact. NaN matches NaN; 0 matches -0.
struct Tolerance {
  double ulps = 0;
  double epsilons = 0;
  double tiny = 0;
};

// The bounds of a scalar function's results: no result is greater than `most` in magnitude, and for an argument of at
// least `from` in magnitude the result equals the reference exactly. So a sum of parts that cancels there is exact too.
// `most` 0: no bounds.
struct Saturation {
  double most = 0;
  double from = 0;
};

struct Case {
  std::string name;  // kind/op/dtype/layout
  ep_primitive_desc desc;
  std::vector<ep_scalar> scalars;
  std::vector<Values> values;  // one per operand; outputs ignore them
  Tolerance tolerance;         // on tier full
  int32_t fault = 0;           // EP_FAULT_* that every launch must report
  Saturation saturation = {};  // how unary saturates on tier full
  // Tolerances on the lower tiers. Scalar functions have none: the rows of accuracy.def bound each element (range.h).
  Tolerance portable = {};
  Tolerance relaxed = {};
};

// Sets the tolerance of each tier in `test`.
template <class OnTier>
void set_tolerances(Case* test, const OnTier& on_tier) {
  test->tolerance = on_tier(Tier::full);
  test->portable = on_tier(Tier::portable);
  test->relaxed = on_tier(Tier::relaxed);
}

// Turns `test`, a matmul or convolution on f32 with `terms` products per result, into a case whose products and sums
// are all denormal numbers.
void make_denormal(Case* test, double terms);

// Returns the error that `tier` allows the function `name` of accuracy.def for an argument of this magnitude, in
// addition to the error allowed on tier full. Operands and results are of `dtype`.
struct Bound {
  double ulps = 0;
  double epsilons = 0;
};
Bound beyond_full(std::string_view name, Tier tier, DType dtype, double magnitude = 0);

// All cases, in a fixed order. They are made at the first call and kept.
const std::vector<Case>& all_cases();

// --- building descriptors ---

ep_primitive_desc make_desc(int32_t kind);
// Appends an operand. Strides default to row-major. An operand of rank 0 is a scalar.
ep_operand_desc& add_operand(ep_primitive_desc& desc, int32_t role, DType dtype, const Dims& dims);
ep_operand_desc& add_operand(ep_primitive_desc& desc, int32_t role, DType dtype, const Dims& dims, const Dims& strides);
void add_scalar_operand(ep_primitive_desc& desc, int32_t role, DType dtype);

ep_scalar make_scalar(DType dtype, double value);

// The strides of a transposed layout of `dims`: row-major with order[0] as the outermost axis and order.back() as the
// innermost.
Dims permuted_strides(const Dims& dims, std::initializer_list<int32_t> order);
// Row-major strides with `gap` unused elements after each run of the last axis.
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
void add_gradient_cases(std::vector<Case>* cases);
void add_order_cases(std::vector<Case>* cases);
void add_scatter_cases(std::vector<Case>* cases);
void add_random_cases(std::vector<Case>* cases);
void add_attention_cases(std::vector<Case>* cases);
void add_resize_cases(std::vector<Case>* cases);
void add_recurrent_cases(std::vector<Case>* cases);
void add_fft_cases(std::vector<Case>* cases);
void add_linear_algebra_cases(std::vector<Case>* cases);
void add_quantisation_cases(std::vector<Case>* cases);
// Adds the cases that give one operand of an earlier case another layout.
void add_operand_layouts(std::vector<Case>* cases);

}  // namespace tenon::cases
