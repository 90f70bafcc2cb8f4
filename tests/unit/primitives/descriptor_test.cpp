#include "primitives/descriptor/descriptor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "primitives/descriptor/fields.h"
#include "primitives/table/table.h"
#include "tests/cases/case.h"

namespace tenon::descriptor {
namespace {

using cases::add_operand;
using cases::make_desc;

bool same_bytes(const ep_primitive_desc& a, const ep_primitive_desc& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

ep_primitive_desc relu() {
  ep_primitive_desc desc = make_desc(EP_PRIMITIVE_unary);
  desc.attributes.unary.op = EP_UNARY_relu;
  add_operand(desc, EP_ROLE_DST, DType::f32, {2, 3});
  add_operand(desc, EP_ROLE_SRC, DType::f32, {2, 3});
  return desc;
}

ep_primitive_desc parsed(std::string_view text) {
  auto desc = parse_descriptor(text);
  EXPECT_TRUE(desc.ok()) << text << ": " << desc.status().message();
  return desc.ok() ? desc.value() : make_desc(0);
}

TEST(Descriptor, SharedCasesAreValidAndReadBack) {
  for (const cases::Case& test : cases::all_cases()) {
    const Status status = check_descriptor(test.desc);
    EXPECT_TRUE(status.ok()) << test.name << ": " << status.message();
    const std::string text = to_string(test.desc);
    EXPECT_TRUE(same_bytes(parsed(text), test.desc)) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

// True if there are gaps between the elements of each axis.
bool is_spread(const ep_operand_desc& operand) {
  bool gaps = false;
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    if (operand.dims[axis] == 1) continue;
    if (operand.strides[axis] < 2) return false;
    gaps = true;
  }
  return gaps;
}
bool is_repeated(const ep_operand_desc& operand) {
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    if (operand.dims[axis] > 1 && operand.strides[axis] == 0) return true;
  }
  return false;
}

TEST(Descriptor, SharedCasesHaveEachOperandSpreadAndEachInputRepeated) {
  struct Found {
    bool is_long = false, spread = false, repeated = false;
  };
  std::map<std::pair<int32_t, int32_t>, Found> all;  // by kind and role
  for (const cases::Case& test : cases::all_cases()) {
    for (uint32_t i = 0; i < test.desc.operand_count; ++i) {
      const ep_operand_desc& operand = test.desc.operands[i];
      Found& found = all[{test.desc.kind, operand.role}];
      found.is_long =
          found.is_long || std::any_of(operand.dims, operand.dims + operand.rank, [](int64_t n) { return n > 1; });
      found.spread = found.spread || is_spread(operand);
      found.repeated = found.repeated || is_repeated(operand);
    }
  }
  std::set<int32_t> kinds;
  for (const auto& [place, found] : all) {
    const auto [kind, role] = place;
    kinds.insert(kind);
    const std::string name = table::kind_name(kind) + " " + table::role_name(role);
    EXPECT_TRUE(found.spread || !found.is_long) << name << " has no case with gaps between its elements";
    // For equal rows the inverse and the variance are rounding errors.
    const bool varies = kind == EP_PRIMITIVE_linear_algebra || table::is_output(kind, EP_ROLE_INV_STD);
    const bool may_repeat = found.is_long && !table::is_output(kind, role) && !(varies && role == EP_ROLE_SRC);
    EXPECT_TRUE(found.repeated || !may_repeat) << name << " has no case with a stride of 0";
  }
  for (const table::KindRow& row : table::kinds()) EXPECT_TRUE(kinds.contains(row.id)) << row.name << " has no cases";
}

TEST(Descriptor, IsWrittenAsTheHeaderSays) {
  EXPECT_EQ(to_string(relu()), "unary op=relu : dst f32[2,3]{3,1} src f32[2,3]{3,1}");
  const std::string text =
      "matmul deterministic precision=relaxed acc=f64 scalar6=f32:0.5 epilogue=add(epilogue_0) epilogue=leaky_relu@5 "
      "epilogue=mul(scalar)@4 : dst f32[?,?]{?,1} src f32[?,?]{?,1}@64 src_b f32[?,?]{?,1}+constant epilogue_0 "
      "f32[?,?]{0,1}@16+constant";
  const ep_primitive_desc desc = parsed(text);
  EXPECT_EQ(to_string(desc), text);
  EXPECT_TRUE(has_any(desc));
  EXPECT_TRUE(check_descriptor(desc).ok()) << check_descriptor(desc).message();
  EXPECT_EQ(desc.epilogues[1].scalar, 5);
  EXPECT_EQ(find_operand(desc, EP_ROLE_SRC)->alignment, 64);
  EXPECT_EQ(operand_index(desc, EP_ROLE_BIAS), -1);
}

TEST(Descriptor, BakedScalarsKeepTheirBits) {
  ep_primitive_desc desc = relu();
  desc.baked_scalars = 0b111;
  desc.scalars[0] = cases::make_scalar(DType::f64, 0.1);
  desc.scalars[1].dtype = EP_DTYPE_i64;
  desc.scalars[1].value.i64 = std::numeric_limits<int64_t>::lowest();
  desc.scalars[2].dtype = EP_DTYPE_u64;
  desc.scalars[2].value.u64 = std::numeric_limits<uint64_t>::max();
  EXPECT_TRUE(same_bytes(parsed(to_string(desc)), desc)) << to_string(desc);
}

TEST(Descriptor, AnOpaqueOperandHasATokenInPlaceOfStrides) {
  const std::string text = "copy : dst f32[2,3]{#7} src f32[2,3]{3,1}";
  const ep_primitive_desc desc = parsed(text);
  EXPECT_EQ(to_string(desc), text);
  EXPECT_EQ(desc.operands[0].strides[0], 7);
  EXPECT_TRUE(has_opaque(desc));
  EXPECT_TRUE(check_descriptor(desc).ok()) << check_descriptor(desc).message();
  for (const char* wrong :
       {"copy : dst f32[2,3]{#0} src f32[2,3]{3,1}", "copy : dst f32[2,3]{#7} src f32[2,?]{3,1}",
        "copy : dst f32[2,3]{#7}@64 src f32[2,3]{3,1}", "copy : dst f32[2,3]{#7}+constant src f32[2,3]{3,1}"}) {
    EXPECT_EQ(check_descriptor(parsed(wrong)).code(), Code::invalid_argument) << wrong;
  }
}

TEST(Descriptor, TextThatIsNoDescriptorIsRefusedInASentence) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "'' is not a kind of primitive."},
      {"frobnicate : dst f32[2]{1}", "'frobnicate' is not a kind of primitive."},
      {"unary op=relu", "before the colon"},
      {"unary op=nose : dst f32[2]{1}", "'nose' is neither a number nor a name"},
      {"unary axis=1 : dst f32[2]{1}", "'axis' is not an attribute of unary"},
      {"unary op=relu : dst f33[2]{1}", "'f33' is not a dtype"},
      {"unary op=relu : nose f32[2]{1}", "'nose' is not a role"},
      {"unary op=relu : dst f32[2,x]{1,1}", "'x' is not a number"},
      {"unary op=relu : dst f32[2,2]{1}", "has 2 dims but 1 strides"},
      {"unary op=relu : dst f32[2,2]", "has dims but no strides"},
      {"unary op=relu : dst f32[1,1,1,1,1,1,1,1,1]{1}", "more than 8"},
      {"fill scalar9=f32:1 : dst f32[2]{1}", "'scalar9' is not a launch scalar"},
      {"fill scalar1=f32:x : dst f32[2]{1}", "'x' is not a number of its dtype"},
      {"matmul epilogue=add(nose) : dst f32[2]{1}", "'nose' is not a role"},
      {"softmax axis=1,2 : dst f32[2]{1}", "at most 1 numbers"},
  };
  for (const auto& [text, part] : wrong) {
    const auto desc = parse_descriptor(text);
    ASSERT_FALSE(desc.ok()) << text;
    const std::string expected = std::string(part) == "before the colon" ? "which a colon begins" : part;
    EXPECT_NE(desc.status().message().find(expected), std::string::npos) << text << ": " << desc.status().message();
  }
}

