#include <string_view>

#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

enum class Bias : uint8_t { NONE, ROW, FULL };

struct Shape {
  std::string_view name;
  Dims batch_a;
  Dims batch_b;
  Dims batch;
  int64_t m, n, k;
  bool a_transposed, b_transposed;
  Bias bias;
};

const Shape shapes[] = {
    {"one", {}, {}, {}, 1, 1, 1, false, false, Bias::NONE},
    {"vector_matrix", {}, {}, {}, 1, 33, 65, false, false, Bias::NONE},
    {"matrix_vector", {}, {}, {}, 33, 1, 65, false, false, Bias::NONE},
    {"outer", {}, {}, {}, 17, 19, 1, false, false, Bias::NONE},
    {"odd", {}, {}, {}, 7, 5, 3, false, false, Bias::NONE},
    {"square", {}, {}, {}, 64, 64, 64, false, false, Bias::NONE},
    {"ragged", {}, {}, {}, 67, 45, 131, false, false, Bias::NONE},
    {"a_transposed", {}, {}, {}, 33, 17, 65, true, false, Bias::NONE},
    {"b_transposed", {}, {}, {}, 33, 17, 65, false, true, Bias::NONE},
    {"both_transposed", {}, {}, {}, 33, 17, 65, true, true, Bias::NONE},
    {"row_bias", {}, {}, {}, 33, 17, 65, false, true, Bias::ROW},
    {"full_bias", {}, {}, {}, 33, 17, 65, false, false, Bias::FULL},
    {"batch", {5}, {5}, {5}, 9, 17, 33, false, false, Bias::NONE},
    {"batch_b_shared", {5}, {1}, {5}, 9, 17, 33, false, true, Bias::ROW},
    {"batch_a_shared", {1}, {5}, {5}, 9, 17, 33, false, false, Bias::NONE},
    {"batch_crossed", {3, 1}, {1, 4}, {3, 4}, 5, 6, 7, true, false, Bias::NONE},
    {"attention_scores", {2, 4}, {2, 4}, {2, 4}, 16, 16, 32, false, true, Bias::NONE},
};

// Strides of a dense [batch..., rows, columns]. A batch axis of 1 gets stride 0 if `full` is longer there.
Dims strides_of(const Dims& batch, const Dims& full, int64_t rows, int64_t columns, bool transposed) {
  Dims dims = batch;
  dims.push_back(rows);
  dims.push_back(columns);
  Dims strides = contiguous_strides(dims);
  for (int32_t axis = 0; axis < batch.rank(); ++axis) {
    if (batch[axis] != full[axis]) strides[axis] = 0;
  }
  if (transposed) {
    strides[batch.rank()] = 1;
    strides[batch.rank() + 1] = rows;
  }
  return strides;
}

