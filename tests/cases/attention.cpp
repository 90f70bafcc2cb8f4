// Cases of attention and rotary.
#include <string>
#include <string_view>

#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

struct Shape {
  std::string_view name;
  int64_t batch, heads, groups, queries, keys, width, values;
};

enum class Bias : uint8_t { NONE, FLOAT, BOOL };

// The properties of a case besides its shape.
struct How {
  std::string_view name;
  int64_t before = -1;
  int64_t after = -1;
  int32_t align = EP_ATTENTION_START;
  Bias bias = Bias::NONE;
  bool lengths = false;
  bool log_sum = false;
  double softcap = 0;
};

DType statistics_of(DType dtype) { return dtype == DType::f64 ? dtype : DType::f32; }

// Scores are at most 4 * width * scale + 2 in magnitude. Their error changes each weight by a factor of 1 + error, and
// a mean of values, each at most 2, by the same factor.
void set_attention_tolerance(Case* made, DType dtype, const Shape& shape, double scale) {
  set_tolerances(made, [&](Tier tier) -> Tolerance {
    const double product = beyond_full("product", tier, dtype).ulps;
    const double exponential = beyond_full("exp", tier, dtype).ulps;
    const double score = 4 * static_cast<double>(shape.width) * scale * (4 + product) + 8;
    const double mean = static_cast<double>(shape.keys) * (1 + product) + 8 + exponential;
    return {dtype_info(dtype).bits < 32 ? 2.0 : 16.0, 4 * (score + mean), 0};
  });
}

Case attention_case(const Shape& shape, DType dtype, const How& how) {
  Case made = {fmt::format("attention/{}/{}/{}", how.name, dtype_name(dtype), shape.name),
               make_desc(EP_PRIMITIVE_attention),
               {},
               {},
               {},
               0};
  made.desc.attributes.attention = {how.align, 0, how.before, how.after};
  const auto [name, b, h, g, q, k, w, v] = shape;
  add_operand(made.desc, EP_ROLE_DST, dtype, {b, h, q, v});
  if (how.log_sum) add_operand(made.desc, EP_ROLE_LOG_SUM, statistics_of(dtype), {b, h, q, 1});
  add_operand(made.desc, EP_ROLE_SRC, dtype, {b, h, q, w});
  add_operand(made.desc, EP_ROLE_SRC_B, dtype, {b, g, k, w});
  add_operand(made.desc, EP_ROLE_SRC_C, dtype, {b, g, k, v});
  made.values.assign(made.desc.operand_count, {Fill::RANDOM, -2, 2});
  if (how.bias != Bias::NONE) {
    add_operand(made.desc, EP_ROLE_BIAS, how.bias == Bias::BOOL ? DType::boolean : dtype, {b, h, q, k});
    made.values.push_back(how.bias == Bias::BOOL ? Values{Fill::INDEX, 0, 1} : Values{Fill::RANDOM, -2, 2});
  }
  if (how.lengths) {
    add_operand(made.desc, EP_ROLE_LENGTHS, DType::i32, {b});
    made.values.push_back({Fill::INDEX, -1, static_cast<double>(k + 1)});
  }
  const double scale = 0.125;
  made.scalars = {make_scalar(dtype, scale), make_scalar(dtype, how.softcap)};
  set_attention_tolerance(&made, dtype, shape, scale);
  return made;
}

// The heads lie between the rows, as in the result of a model's projections.
Case heads_inside(Case made) {
  made.name += "_heads_inside";
  for (uint32_t i = 0; i < made.desc.operand_count; ++i) {
    ep_operand_desc& operand = made.desc.operands[i];
    if (operand.role == EP_ROLE_BIAS || operand.rank != 4) continue;
    const Dims dims({operand.dims, 4});
    const Dims strides = permuted_strides(dims, {0, 2, 1, 3});
    std::copy(strides.begin(), strides.end(), operand.strides);
  }
  return made;
}

// BIAS of one row for all heads and queries.
Case broadcast_bias(Case made) {
  made.name += "_broadcast";
  for (ep_operand_desc& operand : made.desc.operands) {
    if (operand.role != EP_ROLE_BIAS) continue;
    operand.strides[0] = operand.dims[3];
    operand.strides[1] = operand.strides[2] = 0;
  }
  return made;
}