struct Wrong {
  const char* text;
  Code code;
  const char* part;
};

TEST(Descriptor, ChecksSayWhatIsWrong) {
  const Wrong wrongs[] = {
      {"unary op=999 : dst f32[2]{1} src f32[2]{1}", Code::unsupported, "op 999 is unknown"},
      {"unary op=relu : dst dtype99[2]{1} src f32[2]{1}", Code::unsupported, "dtype 99, which is unknown"},
      {"unary op=relu precision=7 : dst f32[2]{1} src f32[2]{1}", Code::unsupported, "precision 7"},
      {"unary op=relu : dst f32[2]{1}", Code::invalid_argument, "operand 'src' is missing"},
      {"unary op=relu : src f32[2]{1} dst f32[2]{1}", Code::invalid_argument, "outputs come first"},
      {"unary op=relu : dst f32[2]{1} src f32[2]{1} src_b f32[2]{1}", Code::invalid_argument, "has no operand 'src_b'"},
      {"unary op=relu : dst f32[2]{1} src f32[3]{1}", Code::invalid_argument, "'src' has shape [3] but 'dst' has [2]"},
      {"unary op=relu : dst f32[2]{1} src f64[2]{1}", Code::invalid_argument, "'dst' is f32 but must be f64"},
      {"unary op=exp : dst i32[2]{1} src i32[2]{1}", Code::invalid_argument, "exp is not defined on i32"},
      {"unary op=relu : dst f32[0]{1} src f32[0]{1}", Code::invalid_argument, "dim 0 of 'dst' is 0"},
      {"unary op=relu : dst f32[2]{-3} src f32[2]{1}", Code::invalid_argument, "must not be negative"},
      {"unary op=relu : dst f32[2]{0} src f32[2]{1}", Code::invalid_argument, "output 'dst' has stride 0"},
      {"unary op=relu : dst f32[2]{1}@12 src f32[2]{1}", Code::invalid_argument,
       "alignment 12; it may be 0 or a power of two up to 65536"},
      {"unary op=relu : dst f32[2]{1}@131072 src f32[2]{1}", Code::invalid_argument, "alignment 131072"},
      {"unary op=relu : dst f32[2]{1} src f32 scalar", Code::invalid_argument, "'src' may not be a scalar"},
      {"unary op=relu : dst f32[2]{1} src f32", Code::invalid_argument, "rank 0, which only a scalar"},
      {"unary op=relu epilogue=relu : dst f32[2]{1} src f32[2]{1}", Code::invalid_argument, "takes no epilogues"},
      {"binary op=lt : dst f32[2]{1} src f32[2]{1} src_b f32[2]{1}", Code::invalid_argument,
       "'dst' is f32 but must be bool"},
      {"ternary op=where : dst f32[2]{1} src f32[2]{1} src_b f32[2]{1} src_c f32[2]{1}", Code::invalid_argument,
       "must be bool"},
      {"reduce op=sum : dst f32[2]{1} src f32[2]{1}", Code::invalid_argument, "names no axis"},
      {"resize mode=nearest scale=1 : dst f32[2]{1} src f32[2]{1}", Code::invalid_argument,
       "round is 0; it must be 1 to 4"},
      {"resize mode=linear round=1 scale=1 : dst f32[2]{1} src f32[2]{1}", Code::invalid_argument, "round is 1"},
      {"resize mode=linear flags=16 scale=1 : dst f32[2]{1} src f32[2]{1}", Code::unsupported, "flags 16"},
      {"resize mode=linear scale=-1 : dst f32[2]{1} src f32[2]{1}", Code::invalid_argument, "scale -1"},
      {"resize mode=linear scale=1,1 : dst f32[2]{1} src f32[2]{1}", Code::invalid_argument, "beyond rank 1"},
      {"resize mode=linear scale=1 : dst i32[2]{1} src i32[2]{1}", Code::invalid_argument, "floating-point"},
      {"resize mode=linear cubic=1 scale=1 : dst f32[2]{1} src f32[2]{1}", Code::invalid_argument, "cubic is 1"},
      {"recurrent cell=relu flags=2 : dst f32[1,1,1]{1,1,1} src f32[1,1,1]{1,1,1} weight f32[1,1]{1,1} "
       "recurrent_weight "
       "f32[1,1]{1,1}",
       Code::invalid_argument, "which only gru takes"},
      {"recurrent cell=relu clip=-1 : dst f32[1,1,1]{1,1,1} src f32[1,1,1]{1,1,1} weight f32[1,1]{1,1} "
       "recurrent_weight "
       "f32[1,1]{1,1}",
       Code::invalid_argument, "clip is -1"},
      {"recurrent cell=gru : dst f32[1,1,2]{2,2,1} src f32[1,1,1]{1,1,1} weight f32[2,1]{1,1} recurrent_weight "
       "f32[6,2]{2,1}",
       Code::invalid_argument, "'weight' has shape [2, 1] but must have [6, 1]"},
      {"recurrent cell=gru : dst f32[1,1,1]{1,1,1} src f32[1,1,1]{1,1,1} weight f32[3,1]{1,1} recurrent_weight "
       "f32[3,1]{1,1} cell f32[1,1]{1,1}",
       Code::invalid_argument, "'cell' is for lstm only"},
      {"fft form=complex axis=0 : dst f32[4,3]{3,1} src f32[4,3]{3,1}", Code::invalid_argument, "must hold pairs"},
      {"fft form=complex axis=1 : dst f32[4,2]{2,1} src f32[4,2]{2,1}", Code::invalid_argument, "axis 1 is not within"},
      {"fft form=real_to_half inverse=1 : dst f32[3,2]{2,1} src f32[4]{1}", Code::invalid_argument, "is not inverse"},
      {"fft form=real_to_half : dst f32[4,2]{2,1} src f32[4]{1}", Code::invalid_argument, "must have [3, 2]"},
      {"linear_algebra op=inverse : dst f32[2,3]{3,1} src f32[2,3]{3,1}", Code::invalid_argument, "square"},
      {"linear_algebra op=inverse flags=1 : dst f32[2,2]{2,1} src f32[2,2]{2,1}", Code::unsupported, "flags 1"},
      {"linear_algebra op=solve : dst f32[2,2]{2,1} src f32[2,2]{2,1}", Code::invalid_argument, "'src_b' is missing"},
      {"linear_algebra op=determinant : dst f32[2]{1} src f32[2,2]{2,1}", Code::invalid_argument, "must have [1]"},
      {"linear_algebra op=svd : dst f32[2]{1} dst_vectors f32[2,2]{2,1} src f32[2,2]{2,1}", Code::invalid_argument,
       "both or not at all"},
      {"linear_algebra op=lu : dst f32[2,2]{2,1} dst_pivots i64[2]{1} src f32[2,2]{2,1}", Code::invalid_argument,
       "must be i32"},
      {"pooling op=lp spatial_rank=1 kernel=1 stride=1 dilation=1 : dst f32[1,1,2]{2,2,1} src f32[1,1,2]{2,2,1}",
       Code::invalid_argument, "p is 0"},
      {"random distribution=bits : dst f32[2]{1}", Code::invalid_argument, "random bits are i32, u32, i64 or u64"},
      {"reduce op=sum axes=4 : dst f32[2,2]{2,1} src f32[2,2]{2,1}", Code::invalid_argument, "beyond rank 2"},
      {"reduce op=sum axes=1 : dst f32[2]{1} src f32[2]{1}", Code::invalid_argument, "with 1 at the axes"},
      {"softmax axis=2 : dst f32[2,2]{2,1} src f32[2,2]{2,1}", Code::invalid_argument, "axis 2 is not within rank 2"},
      {"softmax axis=0 : dst i32[2]{1} src i32[2]{1}", Code::invalid_argument, "floating-point"},
      {"arg_reduce op=sum : dst i64[1]{1} src f32[2]{1}", Code::unsupported, "neither max nor min"},
      {"arg_reduce op=max : dst i64[1]{1} src bool[2]{1}", Code::invalid_argument, "is not defined on bool"},
      {"matmul : dst bool[1,1]{1,1} src bool[1,1]{1,1} src_b bool[1,1]{1,1}", Code::invalid_argument,
       "is not defined on bool"},
      {"pooling op=1 spatial_rank=1 kernel=1 stride=1 dilation=1 : dst bool[1,1,2]{2,2,1} src bool[1,1,2]{2,2,1}",
       Code::invalid_argument, "is not defined on bool"},
      {"matmul : dst f32[2,2]{2,1} src f32[2,3]{3,1} src_b f32[4,2]{2,1}", Code::invalid_argument, "do not multiply"},
      {"matmul epilogue=add(epilogue_0) : dst f32[1,1]{1,1} src f32[1,1]{1,1} src_b f32[1,1]{1,1}",
       Code::invalid_argument, "not an operand for it"},
      {"matmul : dst f32[1,1]{1,1} src f32[1,1]{1,1} src_b f32[1,1]{1,1} epilogue_0 f32[1,1]{1,1}",
       Code::invalid_argument, "read by no epilogue"},
      {"convolution spatial_rank=1 groups=1 stride=1 dilation=1 : dst f32[1,1,5]{5,5,1} src f32[1,1,5]{5,5,1} weight "
       "f32[1,1,3]{3,3,1}",
       Code::invalid_argument, "windows of 3 over length 5 of 'src' do not give length 5 of 'dst'"},
      {"convolution spatial_rank=1 groups=1 stride=1,1 dilation=1 : dst f32[1,1,3]{3,3,1} src f32[1,1,5]{5,5,1} weight "
       "f32[1,1,3]{3,3,1}",
       Code::invalid_argument, "0 beyond the spatial rank"},
      {"gather axis=0 mode=slices : dst f32[3]{1} src f32[5]{1} indices f32[3]{1}", Code::invalid_argument,
       "i32 or i64"},
      {"gather axis=0 mode=slices : dst f32[4]{1} src f32[5]{1} indices i64[3]{1}", Code::invalid_argument,
       "does not give 'dst' [4]"},
      {"gather axis=0 mode=7 : dst f32[3]{1} src f32[5]{1} indices i64[3]{1}", Code::unsupported, "mode 7 is unknown"},
      {"concat axis=0 : dst f32[5]{1} src_0 f32[2]{1} src_1 f32[2]{1}", Code::invalid_argument,
       "4 long together along axis 0, but the whole is 5"},
      {"concat axis=0 : dst f32[5]{1} src_0 f32[2]{1} src_2 f32[3]{1}", Code::invalid_argument, "'src_1' is missing"},
      {"pad mode=reflect low=5 : dst f32[8]{1} src f32[3]{1}", Code::invalid_argument, "to reflect"},
      {"pad mode=constant low=1 : dst f32[3]{1} src f32[3]{1}", Code::invalid_argument, "does not give 3"},
      {"layer_norm axis=1 : dst f32[2,3]{3,1} src f32[2,3]{3,1} scale f32[2]{1}", Code::invalid_argument,
       "must have the dims of [2, 3] from axis 1"},
      {"layer_norm axis=1 : dst f64[2,3]{3,1} mean f32[2,1]{1,1} src f64[2,3]{3,1}", Code::invalid_argument,
       "'mean' is f32 but must be f64"},
      {"convolution_weight spatial_rank=1 groups=2 stride=1 dilation=1 : dst f32[2,2,1]{2,1,1} src f32[1,2,5]{10,5,1} "
       "gradient f32[1,2,5]{10,5,1}",
       Code::invalid_argument, "and groups 2 do not agree"},
      {"pooling_backward op=max spatial_rank=1 kernel=2 stride=2 dilation=1 : dst f32[1,1,4]{4,4,1} gradient "
       "f32[1,1,2]{2,2,1}",
       Code::invalid_argument, "only max pooling has 'indices'"},
      {"pooling_backward op=average spatial_rank=1 kernel=2 stride=2 dilation=1 : dst f32[1,1,4]{4,4,1} indices "
       "i64[1,1,2]{2,2,1} gradient f32[1,1,2]{2,2,1}",
       Code::invalid_argument, "only max pooling has 'indices'"},
      {"layer_norm_backward axis=1 : dst f32[2,3]{3,1} scale_gradient f32[2]{1} shift_gradient f32[3]{1} src "
       "f32[2,3]{3,1} mean f32[2,1]{1,1} inv_std f32[2,1]{1,1} gradient f32[2,3]{3,1}",
       Code::invalid_argument, "'scale_gradient' has shape [2]"},
      {"layer_norm_backward axis=1 : dst f32[2,3]{3,1} scale_gradient f32[3]{1} shift_gradient f32[3]{1} src "
       "f32[2,3]{3,1} mean f32[2,1]{1,1} inv_std f32[2,1]{1,1} gradient f16[2,3]{3,1}",
       Code::invalid_argument, "'gradient' is f16 but 'src' is f32"},
      {"batch_norm_training axis=1 : dst f32[2,3]{3,1} mean f32[3]{1} inv_std f32[3]{1} src f32[2,3]{3,1} scale "
       "f32[3]{1}",
       Code::invalid_argument, "given both or not at all"},
      {"batch_norm_backward axis=0 : dst f32[2,3]{3,1} scale_gradient f32[2]{1} shift_gradient f32[2]{1} src "
       "f32[2,3]{3,1} mean f32[3]{1} inv_std f32[2]{1} gradient f32[2,3]{3,1}",
       Code::invalid_argument, "'mean' has shape [3] but must have shape [2]"},
      {"scatter axis=0 mode=slices op=add : dst f32[5]{1} src f32[5]{1} src_b f32[4]{1} indices i64[3]{1}",
       Code::invalid_argument, "does not give 'src_b' [4]"},
      {"scatter axis=0 mode=elements op=mul : dst bool[5]{1} src bool[5]{1} src_b bool[3]{1} indices i64[3]{1}",
       Code::invalid_argument, "mul is not defined on bool"},
      {"scatter axis=0 mode=elements op=9 : dst f32[5]{1} src f32[5]{1} src_b f32[3]{1} indices i64[3]{1}",
       Code::unsupported, "op 9 is unknown"},
      {"scatter axis=1 mode=coordinates op=add : dst f32[5,4]{4,1} src f32[5,4]{4,1} src_b f32[3]{1} indices "
       "i64[3,2]{2,1}",
       Code::invalid_argument, "taken at coordinates 'indices' [3, 2] after 1 batch axes does not give 'src_b' [3]"},
      {"gather axis=0 mode=coordinates : dst f32[3,4]{4,1} src f32[5,4]{4,1} indices i64[3,2]{2,1}",
       Code::invalid_argument, "does not give 'dst' [3, 4]"},
      {"scan axis=1 op=sum : dst f32[5]{1} src f32[5]{1}", Code::invalid_argument, "axis 1 is not within rank 1"},
      {"scan axis=0 op=sum exclusive=2 : dst f32[5]{1} src f32[5]{1}", Code::invalid_argument, "exclusive is 2"},
      {"scan axis=0 op=prod : dst bool[5]{1} src bool[5]{1}", Code::invalid_argument, "prod is not defined on bool"},
      {"scan axis=0 op=log_sum_exp : dst i32[5]{1} src i32[5]{1}", Code::invalid_argument, "'src' is i32"},
      {"scan axis=0 op=sum : dst i32[5]{1} dst_indices i64[5]{1} src i32[5]{1}", Code::invalid_argument,
       "'dst_indices' is for max and min that are not exclusive"},
      {"scan axis=0 op=9 : dst f32[5]{1} src f32[5]{1}", Code::unsupported, "op 9 is unknown"},
      {"sort axis=0 : src f32[5]{1}", Code::invalid_argument, "operands 'dst' and 'dst_indices' are missing"},
      {"sort axis=0 : dst f32[5]{1} dst_indices i32[5]{1} src f32[5]{1}", Code::invalid_argument, "must be i64"},
      {"sort axis=0 descending=-1 : dst f32[5]{1} src f32[5]{1}", Code::invalid_argument, "descending is -1"},
      {"top_k axis=0 largest=1 : dst f32[6]{1} src f32[5]{1}", Code::invalid_argument,
       "'dst' has 6 elements along axis 0, but 'src' has 5"},
      {"top_k axis=0 largest=1 : dst f32[3]{1} dst_indices i64[2]{1} src f32[5]{1}", Code::invalid_argument,
       "'dst_indices' has shape [2]"},
      {"unique axis=-1 order=sorted : dst f32[5]{1} dst_count i64[1]{1} src f32[2,3]{3,1}", Code::invalid_argument,
       "'dst' has shape [5] but must have shape [6]"},
      {"unique axis=0 order=first : dst f32[2,3]{3,1} dst_count i64[1]{1} dst_inverse i64[3]{1} src f32[2,3]{3,1}",
       Code::invalid_argument, "'dst_inverse' has shape [3] but must have shape [2]"},
      {"unique axis=0 order=4 : dst f32[2]{1} dst_count i64[1]{1} src f32[2]{1}", Code::unsupported,
       "order 4 is unknown"},
      {"nonzero : dst i64[6,1]{1,1} dst_count i64[1]{1} src f32[2,3]{3,1}", Code::invalid_argument,
       "must have rank 2 and 2 columns"},
      {"one_hot axis=1 : dst f32[3,4]{4,1} src f32[3]{1}", Code::invalid_argument, "i32 or i64, not f32"},
      {"one_hot axis=0 : dst f32[3,4]{4,1} src i64[3]{1}", Code::invalid_argument,
       "'dst' has shape [3, 4], which is not that of 'src' [3] with one more axis at 0"},
      {"rms_norm axis=1 : dst f32[2,3]{3,1} src f32[2,3]{3,1} scale f32[2]{1}", Code::invalid_argument,
       "must have the dims of [2, 3] from axis 1"},
      {"rms_norm axis=1 : dst f32[2,3]{3,1} inv_std f32[2,3]{3,1} src f32[2,3]{3,1}", Code::invalid_argument,
       "'inv_std' has shape [2, 3]"},
      {"group_norm groups=2 : dst f32[2,3]{3,1} src f32[2,3]{3,1}", Code::invalid_argument,
       "3 channels are not a multiple of groups (2)"},
      {"group_norm groups=1 : dst f32[2,3]{3,1} mean f32[2]{1} src f32[2,3]{3,1}", Code::invalid_argument,
       "'mean' has shape [2] but must have shape [2, 1]"},
      {"attention align=start before=-1 after=-1 : dst f32[1,3,2,4]{24,8,4,1} src f32[1,3,2,5]{30,10,5,1} src_b "
       "f32[1,2,6,5]{60,30,5,1} src_c f32[1,2,6,4]{48,24,4,1}",
       Code::invalid_argument, "3 heads of 'src' are not a multiple of 2 heads of 'src_b'"},
      {"attention align=start before=-1 after=-1 : dst f32[1,1,2,4]{8,8,4,1} src f32[1,1,2,5]{10,10,5,1} src_b "
       "f32[1,1,6,4]{24,24,4,1} src_c f32[1,1,6,4]{24,24,4,1}",
       Code::invalid_argument, "'src_b' has shape [1, 1, 6, 4] but must have shape"},
      {"attention align=start before=-2 after=-1 : dst f32[1,1,2,4]{8,8,4,1} src f32[1,1,2,5]{10,10,5,1} src_b "
       "f32[1,1,6,5]{30,30,5,1} src_c f32[1,1,6,4]{24,24,4,1}",
       Code::invalid_argument, "before (-2) and after (-1) must be at least -1"},
      {"attention align=7 : dst f32[1,1,2,4]{8,8,4,1} src f32[1,1,2,5]{10,10,5,1} src_b f32[1,1,6,5]{30,30,5,1} src_c "
       "f32[1,1,6,4]{24,24,4,1}",
       Code::unsupported, "align 7 is unknown"},
      {"attention align=end : dst f32[1,1,2,4]{8,8,4,1} src f32[1,1,2,5]{10,10,5,1} src_b f32[1,1,6,5]{30,30,5,1} "
       "src_c "
       "f32[1,1,6,4]{24,24,4,1} bias f16[1,1,2,6]{12,12,6,1}",
       Code::invalid_argument, "'bias' is f16 but 'src' is f32"},
      {"attention align=end : dst f32[1,1,2,4]{8,8,4,1} src f32[1,1,2,5]{10,10,5,1} src_b f32[1,1,6,5]{30,30,5,1} "
       "src_c "
       "f32[1,1,6,4]{24,24,4,1} lengths f32[1]{1}",
       Code::invalid_argument, "'lengths' must be i32 or i64, not f32"},
      {"rotary mode=halves : dst f32[1,1,2,4]{8,8,4,1} src f32[1,1,2,4]{8,8,4,1} src_b f32[1,1,2,3]{6,6,3,1} src_c "
       "f32[1,1,2,3]{6,6,3,1}",
       Code::invalid_argument, "3 pairs do not fit in rows of 4 elements"},
      {"rotary mode=interleaved : dst f32[1,1,2,4]{8,8,4,1} src f32[1,1,2,4]{8,8,4,1} src_b f32[9,2]{2,1} src_c "
       "f32[9,2]{2,1} indices i64[2,1]{1,1}",
       Code::invalid_argument, "'indices' has shape [2, 1] but must have shape [1, 2]"},
      {"random distribution=normal : dst f64[3]{1}", Code::invalid_argument, "normal numbers are f32, f16, bf16."},
      {"random distribution=uniform : dst f32[3]{1} src i64[3]{1}", Code::invalid_argument, "must be [2]"},
      {"batch_norm axis=1 : dst f32[2,3]{3,1} src f32[2,3]{3,1} scale f32[2]{1} shift f32[3]{1} mean f32[3]{1} "
       "variance f32[3]{1}",
       Code::invalid_argument, "must have shape [3]"},
  };
  for (const Wrong& wrong : wrongs) {
    const Status status = check_descriptor(parsed(wrong.text));
    EXPECT_EQ(status.code(), wrong.code) << wrong.text << ": " << status.message();
    EXPECT_NE(status.message().find(wrong.part), std::string::npos) << wrong.text << ": " << status.message();
  }
}

