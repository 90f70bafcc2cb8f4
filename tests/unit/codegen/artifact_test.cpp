// Integer programs against plain arithmetic, and artifacts: buckets, bytes, sizes of outputs in C.
#include "core/codegen/artifact/artifact.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <random>

#include "core/codegen/emit/narrow.h"
#include "core/codegen/loop/interpret.h"
#include "core/codegen/loop/names.h"
#include "primitives/text/format.h"
#include "tests/unit/codegen/compiled.h"

namespace tenon::codegen {
namespace {

int64_t run(const Program& program, const std::vector<int64_t>& parameters) {
  return value_or_throw(program.run(parameters));
}

TEST(Program, ComputesWhatTheSizeIs) {
  Kernel kernel("sizes");
  const SymDim n = kernel.add_parameter("n", 1, 1 << 20);
  const SymDim m = kernel.add_parameter("m", 1, 1 << 20);
  const symbolic::ArenaScope scope(kernel.arena);
  const SymDim sizes[] = {n,
                          3 * n * n - m + 5,
                          floor_div(7 * n - 100, m + 1),
                          modulo(n - 50, 7),
                          min_size(n, m),
                          max_size(n, 2 * m),
                          ceil_div(n, 16),
                          SymDim(-4),
                          kernel.arena.broadcast(n, m)};
  std::mt19937 random(1);
  for (const SymDim size : sizes) {
    const Program program = value_or_throw(Program::of(kernel, size));
    EXPECT_EQ(value_or_throw(Program::parse(program.text())), program);
    for (int i = 0; i < 100; ++i) {
      const int64_t at_n = 1 + random() % 200;
      const std::vector<int64_t> parameters{at_n, i % 2 == 0 ? at_n : 1};
      EXPECT_EQ(run(program, parameters), value_or_throw(size_of(kernel, size, parameters))) << program.text();
    }
  }
}

TEST(Program, AnswersConditions) {
  Kernel kernel("conditions");
  const SymDim n = kernel.add_parameter("n", 0, 1 << 20);
  const symbolic::ArenaScope scope(kernel.arena);
  const std::vector<Condition> conditions{n <= 100, n > 10, n != 50};
  const Program program = value_or_throw(Program::all(kernel, conditions));
  for (int64_t i = 0; i < 120; ++i) EXPECT_EQ(run(program, {i}), i <= 100 && i > 10 && i != 50) << i;
  EXPECT_EQ(run(value_or_throw(Program::all(kernel, {})), {7}), 1);
  EXPECT_EQ(run(value_or_throw(Program::of(kernel, n)).chunks(4096), {4097}), 2);
  EXPECT_EQ(run(value_or_throw(Program::of(kernel, n)).chunks(4096), {0}), 0);
}

TEST(Program, RefusesBadText) {
  const auto refusal = [](std::string_view text) { return Program::parse(text).status().message(); };
  EXPECT_EQ(refusal("1 add"), "The program '1 add': at 'add' two operands are expected before it.");
  EXPECT_EQ(refusal("1 2"), "The program '1 2': at 'the end' one number is expected, not 2.");
  EXPECT_EQ(refusal("p0 7 plus"),
            "The program 'p0 7 plus': at 'plus' a number, a parameter or a word of two operands is expected.");
  EXPECT_EQ(refusal(""), "The program '': at 'the end' one number is expected, not 0.");
  EXPECT_FALSE(Program::parse("99999999999999999999").ok());
  EXPECT_FALSE(Program::parse("p-1").ok());
  const Program division = value_or_throw(Program::parse("p0 0 floor_div"));
  EXPECT_EQ(division.run(std::vector<int64_t>{5}).status().message(),
            "The program 'p0 0 floor_div' divides by 0 or overflows int64 in floor_div of 5 and 0.");
  EXPECT_EQ(division.run({}).status().message(),
            "The program 'p0 0 floor_div' reads more parameters than the 0 that were given.");
}

const std::string kSoftmax =
    "kernel softmax\nsize n in [0, 65536]\nsize m in [1, 1048576]\naxis i n\naxis r m\nin x f32 n*m\nout y f32 n*m\n"
    "k = max f32 at i over r: x[i*m + r]\n"
    "e = value f32 at i r: exp(sub(x[i*m + r], k))\n"
    "s = sum f32 at i over r: e\n"
    "u = store y[i*m + r] at i r: div(e, s)\n";

std::string with_sizes(std::string text, const std::string& first, const std::string& second) {
  const size_t begin = text.find("size n"), end = text.find("axis i");
  return text.replace(begin, end - begin, fmt::format("{}\n{}\n", first, second));
}

Artifact softmax() {
  const Kernel kernel = parsed(kSoftmax);
  return value_or_throw(make_artifact(kernel, {SymDims{kernel.parameters[0].symbol, kernel.parameters[1].symbol}},
                                      unlimited(EP_DIALECT_C)));
}

TEST(Artifact, LongRowsAreABucketOfTheirOwn) {
  const Artifact artifact = softmax();
  ASSERT_EQ(artifact.variants.size(), 2U);
  EXPECT_EQ(artifact.choose(std::vector<int64_t>{3, 8192}), 0U);
  EXPECT_EQ(artifact.choose(std::vector<int64_t>{3, 8193}), 1U);
  EXPECT_EQ(run(artifact.variants[1].items, {3, 9}), 3);
  EXPECT_GT(artifact.variants[0].text.shared_bytes, 0U);
  EXPECT_EQ(artifact.variants[1].text.shared_bytes, 0U);
}

// The buckets give the same bits as the kernel whose sizes are numbers.
TEST(Artifact, EveryBucketAddsInTheSameOrder) {
  const Artifact artifact = softmax();
  for (const int64_t length : {40, 130}) {
    std::string text = kSoftmax;
    text.replace(text.find("axis r m"), 8, fmt::format("axis r {}", length));
    const Artifact fixed = value_or_throw(make_artifact(parsed(text), {}, unlimited(EP_DIALECT_C)));
    ASSERT_EQ(fixed.variants.size(), 1U);
    const std::vector<int64_t> sizes{4, length};
    std::vector<Memory> results;
    for (const KernelText* each : {&artifact.variants[0].text, &artifact.variants[1].text, &fixed.variants[0].text}) {
      const Compiled compiled(*each);
      ASSERT_TRUE(compiled.ok());
      results.emplace_back(parsed(kSoftmax), sizes, 5);
      compiled.run(results.back().addresses(), sizes, 4, 3);
    }
    EXPECT_EQ(results[0].bytes(1), results[1].bytes(1)) << length;
    EXPECT_EQ(results[0].bytes(1), results[2].bytes(1)) << length;
  }
}

MapFacts facts_of(const std::string& text) {
  return value_or_throw(make_artifact(parsed(text), {}, unlimited(EP_DIALECT_C))).variants[0].map;
}

TEST(MapFacts, AnOutputMayBeWrittenOverInputsThatAreReadBefore) {
  const std::string head = "kernel k\naxis i 70\nin a f32 70\nin b f32 70\nin c f64 70\nout x f32 70\nout y f32 70\n";
  const MapFacts facts = facts_of(head +
                                  "v = value f32 at i: mul(a[i], 0.5:f32)\ns = store x[i] at i: v\n"
                                  "t = store y[i] at i: add(v, add(b[i], f32(c[i])))\n");
  EXPECT_TRUE(facts.is_map);
  EXPECT_EQ(facts.over, (std::vector<uint64_t>{1, 3}));  // b is read after s; c has other elements
  const MapFacts again =
      facts_of(head + "s = store x[i] at i: mul(a[i], b[i])\nt = store y[i] at i: add(a[i], f32(c[i]))\n");
  EXPECT_EQ(again.over, (std::vector<uint64_t>{2, 3}));
}

TEST(MapFacts, KernelsOfOtherPlacesAreNoMaps) {
  const std::string head = "kernel k\naxis i 8\naxis j 9\nin a f32 72\nin b f32 9\n";
  for (const char* rest : {"out x f32 72\ns = store x[9*i + j] at i j: add(a[9*i + j], b[j])\n",
                           "out x f32 72\ns = store x[i + 8*j] at i j: neg(a[9*i + j])\n",
                           "out x f32 8\nr = sum f32 at i over j: a[9*i + j]\ns = store x[i] at i: r\n",
                           "out x f32 72\ns = store x[9*i + j] at i j: mul(a[9*i + j], f32([j]))\n"}) {
    const MapFacts facts = facts_of(head + rest);
    EXPECT_FALSE(facts.is_map) << rest;
    EXPECT_EQ(facts.over, std::vector<uint64_t>{0}) << rest;
  }
  EXPECT_TRUE(facts_of(head + "out x f32 72\ns = store x[9*i + j] at i j: neg(a[9*i + j])\n").is_map);
}

ep_dialect_info groups(uint32_t vector_bytes) {
  ep_dialect_info dialect = unlimited(EP_DIALECT_OPENCL_C);
  dialect.vector_bytes = vector_bytes;
  return dialect;
}

// Long rows: there is a bucket for sizes that need 64 bits, one for short rows, and one for lengths that are whole
// packs.
TEST(Artifact, BucketsInGroups) {
  Kernel kernel = parsed(with_sizes(kSoftmax, "size n in [0, 1099511627776]", "size m in [1, 1048576]"));
  const Artifact plain = value_or_throw(make_artifact(kernel, {}, groups(0)));
  const Artifact packed = value_or_throw(make_artifact(kernel, {}, groups(16)));
  ASSERT_EQ(plain.variants.size(), 4U);
  ASSERT_EQ(packed.variants.size(), 6U);
  const auto chosen = [](const Artifact& artifact, int64_t n, int64_t m) {
    return artifact.choose(std::vector<int64_t>{n, m});
  };
  EXPECT_EQ(chosen(plain, 3, 64), 0U);
  EXPECT_EQ(chosen(plain, 3, 65), 1U);
  EXPECT_EQ(chosen(plain, 3, 4096), 1U);
  EXPECT_EQ(chosen(plain, 3, 4097), 2U);
  EXPECT_EQ(chosen(plain, 2048, 1 << 20), 3U);
  EXPECT_EQ(chosen(packed, 3, 64), 0U);
  EXPECT_EQ(chosen(packed, 3, 68), 1U);
  EXPECT_EQ(chosen(packed, 3, 63), 2U);
  EXPECT_EQ(chosen(packed, 3, 8192), 3U);
  EXPECT_EQ(chosen(packed, 3, 8193), 4U);
  EXPECT_EQ(chosen(packed, 2048, 1 << 20), 5U);
  // The text that is used until the text of a bucket is ready.
  EXPECT_EQ(packed.general(std::vector<int64_t>{3, 64}), 4U);
  EXPECT_EQ(packed.general(std::vector<int64_t>{2048, 1 << 20}), 5U);
  // Sizes beyond all limits belong only to the last bucket.
  EXPECT_EQ(chosen(packed, int64_t{1} << 61, 64), 5U);
}

// Indices have 32 bits up to the last size for which that is enough.
TEST(Artifact, IndicesOf32BitsAtTheirEdge) {
  const Kernel kernel = parsed(
      "kernel flat\nsize n in [0, 1099511627776]\naxis i n\nin x f32 n\nout y f32 n\n"
      "u = store y[i] at i: relu(x[i])\n");
  const Artifact artifact = value_or_throw(make_artifact(kernel, {}, groups(0)));
  ASSERT_EQ(artifact.variants.size(), 2U);
  EXPECT_FALSE(artifact.variants[0].wide);
  EXPECT_EQ(artifact.choose(std::vector<int64_t>{kMostNarrow}), 0U);
  EXPECT_EQ(artifact.choose(std::vector<int64_t>{kMostNarrow + 1}), 1U);
  EXPECT_NE(artifact.variants[0].text.text.find("for (int i"), std::string::npos);
  EXPECT_NE(artifact.variants[1].text.text.find("for (int64_t i"), std::string::npos);
  const std::string small =
      "kernel flat\nsize n in [0, 65536]\naxis i n\nin x f32 n\nout y f32 n\n"
      "u = store y[i] at i: relu(x[i])\n";
  EXPECT_EQ(value_or_throw(make_artifact(parsed(small), {}, groups(0))).variants.size(), 1U);
}

TEST(Artifact, SizesOfOutputsInC) {
  Kernel kernel = parsed(kSoftmax);
  const symbolic::ArenaScope scope(kernel.arena);
  const SymDim n = kernel.parameters[0].symbol;
  const SymDim m = kernel.parameters[1].symbol;
  const std::vector<SymDims> dims{SymDims{n, 2 * m + 1}, SymDims{floor_div(n - 9, 4), modulo(m - 20, 3)},
                                  SymDims{max_size(n, m), ceil_div(m, 16)}};
  Artifact artifact = value_or_throw(make_artifact(kernel, dims, unlimited(EP_DIALECT_C)));
  artifact.dims.push_back({value_or_throw(Program::parse("p1 40 sub 16 ceil_div"))});
  KernelText text;
  text.entry = "softmax_infer_shape";
  text.text = infer_shape_c(artifact);
  const Compiled compiled(text);
  ASSERT_TRUE(compiled.ok());
  const auto infer_shape = compiled.symbol<int(const int64_t*, int64_t*)>();
  for (int64_t i = 0; i < 50; ++i) {
    const std::vector<int64_t> sizes{i, 1 + 7 * i};
    std::vector<int64_t> out(7, -77);
    EXPECT_EQ(infer_shape(sizes.data(), out.data()), 0);
    size_t at = 0;
    for (const std::vector<Program>& output : artifact.dims) {
      for (const Program& size : output) EXPECT_EQ(out[at++], run(size, sizes)) << size.text();
    }
  }
}

}  // namespace
}  // namespace tenon::codegen