Dims with_matrix(Dims batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

Case matmul_case(const Shape& shape, DType in, DType out, std::string_view suffix) {
  std::string name = fmt::format("matmul/{}", dtype_name(in));
  if (in != out) name += fmt::format("_to_{}", dtype_name(out));
  name.append("/").append(shape.name).append(suffix);
  Case made = {name, make_desc(EP_PRIMITIVE_matmul), {}, {}, {}, 0};
  const Dims dst = with_matrix(shape.batch, shape.m, shape.n);
  add_operand(made.desc, EP_ROLE_DST, out, dst);
  add_operand(made.desc, EP_ROLE_SRC, in, with_matrix(shape.batch, shape.m, shape.k),
              strides_of(shape.batch_a, shape.batch, shape.m, shape.k, shape.a_transposed));
  add_operand(made.desc, EP_ROLE_SRC_B, in, with_matrix(shape.batch, shape.k, shape.n),
              strides_of(shape.batch_b, shape.batch, shape.k, shape.n, shape.b_transposed));
  if (shape.bias != Bias::NONE) {
    Dims strides = contiguous_strides(dst);
    for (int32_t axis = 0; shape.bias == Bias::ROW && axis < dst.rank() - 1; ++axis) strides[axis] = 0;
    add_operand(made.desc, EP_ROLE_BIAS, out, dst, strides);
  }
  const double reach = is_floating(in) ? 1 : 100;
  made.values.assign(made.desc.operand_count, {Fill::RANDOM, -reach, reach});
  // The sum of k products of numbers below 1, added in any order in the compute type.
  if (is_floating(out)) {
    set_tolerances(&made, [&](Tier tier) -> Tolerance {
      const double more = beyond_full("product", tier, out).ulps;
      return {dtype_info(out).bits < 32 ? 1.0 : 2.0, static_cast<double>(shape.k) * (1 + more) + 2, 0};
    });
  }
  return made;
}

// --- layouts: strides of operands that are views of a larger tensor ---

using Strides = std::vector<int64_t>;  // empty: row-major

struct Layout {
  std::string_view name;
  Dims batch;
  int64_t m, n, k;
  Strides dst, src, src_b, bias;
  bool has_bias;
};

// dst [33, 17], src [33, 65], src_b [65, 17], and the same with one row, one column or a batch.
const Layout layouts[] = {
    {"src_padded", {}, 33, 17, 65, {}, {70, 1}, {}, {}, false},
    {"src_b_padded", {}, 33, 17, 65, {}, {}, {24, 1}, {}, false},
    {"dst_padded", {}, 33, 17, 65, {20, 1}, {}, {}, {}, false},
    {"all_padded", {}, 33, 17, 65, {20, 1}, {70, 1}, {24, 1}, {22, 1}, true},
    {"src_transposed_padded", {}, 33, 17, 65, {}, {1, 40}, {}, {}, false},
    {"src_b_transposed_padded", {}, 33, 17, 65, {}, {}, {1, 70}, {}, false},
    {"dst_transposed", {}, 33, 17, 65, {1, 33}, {}, {}, {}, false},
    {"dst_transposed_padded", {}, 33, 17, 65, {1, 40}, {}, {}, {}, false},
    {"all_transposed_padded", {}, 33, 17, 65, {1, 40}, {1, 36}, {1, 68}, {1, 35}, true},
    {"src_spread", {}, 33, 17, 65, {}, {130, 2}, {}, {}, false},
    {"src_b_spread", {}, 33, 17, 65, {}, {}, {34, 2}, {}, false},
    {"dst_spread", {}, 33, 17, 65, {51, 3}, {}, {}, {}, false},
    {"src_transposed_spread", {}, 33, 17, 65, {}, {2, 70}, {}, {}, false},
    {"src_b_transposed_spread", {}, 33, 17, 65, {}, {}, {3, 200}, {}, false},
    {"src_row_repeated", {}, 33, 17, 65, {}, {0, 1}, {}, {}, false},
    {"src_column_repeated", {}, 33, 17, 65, {}, {1, 0}, {}, {}, false},
    {"src_one_value", {}, 33, 17, 65, {}, {0, 0}, {}, {}, false},
    {"src_b_row_repeated", {}, 33, 17, 65, {}, {}, {0, 1}, {}, false},
    {"src_b_column_repeated", {}, 33, 17, 65, {}, {}, {1, 0}, {}, false},
    {"src_b_one_value", {}, 33, 17, 65, {}, {}, {0, 0}, {}, false},
    {"bias_column", {}, 33, 17, 65, {}, {}, {}, {1, 0}, true},
    {"bias_one_value", {}, 33, 17, 65, {}, {}, {}, {0, 0}, true},
    {"bias_transposed", {}, 33, 17, 65, {}, {}, {}, {1, 33}, true},
    // An axis of one element may have any stride, 0 and 1 included, so its stride is not a leading dimension.
    {"row_stride_0", {}, 1, 33, 65, {33, 1}, {0, 1}, {33, 1}, {}, false},
    {"row_stride_1", {}, 1, 33, 65, {1, 1}, {1, 1}, {33, 1}, {}, false},
    {"row_of_a_transposed", {}, 1, 33, 65, {1, 7}, {1, 9}, {1, 70}, {}, false},
    {"column_stride_0", {}, 33, 1, 65, {1, 1}, {65, 1}, {1, 0}, {}, false},
    {"column_of_a_matrix", {}, 33, 1, 65, {4, 1}, {70, 1}, {5, 1}, {}, false},
    {"column_spread", {}, 33, 1, 65, {1, 40}, {1, 40}, {5, 80}, {}, false},
    {"outer_stride_0", {}, 17, 19, 1, {}, {1, 0}, {0, 1}, {}, false},
    {"outer_of_columns", {}, 17, 19, 1, {}, {9, 1}, {1, 7}, {}, false},
    {"batch_padded", {3}, 9, 17, 33, {300, 20, 1}, {400, 40, 1}, {700, 20, 1}, {}, false},
    {"batch_inside", {3}, 9, 17, 33, {17, 51, 1}, {33, 99, 1}, {17, 51, 1}, {}, false},
    {"batch_row_repeated", {3}, 9, 17, 33, {}, {33, 0, 1}, {17, 0, 1}, {}, false},
    {"batch_one_matrix", {3}, 9, 17, 33, {}, {0, 40, 1}, {0, 1, 40}, {}, false},
    // Attention heads inside a row: [b, s, h, d] seen as [b, h, s, d], and the keys also as [b, h, d, s].
    {"attention_heads", {2, 3}, 10, 11, 12, {}, {360, 12, 36, 1}, {396, 12, 1, 36}, {}, false},
    {"attention_context", {2, 3}, 10, 12, 11, {360, 12, 36, 1}, {}, {396, 12, 36, 1}, {}, false},
};

Case layout_case(const Layout& layout, DType in, DType out) {
  const Bias bias = layout.has_bias ? Bias::FULL : Bias::NONE;
  Case made = matmul_case(
      {layout.name, layout.batch, layout.batch, layout.batch, layout.m, layout.n, layout.k, false, false, bias}, in,
      out, "");
  const Strides* strides[] = {&layout.dst, &layout.src, &layout.src_b, &layout.bias};
  for (uint32_t i = 0; i < made.desc.operand_count; ++i) {
    std::copy(strides[i]->begin(), strides[i]->end(), made.desc.operands[i].strides);
  }
  return made;
}

void add_layout_cases(std::vector<Case>* cases) {
  for (const Layout& layout : layouts) {
    cases->push_back(layout_case(layout, DType::f32, DType::f32));
    const bool some = layout.name == "all_padded" || layout.name == "dst_transposed" || layout.name == "src_spread" ||
                      layout.name == "src_row_repeated" || layout.name == "attention_heads";
    if (!some) continue;
    for (DType dtype : {DType::f64, DType::f16, DType::bf16, DType::i32}) {
      cases->push_back(layout_case(layout, dtype, dtype));
    }
    cases->push_back(layout_case(layout, DType::bf16, DType::f32));
  }
}

void add_epilogue(Case* made, int32_t arity, int32_t op, int32_t role, int32_t scalar) {
  made->desc.epilogues[made->desc.epilogue_count++] = {arity, op, role, scalar};
}

void add_matmul_epilogues(std::vector<Case>* cases) {
  const Shape shape = {"epilogue", {}, {}, {}, 33, 17, 65, false, false, Bias::ROW};
  const Dims dst = {33, 17};
  Case relu = matmul_case(shape, DType::f32, DType::f32, "_relu");
  add_epilogue(&relu, 1, EP_UNARY_relu, 0, 0);
  cases->push_back(relu);

  Case gelu = matmul_case(shape, DType::f32, DType::f32, "_gelu");
  add_epilogue(&gelu, 1, EP_UNARY_gelu, 0, 0);
  // The results of the product have magnitudes up to 16.
  set_tolerances(&gelu, [product = gelu](Tier tier) {
    Tolerance tolerance = tier == Tier::full       ? product.tolerance
                          : tier == Tier::portable ? product.portable
                                                   : product.relaxed;
    tolerance.epsilons = 2 * tolerance.epsilons + 8 * beyond_full("erf", tier, DType::f32).ulps;
    return tolerance;
  });
  cases->push_back(gelu);

  Case leaky = matmul_case(shape, DType::f32, DType::f32, "_leaky_relu");
  add_epilogue(&leaky, 1, EP_UNARY_leaky_relu, 0, 4);
  leaky.scalars.assign(5, make_scalar(DType::f32, 0.25));
  cases->push_back(leaky);

  Case scaled = matmul_case(shape, DType::f32, DType::f32, "_scaled");
  add_epilogue(&scaled, 2, EP_BINARY_mul, 0, 5);
  scaled.scalars.assign(6, make_scalar(DType::f32, 0.125));
  cases->push_back(scaled);

  Case residual = matmul_case(shape, DType::f32, DType::f32, "_add_relu");
  add_epilogue(&residual, 2, EP_BINARY_add, EP_ROLE_EPILOGUE_0, 0);
  add_epilogue(&residual, 1, EP_UNARY_relu, 0, 0);
  add_operand(residual.desc, EP_ROLE_EPILOGUE_0, DType::f32, dst);
  residual.values.push_back({});
  cases->push_back(residual);

  Case padded = residual;
  padded.name = "matmul/f32/epilogue_add_relu_padded";
  padded.desc.operands[0].strides[0] = 20;
  padded.desc.operands[4].strides[0] = 23;
  cases->push_back(padded);

  Case across = residual;
  across.name = "matmul/f32/epilogue_add_relu_transposed";
  std::copy_n(Dims({1, 33}).begin(), 2, across.desc.operands[4].strides);
  cases->push_back(across);

  Case narrow = matmul_case(shape, DType::bf16, DType::bf16, "_add_scaled");
  add_epilogue(&narrow, 2, EP_BINARY_add, EP_ROLE_EPILOGUE_0, 0);
  add_epilogue(&narrow, 2, EP_BINARY_mul, 0, 5);
  add_operand(narrow.desc, EP_ROLE_EPILOGUE_0, DType::bf16, dst);
  narrow.values.push_back({});
  narrow.scalars.assign(6, make_scalar(DType::f32, 0.125));
  cases->push_back(narrow);

  Case constant = matmul_case(shape, DType::f32, DType::f32, "_constant_weight");
  constant.desc.operands[2].flags = EP_OPERAND_FLAG_CONSTANT;
  constant.desc.operands[3].flags = EP_OPERAND_FLAG_CONSTANT;
  cases->push_back(constant);

  Case constant_padded = constant;
  constant_padded.name += "_padded";
  constant_padded.desc.operands[2].strides[0] = 24;
  cases->push_back(constant_padded);

  // Large enough for a layout of the provider's own: long rows, and a transposed weight.
  for (const Shape& large : {Shape{"long_rows", {}, {}, {}, 37, 41, 3072, false, false, Bias::ROW},
                             Shape{"wide", {}, {}, {}, 150, 72, 100, false, true, Bias::ROW},
                             Shape{"one_row", {}, {}, {}, 1, 1000, 512, false, true, Bias::NONE}}) {
    Case packed = matmul_case(large, DType::f32, DType::f32, "_add_relu_constant_weight");
    packed.desc.operands[2].flags = EP_OPERAND_FLAG_CONSTANT;
    add_epilogue(&packed, 2, EP_BINARY_add, EP_ROLE_EPILOGUE_0, 0);
    add_epilogue(&packed, 1, EP_UNARY_relu, 0, 0);
    add_operand(packed.desc, EP_ROLE_EPILOGUE_0, DType::f32, {large.m, large.n});
    packed.values.push_back({});
    cases->push_back(packed);
  }
  for (bool transposed : {false, true}) {
    const Shape row = {transposed ? "row_transposed" : "row", {}, {}, {}, 1, 1100, 131, false, transposed, Bias::ROW};
    Case packed = matmul_case(row, DType::bf16, DType::bf16, "_constant_weight");
    packed.desc.operands[2].flags = EP_OPERAND_FLAG_CONSTANT;
    cases->push_back(packed);
    if (transposed) continue;
    packed.name += "_padded";
    packed.desc.operands[2].strides[0] = 1111;
    cases->push_back(packed);
  }
}

}  // namespace