TEST(Descriptor, WhatTextCannotSayIsChecked) {
  ep_primitive_desc desc = relu();
  desc.kind = 47;
  EXPECT_EQ(check_descriptor(desc).message(), "kind 47 is unknown.");
  desc = relu();
  desc.flags = 1 << 20;
  EXPECT_EQ(check_descriptor(desc).code(), Code::unsupported);
  desc = relu();
  desc.extensions[0] = 77;
  EXPECT_EQ(check_descriptor(desc).code(), Code::unsupported);
  desc = relu();
  desc.attributes.words[15] = 1;
  EXPECT_EQ(check_descriptor(desc).code(), Code::unsupported);
  desc = relu();
  desc.operands[1].flags = 1 << 20;
  EXPECT_EQ(check_descriptor(desc).code(), Code::unsupported);
  desc = relu();
  desc.operands[1].role = 5000;
  EXPECT_EQ(check_descriptor(desc).code(), Code::unsupported);
  desc = relu();
  desc.operands[0].dims[5] = 3;
  EXPECT_EQ(check_descriptor(desc).code(), Code::invalid_argument);
  desc = relu();
  desc.operands[0].rank = 9;
  EXPECT_EQ(check_descriptor(desc).code(), Code::invalid_argument);
  desc = relu();
  desc.operand_count = 17;
  EXPECT_EQ(check_descriptor(desc).code(), Code::invalid_argument);
}