// Keys have stride 1 between rows, as in a transposed product.
Case keys_transposed(Case made) {
  made.name += "_keys_transposed";
  for (ep_operand_desc& operand : made.desc.operands) {
    if (operand.role != EP_ROLE_SRC_B) continue;
    operand.strides[2] = 1;
    operand.strides[3] = operand.dims[2];
  }
  return made;
}

void add_attention(std::vector<Case>* cases) {
  const Shape shapes[] = {
      {"one", 1, 1, 1, 1, 1, 1, 1},        {"small", 2, 3, 3, 5, 7, 9, 4},
      {"grouped", 2, 6, 2, 9, 17, 16, 16}, {"lanes", 1, 2, 1, 16, 32, 64, 64},
      {"above", 1, 2, 2, 33, 65, 65, 67},  {"decode", 2, 8, 2, 1, 131, 32, 32},
      {"long", 1, 2, 1, 70, 700, 24, 40},  {"many_queries", 1, 1, 1, 300, 45, 80, 16},
  };
  const How hows[] = {
      {"all"},
      {"all_log_sum", -1, -1, EP_ATTENTION_START, Bias::NONE, false, true},
      {"causal", -1, 0, EP_ATTENTION_START},
      {"causal_end", -1, 0, EP_ATTENTION_END, Bias::NONE, false, true},
      {"window", 4, 2, EP_ATTENTION_START, Bias::NONE, false, true},
      {"window_end", 20, 0, EP_ATTENTION_END},
      {"bias", -1, -1, EP_ATTENTION_START, Bias::FLOAT},
      {"bool", -1, -1, EP_ATTENTION_START, Bias::BOOL, false, true},
      {"lengths", -1, -1, EP_ATTENTION_START, Bias::NONE, true, true},
      {"lengths_causal_end", -1, 0, EP_ATTENTION_END, Bias::FLOAT, true},
      {"softcap", -1, -1, EP_ATTENTION_START, Bias::FLOAT, false, true, 3},
  };
  for (const How& how : hows) {
    for (const Shape& shape : shapes) {
      for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
        if (dtype == DType::f32 || shape.name == "grouped") cases->push_back(attention_case(shape, dtype, how));
      }
    }
    const Case grouped = attention_case(shapes[2], DType::f32, how);
    cases->push_back(heads_inside(grouped));
    cases->push_back(keys_transposed(grouped));
    if (how.bias != Bias::NONE) cases->push_back(broadcast_bias(grouped));
  }
}

// Sizes one off the tiles of kernels, rows of every length, and few queries with many keys.
void add_attention_of_tiles(std::vector<Case>* cases) {
  const Shape shapes[] = {
      {"tiles", 1, 2, 1, 129, 65, 16, 8},      {"rows", 1, 1, 1, 35, 129, 72, 65},
      {"long_rows", 1, 2, 2, 9, 33, 129, 136}, {"longer", 1, 2, 1, 3, 9, 260, 300},
      {"split_keys", 1, 4, 1, 3, 700, 8, 16},
  };
  const How hows[] = {
      {"all", -1, -1, EP_ATTENTION_START, Bias::NONE, false, true},
      {"causal", -1, 0, EP_ATTENTION_START},
      {"window_end", 70, 1, EP_ATTENTION_END, Bias::NONE, false, true},
      {"lengths_causal_end", -1, 0, EP_ATTENTION_END, Bias::FLOAT, true, true},
      {"softcap", -1, -1, EP_ATTENTION_START, Bias::BOOL, false, false, 3},
  };
  for (const Shape& shape : shapes) {
    for (const How& how : hows) {
      for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        if (dtype == DType::bf16 && how.name != "all") continue;
        cases->push_back(attention_case(shape, dtype, how));
      }
    }
  }
  cases->push_back(heads_inside(attention_case(shapes[0], DType::f16, hows[1])));
  cases->push_back(keys_transposed(attention_case(shapes[1], DType::bf16, hows[1])));
  cases->push_back(heads_inside(attention_case(shapes[4], DType::f16, hows[3])));
}

