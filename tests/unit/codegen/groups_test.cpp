// Kernels of groups: what the verifier refuses, the interpreter, the texts in the dialects of work-items.
#include "tests/unit/codegen/groups.h"

#include <gtest/gtest.h>

#include "core/codegen/emit/choose.h"
#include "core/codegen/loop/interpret.h"
#include "core/codegen/loop/places.h"
#include "core/codegen/tactics/tactics.h"
#include "ep_api/ep_api.h"
#include "primitives/text/format.h"
#include "tests/unit/codegen/compiled.h"

namespace tenon::codegen {
namespace {

// Work-items write along j and read along i.
const std::string kTurned =
    "kernel turned\naxis one 1\naxis i 6\naxis j 13\nin x f32 78\nout y f32 78\n"
    "v = value f32 in shared at one i j: exp(x[13*i + j])\n"
    "u = store y[13*i + j] at one i j: add(v, 1:f32)\n"
    "loops\n  items one\n    serial i\n      work_items j width 8\n        v\n    barrier\n"
    "    serial j\n      work_items i width 8\n        u\n";

std::string without(std::string text, std::string_view part) {
  const size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.erase(at, part.size());
}

std::string with(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string refusal(const std::string& text) {
  const Result<Kernel> kernel = parse_kernel(text);
  EXPECT_FALSE(kernel.ok()) << text;
  return kernel.status().message();
}

TEST(GroupLoops, ParseBackToTheSameText) { EXPECT_EQ(to_string(parsed(kTurned)), kTurned); }

TEST(GroupLoops, ABarrierIsMissed) {
  EXPECT_EQ(refusal(without(kTurned, "    barrier\n")),
            "Stage u reads stage v, which other work-items wrote, without a barrier in between.");
  // A work-item may read a number that it wrote itself.
  const std::string same = with(without(kTurned, "    barrier\n"), "    serial j\n      work_items i width 8\n",
                                "    serial i\n      work_items j width 8\n");
  EXPECT_TRUE(parse_kernel(same).ok());
  // The interpreter detects it too.
  Kernel kernel = parsed(kTurned);
  std::vector<Node>& body = kernel.body.front().body;
  body.erase(body.begin() + 1);
  Memory memory(kernel, {}, 7);
  EXPECT_EQ(interpret(kernel, {}, memory.addresses()).message(), "Stage v is read at a point that was not stored.");
}

TEST(GroupLoops, RefuseWhatNotAllOfTheGroupReaches) {
  const std::string inside = with(kTurned, "    barrier\n    serial j\n", "    serial j\n      barrier\n");
  EXPECT_TRUE(
      parse_kernel(with(inside, "      barrier\n", "")).status().message().find("without a barrier in between") !=
      std::string::npos);
  EXPECT_EQ(refusal("kernel k\naxis i 9\naxis j 13\nin x f32 117\nout y f32 9\n"
                    "s = sum f32 at i over j: x[13*i + j]\nu = store y[i] at i: s\n"
                    "loops\n  items i step 4\n    work_items i width 8 dim 1\n      work_items j width 8\n        s\n"
                    "      u\n"),
            "The loop over i contains a barrier or a reduction over work-items, so it must have 8 positions left, "
            "not 4.");
  EXPECT_EQ(refusal(with(kTurned, "work_items j width 8", "work_items j width 6")),
            "The loop over j has width 6, which must be a power of two from 1 to 1024.");
  EXPECT_EQ(refusal(with(kTurned, "work_items i width 8", "work_items i width 4")),
            "The loop over i has width 4, but the group has 8 along dim 0.");
  EXPECT_EQ(refusal(with(kTurned, "in shared", "in row")), "Stage v is in a row, but the kernel has groups.");
  EXPECT_EQ(refusal(with(kTurned, "work_items i width 8", "vector i")),
            "Kernel turned has loops of work_items and vector loops.");
  EXPECT_EQ(refusal(with(kTurned, "work_items i width 8", "work_items i width 8 dim 2")),
            "The loop over i is along dim 2; a group has 0 and 1.");
}

TEST(GroupTexts, WaitAtBarriers) { expect_dialects(parsed(kTurned), {{}}, 8, 0); }

TEST(GroupTexts, NeedTheFeaturesOfTheirTypes) {
  Kernel kernel = parsed(
      "kernel narrow\nsize n in [0, 65536]\naxis i n\nin x f16 n\nout y bool n\nout z f64 n\n"
      "u = store y[i] at i: gt(f32(x[i]), 1:f32)\nv = store z[i] at i: f64(f32(x[i]))\n");
  ASSERT_TRUE(schedule_for_groups(&kernel).ok());
  constexpr uint64_t all = EP_DIALECT_FEATURE_F64 | EP_DIALECT_FEATURE_I64 | EP_DIALECT_FEATURE_STORE_8 |
                           EP_DIALECT_FEATURE_STORE_16 | EP_DIALECT_FEATURE_BARRIERS;
  EXPECT_TRUE(emit_groups(kernel, EP_DIALECT_OPENCL_C, all).ok());
  EXPECT_EQ(emit_groups(kernel, EP_DIALECT_OPENCL_C, all & ~EP_DIALECT_FEATURE_STORE_8).status().message(),
            "A store of bool needs EP_DIALECT_FEATURE_STORE_8, which the device does not have in this dialect.");
  EXPECT_EQ(emit_groups(kernel, EP_DIALECT_CUDA_C, all & ~EP_DIALECT_FEATURE_F64).status().message(),
            "A number of f64 needs EP_DIALECT_FEATURE_F64, which the device does not have in this dialect.");
  EXPECT_EQ(emit_groups(kernel, EP_DIALECT_GLSL, all).status().code(), Code::unsupported);
  EXPECT_EQ(emit_groups(kernel, EP_DIALECT_C, all).status().code(), Code::unsupported);
}

TEST(GroupTexts, StayWithinTheLimitsOfTheDevice) {
  const Kernel plain = parsed(
      "kernel norm\nsize n in [0, 65536]\naxis i n\naxis r 768\nin x f32 768*n\nout y f32 768*n\n"
      "s = sum f32 at i over r: x[768*i + r]\nu = store y[768*i + r] at i r: div(x[768*i + r], s)\n");
  ep_dialect_info dialect{};
  dialect.dialect = EP_DIALECT_OPENCL_C;
  dialect.features = EP_DIALECT_FEATURE_I64 | EP_DIALECT_FEATURE_BARRIERS;
  dialect.group_items = 64;
  for (size_t dim = 0; dim < 3; ++dim) {
    dialect.group_dims[dim] = 64;
    dialect.groups[dim] = 1000;
  }
  dialect.greatest_buffers = 16;
  dialect.shared_bytes = 4096;
  dialect.parameter_bytes = 1024;
  const auto printed = [&] {
    Kernel kernel = plain;
    return print_for(&kernel, dialect);
  };
  ASSERT_TRUE(printed().ok()) << printed().status().message();
  EXPECT_EQ(printed().value().group[0], 64U);
  EXPECT_EQ(value_or_throw(groups_for(1000, dialect)), (std::array<uint64_t, 3>{1000, 1, 1}));
  EXPECT_EQ(value_or_throw(groups_for(1001, dialect)), (std::array<uint64_t, 3>{501, 2, 1}));
  EXPECT_EQ(groups_for(1000001, dialect).status().message(),
            "A launch has 1000001 groups; the device accepts at most 1000 x 1000.");
  dialect.greatest_buffers = 1;
  EXPECT_EQ(printed().status().message(), "Kernel norm needs 2 buffers, and the device has 1.");
  dialect.greatest_buffers = 16;
  dialect.parameter_bytes = 4;
  EXPECT_EQ(printed().status().message(), "Kernel norm needs 8 bytes of parameters, and the device has 4.");
  dialect.parameter_bytes = 1024;
  dialect.shared_bytes = 128;
  EXPECT_EQ(printed().status().message(), "Kernel norm needs 256 bytes of shared memory, and the device has 128.");
}

// Work-items that use packs read shared numbers of other items where a loop without packs wrote them.
TEST(GroupLoops, PacksAreOtherWorkItems) {
  const std::string shared =
      "kernel shared\naxis one 1\naxis j 64\nin x f32 64\nout y f32 64\n"
      "v = value f32 in shared at one j: exp(x[j])\nu = store y[j] at one j: add(v, 1:f32)\n"
      "loops\n  items one\n    work_items j step 4 width 16\n      serial j\n        v\n"
      "    work_items j step 4 width 16\n      serial j\n        u\n";
  EXPECT_EQ(to_string(parsed(shared)), shared);
  const std::string other = with(shared, "    work_items j step 4 width 16\n      serial j\n        u\n",
                                 "    work_items j step 2 width 16\n      serial j\n        u\n");
  EXPECT_EQ(refusal(other), "Stage u reads stage v, which other work-items wrote, without a barrier in between.");
  EXPECT_EQ(refusal(with(shared, "        v\n", "        v\n        barrier\n")),
            "The loop over j contains a barrier or a reduction over work-items, but has step 4.");
  expect_dialects(parsed(shared), {{}}, 8, 0, IndexBits::narrow);
}

std::string packs_of_norm(const std::string& length) {
  std::string text =
      "kernel norm\nsize n in [0, 65536]\nsize m in [4, 4096] multiple 4\naxis i n\naxis r LENGTH\n"
      "in x f32 LENGTH*n\nin h f16 LENGTH\nout y f32 LENGTH*n\n"
      "s = sum f32 at i over r: square(x[LENGTH*i + r])\n"
      "u = store y[LENGTH*i + r] at i r: mul(div(x[LENGTH*i + r], s), f32(h[r]))\n";
  for (size_t at = text.find("LENGTH"); at != std::string::npos; at = text.find("LENGTH")) text.replace(at, 6, length);
  Kernel kernel = parsed(text);
  GroupLimits limits;
  limits.vector_bytes = 16;
  EXPECT_TRUE(schedule_for_groups(&kernel, limits).ok());
  return ptx_of(value_or_throw(emit_groups(kernel, EP_DIALECT_CUDA_C, ~uint64_t{0}, IndexBits::narrow)));
}

TEST(GroupTexts, PacksAreOneAccess) {
  const std::string whole = packs_of_norm("768");
  if (whole.empty()) GTEST_SKIP() << "NVRTC is not found";
  for (const char* access : {"ld.global.v4", "ld.global.v2", "st.global.v4"}) {
    EXPECT_NE(whole.find(access), std::string::npos) << access;
  }
  EXPECT_NE(packs_of_norm("m").find("ld.global.v4"), std::string::npos);
  EXPECT_EQ(packs_of_norm("767").find("ld.global.v4"), std::string::npos);
}

TEST(GroupTexts, EveryCompilerIsThere) {
  if (!missing_compilers().empty()) GTEST_SKIP() << missing_compilers();
}

}  // namespace
}  // namespace tenon::codegen