TEST(Descriptor, QuantisedOperandsAgreeWithTheirScales) {
  const std::pair<const char*, const char*> wrong[] = {
      {"quantise : dst i8[6]{1} src f32[6]{1}", "has neither 'dst_scale' nor 'dst_zero_point'"},
      {"quantise dst.axes=2 : dst i8[6]{1} src f32[6]{1} dst_scale f32[1]{1}", "names an axis beyond rank 1"},
      {"quantise dst.axes=1 : dst i8[6]{1} src f32[6]{1} dst_scale f32[5]{1}",
       "has shape [5], but 'dst' of shape [6] wants [6]"},
      {"quantise dst.axes=1 dst.block=4 : dst i8[6]{1} src f32[6]{1} dst_scale f32[3]{1}", "wants [2]"},
      {"quantise dst.axes=1 dst.block=-4 : dst i8[6]{1} src f32[6]{1} dst_scale f32[2]{1}", "must be at least 1"},
      {"quantise dst.axes=1 dst.block=0,4 : dst i8[6]{1} src f32[6]{1} dst_scale f32[6]{1}", "but no first block"},
      {"quantise dst.block=4 : dst i8[6]{1} src f32[6]{1} dst_scale f32[1]{1}", "not in its axes mask"},
      {"quantise dst.axes=1 dst.block=4,4 : dst i8[6]{1} src f32[6]{1} dst_scale f32[2]{1}", "has blocks along axis 1"},
      {"quantise : dst i8[6]{1} src f32[6]{1} dst_scale f32[1]{1} dst_zero_point u8[1]{1}", "is u8 but 'dst' is i8"},
      {"quantise : dst i8[6]{1} src f32[6]{1} dst_scale f64[1]{1}", "must be f32, f16 or bf16"},
      {"quantise : dst i8[6]{1} src i32[6]{1} dst_scale f32[1]{1}", "'src' is i32, not quantised"},
      {"quantise : dst f32[6]{1} src f32[6]{1} dst_scale f32[1]{1}", "cannot be quantised"},
      {"dequantise : dst f32[6]{1} src f8e5m2[6]{1} src_zero_point f8e5m2[1]{1}", "takes no zero point"},
      {"dequantise : dst f32[5]{1} src i8[6]{1} src_scale f32[1]{1}", "shape"},
      {"dequantise : dst f32[6]{1} src i8[6]{1} dst_scale f32[1]{1}", "has no operand 'dst_scale'"},
      {"matmul weight.axes=2 : dst f32[2,2]{2,1} src f32[2,2]{2,1} src_b f32[2,2]{2,1}", "neither 'weight_scale' nor"},
      {"matmul : dst i32[2,2]{2,1} src i8[2,2]{2,1} src_b i8[2,2]{2,1} weight_scale f32[1,1]{1,1}",
       "'src' is i8, not quantised"},
      {"matmul : dst i32[2,2]{2,1} src i8[2,2]{2,1} src_b i8[2,2]{2,1} bias i32[2,2]{2,1} src_zero_point i8[1,1]{1,1}",
       "take no bias"},
      {"matmul : dst u8[2,2]{2,1} src f32[2,2]{2,1} src_b f32[2,2]{2,1} bias u8[2,2]{2,1} dst_scale f32[1,1]{1,1}",
       "'bias' is u8 but must be f32"},
  };
  for (const auto& [text, sentence] : wrong) {
    const Status status = check_descriptor(parsed(text));
    EXPECT_EQ(status.code(), Code::invalid_argument) << text;
    EXPECT_NE(status.message().find(sentence), std::string::npos) << text << ": " << status.message();
  }
  const ep_primitive_desc open = parsed(
      "matmul weight.axes=3 weight.block=32 : dst f32[?,?]{?,1} src f32[?,?]{?,1} src_b u4[?,?]{?,1} weight_scale "
      "f32[?,?]{?,1} weight_zero_point u4[?,?]{?,1}");
  EXPECT_TRUE(check_descriptor(open).ok()) << check_descriptor(open).message();
}

TEST(Descriptor, FieldsCoverEveryAttributeByte) {
  for (const table::KindRow& row : table::kinds()) {
    size_t named = 0;
    for (const Field& field : fields()) {
      if (field.kind != row.id) continue;
      named += field_size(field) * static_cast<size_t>(field.count);
      EXPECT_LE(field.offset + field_size(field) * static_cast<size_t>(field.count), row.attribute_size) << row.name;
    }
    // At most two words, which are reserved, have no name.
    EXPECT_LE(row.attribute_size - named, 8U) << row.name;
  }
}

}  // namespace
}  // namespace tenon::descriptor
