// Cases of fft.
#include <string_view>

#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

Case fft_case(int32_t form, const Dims& real, int32_t axis, bool inverse, DType dtype, std::string_view suffix) {
  constexpr std::string_view forms[] = {"", "complex", "real_to_half", "half_to_real"};
  std::string dims;
  for (int64_t dim : real) dims += fmt::format("{}{}", dims.empty() ? "" : "x", dim);
  Case made = {fmt::format("fft/{}{}/{}/{}_axis_{}{}", forms[form], inverse ? "_inverse" : "", dtype_name(dtype), dims,
                           axis, suffix),
               make_desc(EP_PRIMITIVE_fft),
               {},
               {},
               {},
               0};
  made.desc.attributes.fft = {form, axis, inverse ? 1 : 0, 0};
  Dims pairs = real;
  if (form != EP_FFT_COMPLEX) pairs[axis] = pairs[axis] / 2 + 1;
  pairs.push_back(2);
  add_operand(made.desc, EP_ROLE_DST, dtype, form == EP_FFT_HALF_TO_REAL ? real : pairs);
  add_operand(made.desc, EP_ROLE_SRC, dtype, form == EP_FFT_REAL_TO_HALF ? real : pairs);
  made.values.assign(2, {Fill::RANDOM, -1, 1});
  const auto n = static_cast<double>(real[axis]);
  made.scalars = {make_scalar(dtype, inverse ? 1 / n : 1)};
  set_tolerances(&made, [&](Tier tier) -> Tolerance {
    return {2, 4 * (n + 8) * (1 + beyond_full("product", tier, dtype).ulps), 0};
  });
  return made;
}

}  // namespace

void add_fft_cases(std::vector<Case>* cases) {
  const struct {
    Dims dims;
    int32_t axis;
  } shapes[] = {{{1}, 0},        {{2}, 0},       {{7}, 0},      {{64}, 0},      {{3, 100}, 1},    {{31, 5}, 0},
                {{2, 12, 3}, 1}, {{2, 149}, 1},  {{70, 24}, 1}, {{19, 143}, 1}, {{2, 60, 21}, 1}, {{35, 9}, 1},
                {{12, 70}, 0},   {{35, 128}, 1}, {{5, 64}, 1},  {{48, 4}, 0}};
  for (const auto& [dims, axis] : shapes) {
    for (bool inverse : {false, true}) {
      for (int32_t form : {EP_FFT_COMPLEX, EP_FFT_REAL_TO_HALF, EP_FFT_HALF_TO_REAL}) {
        if (inverse && form == EP_FFT_REAL_TO_HALF) continue;
        cases->push_back(fft_case(form, dims, axis, inverse, DType::f32, ""));
        if (dims.rank() != 3) continue;
        for (DType dtype : {DType::f64, DType::f16, DType::bf16}) {
          cases->push_back(fft_case(form, dims, axis, inverse, dtype, ""));
        }
      }
    }
  }
  Case strided = fft_case(EP_FFT_COMPLEX, {3, 8}, 0, false, DType::f32, "_permuted");
  for (uint32_t i = 0; i < 2; ++i) {
    const Dims strides = permuted_strides({3, 8, 2}, {2, 1, 0});
    std::copy(strides.begin(), strides.end(), strided.desc.operands[i].strides);
  }
  cases->push_back(strided);
}

}  // namespace tenon::cases