struct Rotary {
  std::string_view name;
  Dims dims;
  int64_t pairs;
};

Case rotary_case(const Rotary& shape, int32_t mode, DType dtype, DType angles, bool indexed,
                 std::string_view suffix = "") {
  Case made = {fmt::format("rotary/{}{}/{}/{}{}", mode == EP_ROTARY_HALVES ? "halves" : "interleaved",
                           indexed ? "_indices" : "", dtype_name(dtype), shape.name, suffix),
               make_desc(EP_PRIMITIVE_rotary),
               {},
               {},
               {},
               0};
  made.desc.attributes.rotary.mode = mode;
  constexpr int64_t rows = 13;
  const Dims table = indexed ? Dims{rows, shape.pairs} : Dims{shape.dims[0], shape.dims[1], shape.dims[2], shape.pairs};
  add_operand(made.desc, EP_ROLE_DST, dtype, shape.dims);
  add_operand(made.desc, EP_ROLE_SRC, dtype, shape.dims);
  for (int32_t role : {EP_ROLE_SRC_B, EP_ROLE_SRC_C}) {
    ep_operand_desc& operand = add_operand(made.desc, role, angles, table);
    if (indexed) continue;
    operand.strides[0] = operand.strides[1] = 0;
  }
  made.values = {{}, {Fill::RANDOM, -2, 2}, {Fill::RANDOM, -1, 1}, {Fill::RANDOM, -1, 1}};
  if (indexed) {
    add_operand(made.desc, EP_ROLE_INDICES, DType::i64, {shape.dims[0], shape.dims[2]});
    made.values.push_back({Fill::INDEX, -rows, rows - 1});
  }
  set_tolerances(&made, [&](Tier tier) -> Tolerance {
    const double more = beyond_full("product", tier, dtype).ulps;
    return {dtype_info(dtype).bits < 32 ? 1.0 : 2.0, 8 * (1 + more), 0};
  });
  return made;
}

void add_rotary(std::vector<Case>* cases) {
  const Rotary shapes[] = {
      {"one", {1, 1, 1, 2}, 1},   {"whole", {2, 3, 5, 64}, 32}, {"partial", {2, 3, 5, 24}, 5},
      {"odd", {1, 2, 7, 35}, 17}, {"decode", {3, 8, 1, 16}, 8}, {"wide", {1, 1, 3, 300}, 150},
  };
  for (int32_t mode : {EP_ROTARY_HALVES, EP_ROTARY_INTERLEAVED}) {
    for (bool indexed : {false, true}) {
      for (const Rotary& shape : shapes) {
        cases->push_back(rotary_case(shape, mode, DType::f32, DType::f32, indexed));
      }
      for (DType dtype : {DType::f64, DType::f16, DType::bf16}) {
        cases->push_back(rotary_case(shapes[1], mode, dtype, dtype, indexed));
        cases->push_back(rotary_case(shapes[2], mode, dtype, DType::f32, indexed, "_f32_angles"));
      }
      Case inside = rotary_case(shapes[2], mode, DType::f32, DType::f32, indexed, "_heads_inside");
      for (int32_t i : {0, 1}) {
        const Dims strides = permuted_strides(shapes[2].dims, {0, 2, 1, 3});
        std::copy(strides.begin(), strides.end(), inside.desc.operands[i].strides);
      }
      cases->push_back(inside);
    }
    for (double beyond : {13.0, -14.0}) {
      Case fault = rotary_case(shapes[1], mode, DType::f32, DType::f32, true, beyond > 0 ? "_above" : "_below");
      fault.values[4] = {Fill::INDEX, beyond > 0 ? 12.0 : beyond, beyond > 0 ? beyond : -13.0};
      fault.fault = EP_FAULT_INDEX_OUT_OF_RANGE;
      cases->push_back(fault);
    }
  }
}

}  // namespace

void add_attention_cases(std::vector<Case>* cases) {
  add_attention(cases);
  add_attention_of_tiles(cases);
  add_rotary(cases);
}

}  // namespace tenon::cases
