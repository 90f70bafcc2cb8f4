// Cases of random. One seed and offset give the same bits everywhere, except for normal numbers on lower tiers.
#include <string_view>

#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

std::string_view name_of(int32_t distribution) {
  if (distribution == EP_RANDOM_BITS) return "bits";
  return distribution == EP_RANDOM_NORMAL ? "normal" : "uniform";
}

Case random_case(int32_t distribution, DType dtype, std::string_view layout, const Dims& dims, const Dims& strides) {
  const bool normal = distribution == EP_RANDOM_NORMAL;
  Case made = {fmt::format("random/{}/{}/{}", name_of(distribution), dtype_name(dtype), layout),
               make_desc(EP_PRIMITIVE_random),
               {},
               {},
               {},
               0};
  made.desc.attributes.random.distribution = distribution;
  add_operand(made.desc, EP_ROLE_DST, dtype, dims, strides);
  made.values.assign(1, {});
  // With this offset its lower half overflows.
  made.scalars = {make_scalar(DType::u64, 0x123456789ABCDp3), make_scalar(DType::u64, 0x3FFFFFFFFp0)};
  if (normal) {
    const double narrow = dtype_info(dtype).bits < 32 ? 1 : 0;
    made.portable = {narrow + 32, 512, 0};
    made.relaxed = {narrow + 32, 512 * 8192, 0};
  }
  return made;
}

}  // namespace

void add_random_cases(std::vector<Case>* cases) {
  for (int32_t distribution : {EP_RANDOM_UNIFORM, EP_RANDOM_NORMAL, EP_RANDOM_BITS}) {
    for (DType dtype :
         {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::u32, DType::i64, DType::u64}) {
      if (dtype == DType::f64 && distribution == EP_RANDOM_NORMAL) continue;
      if (is_integer(dtype) != (distribution == EP_RANDOM_BITS)) continue;
      const auto add = [&](std::string_view layout, const Dims& dims, const Dims& strides) {
        cases->push_back(random_case(distribution, dtype, layout, dims, strides));
      };
      add("vector", {4099}, {1});
      add("one", {1}, {1});
      add("gaps", {5, 7}, gapped_strides({5, 7}, 2));
      add("transposed", {5, 6, 7}, permuted_strides({5, 6, 7}, {2, 0, 1}));
      Case in_memory = random_case(distribution, dtype, "in_memory", {37}, {1});
      add_operand(in_memory.desc, EP_ROLE_SRC, DType::i64, {2});
      in_memory.values = {{}, {Fill::INDEX, -1e6, 1e6}};
      in_memory.scalars.clear();
      cases->push_back(in_memory);
    }
  }
}

}  // namespace tenon::cases
