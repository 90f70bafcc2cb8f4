// Cases of quantise, dequantise, and of matmul and convolution with quantised operands.
#include <string_view>

#include "primitives/text/format.h"
#include "tests/cases/case.h"

namespace tenon::cases {
namespace {

// How scale and zero point are spread over an operand, and their dims.
struct Layout {
  std::string_view name;
  ep_quantisation how;
  Dims dims;
};

// For an operand of shape [4, 6, 10].
const Dims kShape = {4, 6, 10};
const Layout layouts[] = {
    {"tensor", {0, 0, {0, 0}}, {1, 1, 1}},           {"axis", {0b010, 0, {0, 0}}, {1, 6, 1}},
    {"two_axes", {0b101, 0, {0, 0}}, {4, 1, 10}},    {"blocks", {0b111, 2, {4, 0}}, {4, 6, 3}},
    {"first_blocks", {0b001, 0, {3, 0}}, {2, 1, 1}}, {"tiles", {0b111, 1, {4, 5}}, {4, 2, 2}},
};

struct Type {
  DType dtype;
  double low, high;  // the range of zero points
};
const Type quantised_types[] = {
    {DType::i8, -20, 20},    {DType::u8, 100, 156},   {DType::i4, -2, 2},
    {DType::u4, 6, 10},      {DType::i16, -99, 99},   {DType::u16, 900, 1100},
    {DType::i32, -1e6, 1e6}, {DType::f8e4m3fn, 0, 0}, {DType::f8e5m2, 0, 0},
};

bool takes_zero_point(DType dtype) { return !is_floating(dtype); }

// Adds a scale, and a zero point unless `type` has none, in the order of their roles.
void add_parameters(Case* made, int32_t scale_role, DType scale, const Type& type, const Layout& layout,
                    Values scale_values, bool zero_point) {
  add_operand(made->desc, scale_role, scale, layout.dims);
  made->values.push_back(scale_values);
  if (!zero_point || !takes_zero_point(type.dtype)) return;
  add_operand(made->desc, scale_role + 1, type.dtype, layout.dims);
  made->values.push_back({Fill::RANDOM, type.low, type.high});
}

// A result is one quotient or product, exact on tier full. On the lower tiers a floating result may be off by one step.
void set_conversion_tolerance(Case* made, DType dst) {
  if (is_floating(dst)) made->portable = made->relaxed = {1, 0, 0};
}

Case quantise_case(const Type& type, const Layout& layout, DType src, Fill fill, bool transposed,
                   std::string_view suffix) {
  Case made = {fmt::format("quantise/{}_to_{}/{}{}", dtype_name(src), dtype_name(type.dtype), layout.name, suffix),
               make_desc(EP_PRIMITIVE_quantise),
               {},
               {},
               {},
               0};
  made.desc.attributes.quantise.dst = layout.how;
  set_conversion_tolerance(&made, type.dtype);
  add_operand(made.desc, EP_ROLE_DST, type.dtype, kShape);
  made.values.push_back({});
  add_operand(made.desc, EP_ROLE_SRC, src, kShape,
              transposed ? permuted_strides(kShape, {2, 0, 1}) : contiguous_strides(kShape));
  made.values.push_back({fill, -9, 9});
  add_parameters(&made, EP_ROLE_DST_SCALE, src, type, layout, {Fill::RANDOM, 0.05, 0.2}, suffix != "_no_zero_point");
  return made;
}

Case dequantise_case(const Type& type, const Layout& layout, DType dst, std::string_view suffix) {
  Case made = {fmt::format("dequantise/{}_to_{}/{}{}", dtype_name(type.dtype), dtype_name(dst), layout.name, suffix),
               make_desc(EP_PRIMITIVE_dequantise),
               {},
               {},
               {},
               0};
  made.desc.attributes.dequantise.src = layout.how;
  set_conversion_tolerance(&made, dst);
  add_operand(made.desc, EP_ROLE_DST, dst, kShape);
  made.values.push_back({});
  add_operand(made.desc, EP_ROLE_SRC, type.dtype, kShape);
  made.values.push_back({is_floating(type.dtype) ? Fill::SPECIAL : Fill::RANDOM, -2e9, 4e9});
  add_parameters(&made, EP_ROLE_SRC_SCALE, dst, type, layout, {Fill::RANDOM, 0.001, 0.02}, suffix != "_no_zero_point");
  return made;
}

void add_conversions(std::vector<Case>* cases) {
  for (const Type& type : quantised_types) {
    for (const Layout& layout : layouts) {
      if (dtype_info(type.dtype).bits == 4 && layout.name == "first_blocks") continue;
      cases->push_back(quantise_case(type, layout, DType::f32, Fill::RANDOM, false, ""));
      cases->push_back(dequantise_case(type, layout, DType::f32, ""));
    }
    cases->push_back(quantise_case(type, layouts[0], DType::f32, Fill::SPECIAL, false, "_special"));
    cases->push_back(quantise_case(type, layouts[1], DType::f32, Fill::RANDOM, true, "_src_transposed"));
    cases->push_back(quantise_case(type, layouts[1], DType::f32, Fill::RANDOM, false, "_no_zero_point"));
    cases->push_back(dequantise_case(type, layouts[3], DType::f32, "_no_zero_point"));
    for (DType real : {DType::f16, DType::bf16}) {
      cases->push_back(quantise_case(type, layouts[1], real, Fill::RANDOM, false, ""));
      cases->push_back(dequantise_case(type, layouts[1], real, ""));
    }
  }
}

// --- products ---

// How the numbers of one operand are drawn and scaled.
struct Numbers {
  Type type;
  Values values;
  Layout layout;
  Values scale;  // `low` 0: none
  bool zero_point;
};

constexpr Values kSmall = {Fill::RANDOM, 0.002, 0.009};
const Numbers kNone = {{DType::none, 0, 0}, {}, {}, {Fill::RANDOM, 0, 0}, false};

Numbers of_tensor(DType dtype, int32_t rank, Values scale, bool zero_point) {
  Layout layout = {"tensor", {}, {}};
  for (int32_t axis = 0; axis < rank; ++axis) layout.dims.push_back(1);
  const double middle = dtype_info(dtype).type_class == DTypeClass::UINT ? 10 : -3;
  return {{dtype, middle, middle + 4}, {Fill::RANDOM, -90, 90}, layout, scale, zero_point};
}

Numbers with_layout(Numbers numbers, ep_quantisation how, std::initializer_list<int64_t> dims) {
  numbers.layout.how = how;
  int32_t axis = 0;
  for (int64_t dim : dims) numbers.layout.dims[axis++] = dim;
  return numbers;
}

struct Product {
  std::string_view name;
  DType src, weight, dst;  // dtypes of operands that are not quantised
  Numbers src_numbers, weight_numbers, dst_numbers;
  bool bias;
  bool relu;
};

bool is_quantised(const Numbers& numbers) { return numbers.type.dtype != DType::none; }
DType dtype_of(const Numbers& numbers, DType otherwise) {
  return is_quantised(numbers) ? numbers.type.dtype : otherwise;
}
Values values_of(const Numbers& numbers) {
  return is_quantised(numbers) ? numbers.values : Values{Fill::RANDOM, -1, 1};
}

void add_numbers(Case* made, int32_t scale_role, const Numbers& numbers) {
  if (!is_quantised(numbers)) return;
  if (numbers.scale.low != 0) {
    return add_parameters(made, scale_role, DType::f32, numbers.type, numbers.layout, numbers.scale,
                          numbers.zero_point);
  }
  add_operand(made->desc, scale_role + 1, numbers.type.dtype, numbers.layout.dims);
  made->values.push_back({Fill::RANDOM, numbers.type.low, numbers.type.high});
}

// Adds the operands that follow DST, SRC and the weight. `bias` has the dims and strides of a bias.
void finish_product(Case* made, const Product& product, const Dims& bias, const Dims& bias_strides, double terms) {
  const bool to_numbers = is_quantised(product.dst_numbers);
  if (product.bias) {
    add_operand(made->desc, EP_ROLE_BIAS, to_numbers ? DType::f32 : product.dst, bias, bias_strides);
    made->values.push_back(to_numbers ? Values{Fill::GRID, -2, 2} : Values{Fill::RANDOM, -1, 1});
  }
  if (product.relu) {
    made->desc.epilogue_count = 1;
    made->desc.epilogues[0] = {1, EP_UNARY_relu, 0, 4};
  }
  add_numbers(made, EP_ROLE_SRC_SCALE, product.src_numbers);
  add_numbers(made, EP_ROLE_WEIGHT_SCALE, product.weight_numbers);
  add_numbers(made, EP_ROLE_DST_SCALE, product.dst_numbers);
  if (to_numbers || !is_floating(product.dst)) return;  // exact
  set_tolerances(made, [&](Tier tier) -> Tolerance {
    const double more = beyond_full("product", tier, product.dst).ulps;
    return {dtype_info(product.dst).bits < 32 ? 1.0 : 2.0, terms * (1 + more) + 2, 0};
  });
}

constexpr Values kHalf = {Fill::RANDOM, 0.5, 0.5};  // scales that keep sums exact
constexpr Values kFour = {Fill::RANDOM, 4, 4};

// matmul: src [9, 70] by src_b [70, 10].
std::vector<Product> matmuls() {
  const Numbers none = kNone;
  const Numbers columns = with_layout(of_tensor(DType::i8, 2, kSmall, false), {0b10, 0, {0, 0}}, {1, 10});
  const Numbers groups = with_layout(of_tensor(DType::u4, 2, kSmall, true), {0b11, 0, {32, 0}}, {3, 10});
  const Numbers tiles = with_layout(of_tensor(DType::f8e4m3fn, 2, kSmall, false), {0b11, 0, {32, 4}}, {3, 3});
  const Numbers rows = with_layout(of_tensor(DType::i8, 2, kSmall, true), {0b01, 0, {0, 0}}, {9, 1});
  const Numbers tokens = with_layout(of_tensor(DType::f8e4m3fn, 2, kSmall, false), {0b11, 1, {32, 0}}, {9, 3});
  const Values no_scale = {Fill::RANDOM, 0, 0};
  return {
      {"i8_columns", DType::f32, DType::none, DType::f32, none, columns, none, true, true},
      {"i8_columns_f16", DType::f16, DType::none, DType::f16, none, columns, none, false, false},
      {"u4_groups", DType::f32, DType::none, DType::f32, none, groups, none, false, false},
      {"f8_tiles", DType::bf16, DType::none, DType::bf16, none, tiles, none, true, false},
      {"f8_by_f8", DType::none, DType::none, DType::f32, tokens, tiles, none, false, false},
      {"i8_rows_by_i8_columns", DType::none, DType::none, DType::f32, rows, columns, none, true, true},
      {"u8_by_i8", DType::none, DType::none, DType::f16, of_tensor(DType::u8, 2, kSmall, true), columns, none, true,
       false},
      {"u8_by_i8_to_u8", DType::none, DType::none, DType::none, of_tensor(DType::u8, 2, kHalf, true),
       of_tensor(DType::i8, 2, kHalf, true), of_tensor(DType::u8, 2, {Fill::RANDOM, 512, 512}, true), true, false},
      {"f32_to_i8", DType::f32, DType::none, DType::none, none, of_tensor(DType::i8, 2, kHalf, false),
       of_tensor(DType::i8, 2, kFour, true), false, true},
      {"integers", DType::none, DType::none, DType::i32, of_tensor(DType::u8, 2, no_scale, true),
       of_tensor(DType::i8, 2, no_scale, true), none, false, false},
      {"integers_one_zero_point", DType::none, DType::i8, DType::i32, of_tensor(DType::u8, 2, no_scale, true), none,
       none, false, false},
  };
}

Values integers_or(DType dtype, Values values) {
  return is_floating(dtype) || dtype == DType::none ? values : Values{Fill::RANDOM, -90, 90};
}

Case matmul_case(const Product& product) {
  Case made = {fmt::format("matmul/quantised/{}", product.name), make_desc(EP_PRIMITIVE_matmul), {}, {}, {}, 0};
  ep_matmul_attributes& attributes = made.desc.attributes.matmul;
  attributes = {product.src_numbers.layout.how, product.weight_numbers.layout.how, product.dst_numbers.layout.how};
  add_operand(made.desc, EP_ROLE_DST, dtype_of(product.dst_numbers, product.dst), {9, 10});
  add_operand(made.desc, EP_ROLE_SRC, dtype_of(product.src_numbers, product.src), {9, 70});
  add_operand(made.desc, EP_ROLE_SRC_B, dtype_of(product.weight_numbers, product.weight), {70, 10});
  const Values exact = {Fill::GRID, -2, 2};
  made.values = {
      {},
      is_quantised(product.dst_numbers) && !is_quantised(product.src_numbers) ? exact : values_of(product.src_numbers),
      integers_or(product.weight, values_of(product.weight_numbers))};
  finish_product(&made, product, {9, 10}, {0, 1}, 70);
  return made;
}

// convolution: src [2, 4, 7, 6], weight [6, 4 / groups, 3, 3].
std::vector<Product> convolutions() {
  const Numbers none = kNone;
  const Values no_scale = {Fill::RANDOM, 0, 0};
  const Numbers filters = with_layout(of_tensor(DType::i8, 4, kSmall, false), {0b0001, 0, {0, 0}}, {6, 1, 1, 1});
  return {
      {"i8_filters", DType::f32, DType::none, DType::f32, none, filters, none, true, true},
      {"u8_by_i8", DType::none, DType::none, DType::f32, of_tensor(DType::u8, 4, kSmall, true), filters, none, true,
       false},
      {"u8_by_i8_to_u8", DType::none, DType::none, DType::none, of_tensor(DType::u8, 4, kHalf, true),
       of_tensor(DType::i8, 4, kHalf, true), of_tensor(DType::u8, 4, {Fill::RANDOM, 256, 256}, true), true, false},
      {"integers", DType::none, DType::none, DType::i32, of_tensor(DType::u8, 4, no_scale, true),
       of_tensor(DType::i8, 4, no_scale, true), none, false, false},
  };
}

Case convolution_case(const Product& product, int64_t groups) {
  Case made = {fmt::format("convolution/quantised/{}{}", product.name, groups > 1 ? "_groups" : ""),
               make_desc(EP_PRIMITIVE_convolution),
               {},
               {},
               {},
               0};
  ep_convolution_attributes& attributes = made.desc.attributes.convolution;
  attributes.spatial_rank = 2;
  attributes.groups = groups;
  for (int32_t i = 0; i < 2; ++i) {
    attributes.stride[i] = attributes.dilation[i] = 1;
    attributes.pad_low[i] = attributes.pad_high[i] = 1;
  }
  attributes.src = product.src_numbers.layout.how;
  attributes.weight = product.weight_numbers.layout.how;
  attributes.dst = product.dst_numbers.layout.how;
  add_operand(made.desc, EP_ROLE_DST, dtype_of(product.dst_numbers, product.dst), {2, 6, 7, 6});
  add_operand(made.desc, EP_ROLE_SRC, dtype_of(product.src_numbers, product.src), {2, 4, 7, 6});
  add_operand(made.desc, EP_ROLE_WEIGHT, dtype_of(product.weight_numbers, product.weight), {6, 4 / groups, 3, 3});
  made.values = {{}, values_of(product.src_numbers), values_of(product.weight_numbers)};
  finish_product(&made, product, {6}, {1}, 36);
  return made;
}

// --- larger products of bytes, whose scales keep sums exact: several panels of columns, and remainders of all kinds
// ---

struct Bytes {
  std::string_view name;
  DType src, weight, dst;
  bool by_column, constant;
};
const Bytes bytes_cases[] = {
    {"u8_by_i8_to_u8", DType::u8, DType::i8, DType::u8, true, true},
    {"i8_by_i8_to_i8", DType::i8, DType::i8, DType::i8, false, true},
    {"i8_by_u8_to_u8", DType::i8, DType::u8, DType::u8, true, false},
    {"u8_by_u8_to_i8", DType::u8, DType::u8, DType::i8, true, false},
};

// Scales and zero points of SRC, a weight with `columns` at axis `axis`, and DST, each of rank `rank`.
void add_byte_numbers(Case* made, const Bytes& bytes, int32_t rank, int32_t axis, int64_t columns) {
  const auto add = [&](int32_t scale_role, DType dtype, bool wide, Values scale) {
    Dims dims = Dims::filled(rank, 1);
    if (wide) dims[axis] = columns;
    const double middle = dtype == DType::u8 ? 126 : -3;
    add_parameters(made, scale_role, DType::f32, {dtype, middle, middle + 4}, {"", {}, dims}, scale, true);
  };
  add(EP_ROLE_SRC_SCALE, bytes.src, false, kHalf);
  add(EP_ROLE_WEIGHT_SCALE, bytes.weight, bytes.by_column, kHalf);
  add(EP_ROLE_DST_SCALE, bytes.dst, false, {Fill::RANDOM, 1024, 1024});
}

Values bytes_of(DType dtype) {
  return dtype == DType::u8 ? Values{Fill::RANDOM, 0, 255} : Values{Fill::RANDOM, -128, 127};
}

Case byte_matmul(const Bytes& bytes, bool batch) {
  const int32_t rank = batch ? 3 : 2;
  Case made = {fmt::format("matmul/bytes/{}{}", bytes.name, batch ? "_batch" : ""),
               make_desc(EP_PRIMITIVE_matmul),
               {},
               {},
               {},
               0};
  const auto shape = [&](int64_t rows, int64_t columns) {
    return batch ? Dims{3, rows, columns} : Dims{rows, columns};
  };
  if (bytes.by_column) made.desc.attributes.matmul.weight.axes = 1u << (rank - 1);
  add_operand(made.desc, EP_ROLE_DST, bytes.dst, shape(33, 70));
  add_operand(made.desc, EP_ROLE_SRC, bytes.src, shape(33, 45));
  add_operand(made.desc, EP_ROLE_SRC_B, bytes.weight, shape(45, 70));
  if (bytes.constant && !batch) made.desc.operands[2].flags = EP_OPERAND_FLAG_CONSTANT;
  made.values = {{}, bytes_of(bytes.src), bytes_of(bytes.weight)};
  add_operand(made.desc, EP_ROLE_BIAS, DType::f32, shape(33, 70), batch ? Dims{0, 0, 1} : Dims{0, 1});
  made.values.push_back({Fill::GRID, -2, 2});
  add_byte_numbers(&made, bytes, rank, rank - 1, 70);
  return made;
}

struct Windows {
  std::string_view name;
  int64_t channels, kernel, stride, dilation, pad;
  bool channels_last;
  int64_t groups = 1, results = 37;
};
const Windows windows[] = {
    {"3x3", 20, 3, 1, 1, 1, true},
    {"stem", 3, 5, 2, 1, 2, true},
    {"rest", 21, 3, 2, 2, 1, true},
    {"rows", 20, 3, 1, 1, 1, false},
    {"pointwise", 18, 1, 1, 1, 0, true},
    {"few_dilated", 3, 3, 1, 2, 2, false},
    {"groups", 60, 3, 1, 2, 2, true, 3, 111},
    {"groups_of_few", 12, 3, 2, 1, 1, false, 4, 8},
    {"depthwise", 77, 3, 1, 1, 1, true, 77, 77},
    {"depthwise_rest", 32, 5, 2, 1, 2, true, 32, 32},
    {"depthwise_dilated", 45, 3, 2, 2, 1, true, 45, 45},
    {"depthwise_rows", 19, 4, 1, 1, 1, false, 19, 19},
    {"depthwise_small", 19, 3, 2, 3, 0, true, 19, 19},
    {"depthwise_doubled", 5, 3, 1, 1, 1, true, 5, 10},
};

Case byte_convolution(const Bytes& bytes, const Windows& window) {
  Case made = {fmt::format("convolution/bytes/{}/{}", bytes.name, window.name),
               make_desc(EP_PRIMITIVE_convolution),
               {},
               {},
               {},
               0};
  ep_convolution_attributes& at = made.desc.attributes.convolution;
  at.spatial_rank = 2;
  at.groups = window.groups;
  for (int32_t i = 0; i < 2; ++i) {
    at.stride[i] = window.stride;
    at.dilation[i] = window.dilation;
    at.pad_low[i] = at.pad_high[i] = window.pad;
  }
  if (bytes.by_column) at.weight.axes = 1;
  const auto out = [&](int64_t size) {
    return (size + 2 * window.pad - window.dilation * (window.kernel - 1) - 1) / window.stride + 1;
  };
  const Dims src = {2, window.channels, 9, 7}, dst = {2, window.results, out(9), out(7)};
  const auto strides = [&](const Dims& dims) {
    return window.channels_last ? permuted_strides(dims, {0, 2, 3, 1}) : contiguous_strides(dims);
  };
  add_operand(made.desc, EP_ROLE_DST, bytes.dst, dst, strides(dst));
  add_operand(made.desc, EP_ROLE_SRC, bytes.src, src, strides(src));
  add_operand(made.desc, EP_ROLE_WEIGHT, bytes.weight,
              {window.results, window.channels / window.groups, window.kernel, window.kernel});
  if (bytes.constant) made.desc.operands[2].flags = EP_OPERAND_FLAG_CONSTANT;
  made.values = {{}, bytes_of(bytes.src), bytes_of(bytes.weight)};
  add_operand(made.desc, EP_ROLE_BIAS, DType::f32, {window.results});
  made.values.push_back({Fill::GRID, -2, 2});
  add_byte_numbers(&made, bytes, 4, 0, window.results);
  return made;
}

// --- f32 by constant matrices of 4 and 8 bits ---

Case weight_case(DType dtype, int64_t block, int64_t rows, bool zero_point, std::string_view kind = "",
                 const Values& x = {Fill::RANDOM, -1, 1}, int64_t columns = 45) {
  constexpr int64_t depth = 83;
  Case made = {
      fmt::format("matmul/weights/{}_{}_rows{}{}{}", dtype_name(dtype), rows,
                  block == 0 ? "" : fmt::format("_blocks_of_{}", block), zero_point ? "_zero_point" : "", kind),
      make_desc(EP_PRIMITIVE_matmul),
      {},
      {},
      {},
      0};
  const bool is_signed = dtype_info(dtype).type_class == DTypeClass::INT;
  const double most = dtype_info(dtype).bits == 4 ? is_signed ? 7 : 15 : is_signed ? 127 : 255;
  add_operand(made.desc, EP_ROLE_DST, DType::f32, {rows, columns});
  add_operand(made.desc, EP_ROLE_SRC, DType::f32, {rows, depth});
  add_operand(made.desc, EP_ROLE_SRC_B, dtype, {depth, columns}).flags = EP_OPERAND_FLAG_CONSTANT;
  add_operand(made.desc, EP_ROLE_BIAS, DType::f32, {rows, columns}, {0, 1});
  made.values = {{}, x, {Fill::RANDOM, is_signed ? -most - 1 : 0, most}, {Fill::RANDOM, -x.high, x.high}};
  ep_quantisation& how = made.desc.attributes.matmul.weight;
  how.axes = block == 0 ? 0b10 : 0b11;
  how.block[0] = static_cast<int32_t>(block);
  const Dims dims = {block == 0 ? 1 : (depth + block - 1) / block, columns};
  const double middle = is_signed ? -2 : most / 2;
  add_parameters(&made, EP_ROLE_WEIGHT_SCALE, DType::f32, {dtype, middle - 2, middle + 2}, {"", {}, dims}, kSmall,
                 zero_point);
  set_tolerances(&made, [&](Tier tier) -> Tolerance {
    return {2.0, x.high * (depth * (1 + beyond_full("product", tier, DType::f32).ulps) + 2), 0};
  });
  return made;
}

// --- sums and products element by element ---

Case binary_case(int32_t op, std::string_view name, DType dtype, bool repeated) {
  Case made = {fmt::format("binary/bytes/{}_{}{}", name, dtype_name(dtype), repeated ? "_repeated" : ""),
               make_desc(EP_PRIMITIVE_binary),
               {},
               {},
               {},
               0};
  made.desc.attributes.binary.op = op;
  const Dims dims = {5, 37};
  add_operand(made.desc, EP_ROLE_DST, dtype, dims);
  add_operand(made.desc, EP_ROLE_SRC, dtype, dims);
  add_operand(made.desc, EP_ROLE_SRC_B, dtype, dims, repeated ? Dims{1, 0} : contiguous_strides(dims));
  made.values = {{}, bytes_of(dtype), bytes_of(dtype)};
  const double middle = dtype == DType::u8 ? 126 : -3;
  for (int32_t role : {EP_ROLE_SRC_SCALE, EP_ROLE_WEIGHT_SCALE, EP_ROLE_DST_SCALE}) {
    const double scale = role == EP_ROLE_DST_SCALE ? op == EP_BINARY_add ? 1 : 32 : 0.5;
    add_parameters(&made, role, DType::f32, {dtype, middle, middle + 4}, {"", {}, {1, 1}}, {Fill::RANDOM, scale, scale},
                   true);
  }
  return made;
}

// The maximum of bytes, channels last.
Case byte_pooling(DType dtype) {
  Case made = {
      fmt::format("pooling/bytes/{}_channels_last", dtype_name(dtype)), make_desc(EP_PRIMITIVE_pooling), {}, {}, {}, 0};
  ep_pooling_attributes& at = made.desc.attributes.pooling;
  at.op = EP_POOLING_MAX;
  at.spatial_rank = 2;
  for (int32_t i = 0; i < 2; ++i) {
    at.kernel[i] = 3;
    at.stride[i] = 2;
    at.dilation[i] = at.pad_low[i] = at.pad_high[i] = 1;
  }
  const Dims dst = {2, 19, 5, 4}, src = {2, 19, 9, 7};
  add_operand(made.desc, EP_ROLE_DST, dtype, dst, permuted_strides(dst, {0, 2, 3, 1}));
  add_operand(made.desc, EP_ROLE_SRC, dtype, src, permuted_strides(src, {0, 2, 3, 1}));
  made.values = {{}, bytes_of(dtype)};
  return made;
}

}  // namespace

void add_quantisation_cases(std::vector<Case>* cases) {
  add_conversions(cases);
  for (const Bytes& bytes : bytes_cases) {
    cases->push_back(byte_matmul(bytes, false));
    cases->push_back(byte_matmul(bytes, true));
    for (const Windows& window : windows) cases->push_back(byte_convolution(bytes, window));
  }
  for (DType dtype : {DType::i4, DType::u4, DType::i8, DType::u8}) {
    for (int64_t rows : {1, 3, 17}) {
      cases->push_back(weight_case(dtype, 0, rows, false));
      cases->push_back(weight_case(dtype, 16, rows, true));
      cases->push_back(weight_case(dtype, 32, rows, true));
    }
    for (int64_t columns : {32, 96, 141}) {
      cases->push_back(
          weight_case(dtype, 32, 1, columns == 96, fmt::format("_columns{}", columns), {Fill::RANDOM, -1, 1}, columns));
    }
    cases->push_back(weight_case(dtype, 0, 2, false, "_special", {Fill::SPECIAL, -1, 1}));
    cases->push_back(weight_case(dtype, 0, 2, false, "_tiny", {Fill::RANDOM, 1e-37, 1e-35}));
    cases->push_back(weight_case(dtype, 32, 2, false, "_huge", {Fill::RANDOM, -1e30, 1e30}));
    cases->push_back(weight_case(dtype, 32, 2, true, "_peaks", {Fill::PEAKS, -1, 1e6}));
  }
  for (DType dtype : {DType::u8, DType::i8}) {
    cases->push_back(byte_pooling(dtype));
    for (bool repeated : {false, true}) {
      cases->push_back(binary_case(EP_BINARY_add, "add", dtype, repeated));
      cases->push_back(binary_case(EP_BINARY_mul, "mul", dtype, repeated));
    }
  }
  for (const Product& product : matmuls()) cases->push_back(matmul_case(product));
  for (const Product& product : convolutions()) {
    cases->push_back(convolution_case(product, 1));
    cases->push_back(convolution_case(product, 2));
  }
}

}  // namespace tenon::cases