void add_matmul_cases(std::vector<Case>* cases) {
  for (const Shape& shape : shapes) cases->push_back(matmul_case(shape, DType::f32, DType::f32, ""));
  for (const Shape& shape : shapes) {
    const bool some =
        shape.name == "odd" || shape.name == "ragged" || shape.name == "batch_b_shared" || shape.name == "b_transposed";
    if (!some) continue;
    for (DType dtype : {DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
      cases->push_back(matmul_case(shape, dtype, dtype, ""));
    }
    cases->push_back(matmul_case(shape, DType::bf16, DType::f32, ""));
    cases->push_back(matmul_case(shape, DType::f16, DType::f32, ""));
    cases->push_back(matmul_case(shape, DType::i8, DType::i32, ""));
  }
  // One case for kernels of small products, one for other kernels.
  for (const Shape& shape : {Shape{"odd", {}, {}, {}, 33, 17, 65, false, false, Bias::NONE},
                             Shape{"square", {}, {}, {}, 97, 83, 101, false, false, Bias::NONE}}) {
    Case denormal = matmul_case(shape, DType::f32, DType::f32, "");
    make_denormal(&denormal, static_cast<double>(shape.k));
    cases->push_back(denormal);
  }
  add_layout_cases(cases);
  add_matmul_epilogues(cases);
}

}  // namespace tenon::cases
