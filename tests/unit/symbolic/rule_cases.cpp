#include "rule_cases.h"

#include <cstring>

#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/elementwise.h"

namespace tenon::symbolic {
namespace {

template <class T>
std::vector<uint64_t> words(const T& attributes) {
  std::vector<uint64_t> result(sizeof(T) / 8);
  std::memcpy(result.data(), &attributes, sizeof(T));
  return result;
}

template <class T, class Field>
uint32_t word_of(const T& attributes, const Field& field) {
  const auto bytes = reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(&attributes);
  return static_cast<uint32_t>(bytes / 8);
}

// A case whose attributes are a list of sizes, such as the target of a reshape.
template <class T>
RuleCase listed(std::string name, std::vector<std::string> inputs, const std::vector<std::string>& sizes,
                DimsAttribute T::*list, T attributes = {}) {
  (attributes.*list).rank = static_cast<int64_t>(sizes.size());
  RuleCase result{std::move(name), std::move(inputs)};
  for (size_t i = 0; i < sizes.size(); ++i) {
    result.patches.emplace_back(word_of(attributes, (attributes.*list).values[i]), sizes[i]);
  }
  result.attributes = words(attributes);
  return result;
}

std::vector<RuleCase> elementwise(const OpInfo& op) {
  if (op.kind == EP_PRIMITIVE_unary) return {{"alone", {"S0, S1, 4"}}};
  if (op.kind == EP_PRIMITIVE_ternary) return {{"three", {"S0, 1", "S1", "S0, S1"}}};
  return {{"equal", {"S0, S1", "S2, S1"}},      {"bias", {"S0, S1, S2", "S2"}}, {"repeated", {"S0, 1, S2", "S1, 1"}},
          {"halves", {"S0 // 2, S1", "S3, 1"}}, {"scalar", {"S0", "-"}},        {"unequal", {"S0", "S0 + 1"}}};
}

std::vector<RuleCase> reductions() {
  ReduceAttributes some{.axes = 0b101, .keep_dims = 0}, kept{.axes = 0b010, .keep_dims = 1};
  return {{"outer", {"S0, S1, S2"}, words(some)}, {"kept", {"S0, S1, S2"}, words(kept)}};
}

std::vector<RuleCase> positions() {
  return {{"last", {"S0, S1"}, words(ArgReduceAttributes{.axis = 1, .keep_dims = 0, .last = 0, .reserved = 0})}};
}

std::vector<RuleCase> products() {
  return {{"matrices", {"S0, S1", "S1, S2"}, {}},
          {"inner", {"S0, S1", "S2, 5"}, {}},
          {"batches", {"S0, 1, S1, 8", "S2, 8, 3"}, {}},
          {"row", {"S0", "S0, S1"}, {}},
          {"column", {"S2, S0, S1", "S1"}, {}},
          {"dot", {"S0", "S1"}, {}},
          {"heads", {"S0, 4, S1, 16", "S0, 4, 16, S1"}, {}}};
}

std::vector<RuleCase> convolutions() {
  ConvolutionAttributes plain{};
  plain.window.spatial_rank = 2;
  plain.window.groups = 1;
  for (int i = 0; i < 3; ++i) plain.window.stride[i] = plain.window.dilation[i] = 1;
  ConvolutionAttributes strided = plain, grouped = plain, up = plain;
  for (int i = 0; i < 2; ++i) {
    strided.window.stride[i] = 2;
    strided.window.pad_low[i] = strided.window.pad_high[i] = 1;
    up.window.stride[i] = 2;
  }
  grouped.window.groups = 4;
  up.window.transposed = 1;
  RuleCase same{"same", {"S0, 8, S1, S2", "6, 8, 3, 3", "6"}, words(strided)};
  same.patches = {{word_of(strided, strided.window.pad_low[0]), "S1 % 2"},
                  {word_of(strided, strided.window.pad_high[1]), "S2 % 2"}};
  return {{"plain", {"S0, 8, S1, S2", "6, 8, 3, 3", "-"}, words(plain)},
          {"strided", {"S0, 8, S1, S2", "6, 8, 3, 3", "6"}, words(strided)},
          {"grouped", {"S0, S1, S2, 9", "S1, S1 // 4, 3, 3", "S1"}, words(grouped)},
          {"kernel", {"S0, 8, S1, S2", "6, 8, S3, 1"}, words(plain)},
          {"transposed", {"S0, 8, S1, S2", "8, 6, 2, 2"}, words(up)},
          same};
}

std::vector<RuleCase> quantised(const OpInfo& op) {
  const std::string one = "";  // the shape of one number
  if (op.infer_sizes == ops::infer_quantisation<SymCall>) {
    const bool to_numbers = op.kind == EP_PRIMITIVE_quantise;
    const QuantisationAttributes at{to_numbers ? DType::u8 : DType::f32, 1, 0};
    RuleCase all{"one", {"S0, S1", one, "-"}, words(at)}, axis{"axis", {"S0, S1", "S1", "-"}, words(at)};
    for (RuleCase* each : {&all, &axis}) each->dtypes = {to_numbers ? DType::f32 : DType::u8, DType::f32};
    return {all, axis};
  }
  const std::vector<DType> dtypes{DType::u8, DType::f32, DType::u8, DType::i8, DType::f32, DType::i8};
  if (op.infer_sizes == ops::infer_quantized_binary<SymCall>) {
    const QuantizedBinaryAttributes at{DType::u8, EP_BINARY_add};
    return {{"sum",
             {"S0, S1", one, "-", "S1", one, "-", one, "-"},
             words(at),
             {},
             1,
             {DType::u8, DType::f32, DType::none, DType::u8, DType::f32, DType::none, DType::f32, DType::none}}};
  }
  if (op.infer_sizes == ops::infer_quantized_matmul<SymCall>) {
    const QuantizedProductAttributes at{DType::f32, 0};
    return {{"columns", {"S0, S1", one, "-", "S1, S2", "S2", "-", "-", "-", "-"}, words(at), {}, 1, dtypes}};
  }
  QuantizedConvolutionAttributes at{};
  at.window.spatial_rank = 2;
  at.window.groups = 1;
  at.dtype = DType::f32;
  for (int i = 0; i < 3; ++i) at.window.stride[i] = at.window.dilation[i] = 1;
  return {{"filters", {"S0, 8, S1, S2", one, "-", "6, 8, 3, 3", "6", "-", "-", "-", "-"}, words(at), {}, 1, dtypes}};
}

std::vector<RuleCase> poolings(size_t outputs) {
  PoolingAttributes floor{}, ceil{};
  floor.window.op = EP_POOLING_MAX;
  floor.window.spatial_rank = 2;
  for (int i = 0; i < 3; ++i) {
    floor.window.kernel[i] = 3;
    floor.window.stride[i] = 2;
    floor.window.dilation[i] = 1;
    floor.window.pad_low[i] = floor.window.pad_high[i] = 1;
  }
  ceil = floor;
  ceil.ceil_mode = 1;
  return {{"floor", {"S0, 3, S1, S2"}, words(floor), {}, outputs},
          {"ceil", {"S0, 3, S1, S2"}, words(ceil), {}, outputs}};
}

std::vector<RuleCase> transforms() {
  FourierAttributes pairs{}, half{}, real{};
  pairs.transform.form = EP_FFT_COMPLEX;
  half.transform.form = EP_FFT_REAL_TO_HALF;
  half.length = 5;
  real.transform.form = EP_FFT_HALF_TO_REAL;
  real.length = 8;
  return {
      {"pairs", {"S0, S1, 2"}, words(pairs)}, {"half", {"8, S1"}, words(half)}, {"real", {"5, S1, 2"}, words(real)}};
}

std::vector<RuleCase> matrices(const OpInfo& op) {
  LinearAlgebraAttributes attributes{};
  attributes.k = 4;
  const auto of = [&](std::string name, int32_t kind, std::vector<std::string> inputs) {
    attributes.how.op = kind;
    return std::vector<RuleCase>{{std::move(name), std::move(inputs), words(attributes), {}, op.output_count}};
  };
  if (op.output_count == 3) return of("values", EP_LINEAR_SVD, {"S0, 6, 4"});
  if (op.output_count == 2) return of("factors", EP_LINEAR_QR, {"S0, 6, 4"});
  return of("solved", EP_LINEAR_SOLVE, {"S0, 4, 4", "S0, 4, S1"});
}

std::vector<RuleCase> assemblies(const OpInfo& op) {
  const auto first = words(AxisAttributes{.axis = 0, .reserved = 0}),
             second = words(AxisAttributes{.axis = 1, .reserved = 0});
  if (op.infer_sizes == ops::infer_gather_slices<SymCall>) return {{"rows", {"S0, S1", "S2, S3"}, first}};
  if (op.infer_sizes == ops::infer_gather_elements<SymCall>)
    return {{"rows", {"S0, S1", "S2, S1"}, first}, {"fewer", {"S0, S1", "S2, S3"}, second}};
  return {{"rows", {"S0, S1", "S2, S1"}, first},
          {"columns", {"S0, S1", "S2, S3", "S0, 5"}, second},
          {"empty", {"0", "S0, S1", "S0, S2"}, second}};
}

std::vector<RuleCase> splits() {
  SplitSizesAttributes two{};
  two.axis = 1;
  two.count = 2;
  RuleCase halves{"halves", {"S0, S1"}, words(two), {}, 2}, rest = halves;
  halves.patches = {{word_of(two, two.sizes[0]), "S2"}, {word_of(two, two.sizes[1]), "S3"}};
  rest.name = "rest";
  rest.patches = {{word_of(two, two.sizes[0]), "3"}, {word_of(two, two.sizes[1]), "S1 - 3"}};
  return {halves, rest};
}

std::vector<RuleCase> pads() {
  PadAttributes constant{}, reflect{};
  constant.window.mode = EP_PAD_CONSTANT;
  constant.window.low[1] = 2;
  reflect.window.mode = EP_PAD_REFLECT;
  reflect.window.low[1] = 2;
  RuleCase up{"multiple", {"S0, S1"}, words(constant)}, crop = up;
  up.patches = {{word_of(constant, constant.window.high[1]), "(0 - S1) % 8"}};
  crop.name = "cropped";
  crop.patches = {{word_of(constant, constant.window.low[0]), "0 - S2"}};
  RuleCase edge{"edge", {"S0, S1"}, words([] {
                  PadAttributes edges{};
                  edges.window.mode = EP_PAD_EDGE;
                  edges.window.high[0] = 1;
                  return edges;
                }())};
  return {up, crop, {"reflect", {"S0, S1"}, words(reflect)}, edge};
}

std::vector<RuleCase> slices() {
  const auto one = [](std::string name, std::string start, std::string end, int64_t step) {
    SliceAttributes attributes{};
    attributes.axis = 1;
    attributes.step = step;
    RuleCase result{std::move(name), {"S0, S1"}, words(attributes)};
    result.patches = {{word_of(attributes, attributes.start), std::move(start)},
                      {word_of(attributes, attributes.end), std::move(end)}};
    return result;
  };
  SliceAttributes extremes{};
  extremes.axis = 1;
  extremes.start = INT64_MIN;
  extremes.end = INT64_MAX;
  extremes.step = 1;
  return {RuleCase{"extremes", {"S0, S1"}, words(extremes)},
          one("tail", "1", "4611686018427387903", 1),
          one("head", "0", "-1", 1),
          one("first", "0", "5", 1),
          one("every", "1", "S1", 3),
          one("given", "S2", "S3", 1)};
}

// The cases of a view, for the op that writes through it: their input and a part of it.
std::vector<RuleCase> written(std::vector<RuleCase> cases, std::initializer_list<const char*> parts) {
  auto part = parts.begin();
  for (RuleCase& one : cases) one.inputs.emplace_back(*part++);
  return cases;
}

std::vector<RuleCase> selections() {
  SelectAttributes last{.axis = -1, .index = -1};
  RuleCase given{"given", {"S0, S1"}, words(SelectAttributes{.axis = 0, .index = 0})};
  given.patches = {{1, "S2"}};
  return {{"last", {"S0, S1"}, words(last)}, given};
}

std::vector<RuleCase> views(const OpInfo& op) {
  if (op.infer_sizes == ops::dims_reshape) {
    const auto to = [](const char* name, const char* input, std::vector<std::string> target) {
      return listed(name, {input}, target, &ShapeAttributes::dims);
    };
    return {to("merged", "S0, S1, 12", {"S0*S1", "12"}), to("cut", "S0, S1, 12", {"S0", "S1", "3", "4"}),
            to("product", "S0, S1, 12", {"S2", "12"}), to("halved", "S0, S1", {"S0", "S1 // 2", "2"})};
  }
  if (op.infer_sizes == ops::dims_permute) {
    PermuteAttributes swapped{DimsAttribute::of(std::vector<int64_t>{2, 0, -2})};
    return {{"turned", {"S0, S1, 4"}, words(swapped)}};
  }
  if (op.infer_sizes == ops::dims_expand) {
    return {listed("repeated", {"1, S1"}, {"S0", "-1"}, &ShapeAttributes::dims),
            listed("kept", {"S0, 1"}, {"3", "S2", "S1"}, &ShapeAttributes::dims)};
  }
  if (op.infer_sizes == ops::dims_slice) return slices();
  if (op.infer_sizes == ops::dims_select) return selections();
  if (op.infer_sizes == ops::dims_squeeze) {
    return {{"all", {"S0, 1, S1 // 2"}, words(AxesAttributes{})},
            {"named", {"S0, 1, S1"}, words(AxesAttributes{DimsAttribute::of(std::vector<int64_t>{1})})}};
  }
  return {{"around", {"S0, S1"}, words(AxesAttributes{DimsAttribute::of(std::vector<int64_t>{0, -1})})}};
}

// A case for a struct that lists the dims of its result in `dims`.
template <class T>
RuleCase sized(std::string name, std::vector<std::string> inputs, const std::vector<std::string>& sizes,
               const T& given) {
  return listed(std::move(name), std::move(inputs), sizes, &T::dims, given);
}

std::vector<RuleCase> weight_gradients() {
  ConvolutionWeightAttributes plain{}, strided{}, grouped{};
  for (ConvolutionWeightAttributes* one : {&plain, &strided, &grouped}) {
    one->window.spatial_rank = 2;
    one->window.groups = 1;
    for (int i = 0; i < 2; ++i) one->window.stride[i] = one->window.dilation[i] = 1;
  }
  for (int i = 0; i < 2; ++i) {
    strided.window.stride[i] = 2;
    strided.window.pad_low[i] = strided.window.pad_high[i] = 1;
  }
  grouped.window.groups = 4;
  return {sized("plain", {"S0, 8, S1, S2", "S0, 6, S1 - 2, S2 - 2"}, {"6", "8", "3", "3"}, plain),
          sized("strided", {"S0, 8, S1, S3", "S0, 6, (S1 + 1) // 2, (S3 + 1) // 2"}, {"6", "8", "3", "3"}, strided),
          sized("grouped", {"S0, S1, 9, 9", "S0, S1, 7, 7"}, {"S1", "S1 // 4", "3", "3"}, grouped)};
}

std::vector<RuleCase> pooling_gradients() {
  PoolingBackwardAttributes halves{};
  halves.window.op = EP_POOLING_AVERAGE;
  halves.window.spatial_rank = 2;
  for (int i = 0; i < 2; ++i) {
    halves.window.kernel[i] = halves.window.stride[i] = 2;
    halves.window.dilation[i] = 1;
  }
  PoolingBackwardAttributes up = halves;
  up.ceil_mode = 1;
  return {sized("floor", {"S0, 3, S1 // 2, S3 // 2"}, {"S0", "3", "S1", "S3"}, halves),
          sized("ceil", {"S0, 3, (S1 + 1) // 2, 5"}, {"S0", "3", "S1", "S3"}, up)};
}

std::vector<RuleCase> scatters() {
  ScatterAttributes elements{}, slices{};
  elements.scatter = {1, EP_GATHER_ELEMENTS, EP_SCATTER_ADD, 0};
  slices.scatter = {1, EP_GATHER_SLICES, EP_SCATTER_ASSIGN, 0};
  return {{"elements", {"S0, S1", "S2, S3", "S2, S3"}, words(elements)},
          {"slices", {"S0, S1, 4", "S3", "S0, S3, 4"}, words(slices)},
          {"other", {"S0, S1, 4", "S3", "S0, S2, 4"}, words(slices)}};
}

std::vector<RuleCase> coordinates() {
  CoordinatesAttributes rows{}, batches{};
  rows.count = 1;
  batches.batch = batches.count = 1;
  return {{"rows", {"S0, S1", "S2, 1"}, words(rows)}, {"batches", {"S0, S1, 4", "S0, S2, 1"}, words(batches)}};
}

std::vector<RuleCase> firsts() {
  TopKAttributes some{};
  some.top_k = {1, 1};
  some.k = 3;
  RuleCase given{"number", {"S0, S1"}, words(some), {}, 2}, open = given;
  open.name = "open";
  open.patches = {{word_of(some, some.k), "S2"}};
  return {given, open};
}

std::vector<RuleCase> different() {
  UniqueListsAttributes elements{}, slices{};
  elements.unique = {-1, EP_UNIQUE_SORTED};
  slices.unique = {1, EP_UNIQUE_FIRST};
  slices.index = slices.inverse = slices.counts = 1;
  return {{"elements", {"S0, S1"}, words(elements), {}, 2}, {"slices", {"S0, S1"}, words(slices), {}, 5}};
}

std::vector<RuleCase> found() {
  RowCountAttributes rows{};
  rows.size = 3;
  RuleCase given{"number", {"S0, S1"}, words(rows), {}, 2}, open = given;
  open.name = "open";
  open.patches = {{word_of(rows, rows.size), "S0*S1"}};
  return {given, open};
}

std::vector<RuleCase> hot() {
  DepthAttributes depth{};
  depth.axis = 1;
  depth.dtype = DType::f32;
  depth.depth = 5;
  return {{"alone", {"S0, S1"}, words(depth)}};
}

// The ops that norms need for training, by the number of their inputs.
std::vector<RuleCase> norms(const OpInfo& op) {
  const auto second = words(AxisAttributes{.axis = 1, .reserved = 0});
  const auto rule = op.infer_sizes;
  if (rule == ops::infer_layer_norm_with_statistics<SymCall>) {
    return {{"alone", {"S0, S1, 8", "S1, 8", "-"}, second, {}, 3}};
  }
  if (rule == ops::infer_layer_norm_backward<SymCall>) {
    return {{"alone", {"S0, S1, 8", "S2, S1, 8", "S0, 1, 1", "S2, 1, 1", "-"}, second, {}, 3}};
  }
  if (rule == ops::infer_batch_norm_training<SymCall>) return {{"alone", {"S0, S1, 8", "S1", "S1"}, second, {}, 3}};
  return {{"alone", {"S0, S1, 8", "S2, S1, 8", "-", "S1", "S1"}, second, {}, 3}};
}

}  // namespace

std::vector<RuleCase> rule_cases(const OpInfo& op) {
  if (op.form == OpForm::composite) return {};
  if (op.form == OpForm::elementwise) return elementwise(op);
  if (op.form == OpForm::view) return views(op);
  const auto rule = op.infer_sizes;
  if (rule == ops::infer_cast<SymCall>) {
    return {{"alone",
             {"S0, S1"},
             words(CastAttributes{.dtype = DType::i32, .row_major = 0, .channels_last = 0, .reserved = 0})}};
  }
  if (rule == ops::infer_to<SymCall>) return {{"alone", {"S0, S1"}}};
  if (rule == ops::infer_copy_from<SymCall>) return {{"alone", {"S0, S1", "S0, S1"}}};
  if (rule == ops::infer_fill<SymCall>) {
    FullAttributes fill{};
    fill.dtype = DType::f32;
    return {listed("given", {}, {"S0", "3", "S0*S1"}, &FullAttributes::dims, fill)};
  }
  if (rule == ops::infer_reduce<SymCall>) return reductions();
  if (rule == ops::infer_arg_reduce<SymCall>) return positions();
  if (rule == ops::infer_softmax<SymCall>) return {{"alone", {"S0, S1"}, words(SoftmaxAttributes{})}};
  if (rule == ops::infer_layer_norm<SymCall>)
    return {{"alone", {"S0, 8", "8", "8"}, words(AxisAttributes{.axis = 1, .reserved = 0})}};
  if (rule == ops::infer_rms_norm<SymCall>)
    return {{"alone", {"S0, 8", "8"}, words(AxisAttributes{.axis = 1, .reserved = 0})}};
  if (rule == ops::infer_group_norm<SymCall>)
    return {{"alone", {"S0, 8, S1", "8", "-"}, words(GroupNormAttributes{.groups = 4})}};
  if (rule == ops::infer_attention<SymCall> || rule == ops::infer_attention_with_log_sum<SymCall>) {
    AttentionAttributes attributes{};
    attributes.attention.align = EP_ATTENTION_START;
    const size_t results = rule == ops::infer_attention<SymCall> ? 1 : 2;
    return {
        {"groups", {"S0, 8, S1, 16", "S0, 2, S2, 16", "S0, 2, S2, 4", "S1, S2", "S0"}, words(attributes), {}, results},
        {"other batches",
         {"S0, 8, S1, 16", "S3, 8, S2, 16", "S3, 8, S2, 4", "-", "-"},
         words(attributes),
         {},
         results}};
  }
  if (rule == ops::infer_rotary<SymCall>) {
    RotaryAttributes attributes{};
    attributes.rotary.mode = EP_ROTARY_HALVES;
    return {{"rows", {"S0, 4, S1, 16", "S1, 8", "S1, 8", "-"}, words(attributes)},
            {"table", {"S0, 4, S1, 16", "S2, 6", "S2, 6", "S0, S1"}, words(attributes)}};
  }
  if (rule == ops::infer_batch_norm<SymCall>)
    return {{"alone", {"S0, 8, S1", "8", "8", "8", "8"}, words(AxisAttributes{.axis = 1, .reserved = 0})}};
  if (rule == ops::infer_matmul<SymCall>) return products();
  if (rule == ops::infer_convolution<SymCall>) return convolutions();
  for (const auto quantising : {ops::infer_quantisation<SymCall>, ops::infer_quantized_matmul<SymCall>,
                                ops::infer_quantized_convolution<SymCall>, ops::infer_quantized_binary<SymCall>}) {
    if (rule == quantising) return quantised(op);
  }
  if (rule == ops::infer_pooling<SymCall>) return poolings(1);
  if (rule == ops::infer_pooling_with_indices<SymCall>) return poolings(2);
  if (rule == ops::infer_split<SymCall>) return splits();
  if (rule == ops::infer_convolution_weight<SymCall>) return weight_gradients();
  if (rule == ops::infer_pooling_backward<SymCall>) return pooling_gradients();
  if (rule == ops::infer_scatter<SymCall>) return scatters();
  if (rule == ops::infer_gather_nd<SymCall>) return coordinates();
  if (rule == ops::infer_scan<SymCall> || rule == ops::infer_scan_with_positions<SymCall>) {
    ScanAttributes scan{};
    scan.scan.op = op.output_count == 2 ? EP_SCAN_MAX : EP_SCAN_SUM;
    return {{"alone", {"S0, S1"}, words(scan), {}, op.output_count}};
  }
  if (rule == ops::infer_sort<SymCall>) return {{"alone", {"S0, S1"}, words(SortAttributes{}), {}, 2}};
  if (rule == ops::infer_argsort<SymCall>) return {{"alone", {"S0, S1"}, words(SortAttributes{})}};
  if (rule == ops::infer_top_k<SymCall>) return firsts();
  if (rule == ops::infer_unique<SymCall>) return different();
  if (rule == ops::infer_nonzero<SymCall>) return found();
  if (rule == ops::infer_one_hot<SymCall>) return hot();
  if (rule == ops::infer_layer_norm_with_statistics<SymCall> || rule == ops::infer_layer_norm_backward<SymCall> ||
      rule == ops::infer_batch_norm_training<SymCall> || rule == ops::infer_batch_norm_backward<SymCall>) {
    return norms(op);
  }
  if (rule == ops::infer_random<SymCall>) {
    RandomAttributes random{};
    random.dtype = DType::f32;
    random.distribution = EP_RANDOM_UNIFORM;
    return {sized("given", {}, {"S0", "3", "S0*S1"}, random)};
  }
  if (rule == ops::infer_resize<SymCall>) {
    ResizeAttributes nearest{};
    nearest.grid.mode = EP_RESIZE_NEAREST;
    nearest.grid.round = EP_RESIZE_FLOOR;
    return {sized("given", {"S0, S1"}, {"S0", "S1*2"}, nearest)};
  }
  if (rule == ops::infer_fourier<SymCall>) return transforms();
  if (rule == ops::infer_linear_algebra<SymCall>) return matrices(op);
  if (rule == ops::infer_recurrent<SymCall>) {
    RecurrentAttributes layer{};
    const bool lstm = op.output_count == 3;
    layer.layer.cell = lstm ? EP_CELL_LSTM : EP_CELL_GRU;
    const std::string rows = lstm ? "12" : "9";
    return {{"layer", {"S0, S1, 8", rows + ", 8", rows + ", 3"}, words(layer), {}, op.output_count}};
  }
  if (rule == ops::infer_slice_scatter<SymCall>) {
    return written(slices(), {"S0, S1", "S0, S1 - 1", "S0, S3", "S0, 5", "S0, 5", "S0, S3 - S2"});
  }
  if (rule == ops::infer_select_scatter<SymCall>) return written(selections(), {"S0", "S1"});
  if (rule == ops::infer_pad<SymCall>) return pads();
  return assemblies(op);
}

}  // namespace tenon::symbolic
