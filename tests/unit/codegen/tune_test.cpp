// Tuning: all tiles give the same bits, a search accepts only a clearly better candidate, and lines may be damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/codegen/artifact/artifact.h"
#include "core/codegen/loop/interpret.h"
#include "core/codegen/tactics/tactics.h"
#include "core/codegen/tune/candidates.h"
#include "core/codegen/tune/data_base.h"
#include "core/codegen/tune/line.h"
#include "core/codegen/tune/search.h"
#include "primitives/text/format.h"
#include "tests/unit/codegen/compiled.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::codegen {
namespace {

constexpr const char* kKernels[] = {
    // rows
    "kernel softmax\nsize n in [0, 65536]\naxis i n\naxis r 333\nin x f32 333*n\nout y f32 333*n\n"
    "m = max f32 at i over r: x[333*i + r]\n"
    "d = value f32 at i r: sub(x[333*i + r], m)\n"
    "e = value f32 at i r: exp(d)\n"
    "s = sum f32 at i over r: e\n"
    "u = store y[333*i + r] at i r: div(e, s)\n",
    // a flat loop
    "kernel flat\nsize n in [0, 65536]\naxis i n\nin x f32 n\nin z f32 n\nout y f32 n\n"
    "u = store y[i] at i: add(gelu(x[i]), z[i])\n",
    // columns, whose sums stay in registers
    "kernel columns\naxis i 70\naxis j 5000\nin x f32 350000\nout y f32 5000\n"
    "s = sum f32 at j over i: square(x[5000*i + j])\n"
    "u = store y[j] at j: sqrt(s)\n",
    // a transposition
    "kernel turn\naxis i 600\naxis j 700\nin x f32 420000\nout y f32 420000\n"
    "u = store y[700*i + j] at i j: add(x[600*j + i], 1:f32)\n",
};
const std::vector<std::vector<int64_t>> kSizes = {{9}, {10007}, {}, {}};

// The outputs of a text in C.
std::vector<std::vector<unsigned char>> results(const Kernel& plain, const Kernel& scheduled, const KernelText& text,
                                                const std::vector<int64_t>& sizes) {
  const Compiled compiled(text);
  Memory memory(plain, sizes, 3);
  if (compiled.ok()) compiled.run(memory.addresses(), sizes, value_or_throw(item_count(scheduled, sizes)), 3);
  std::vector<std::vector<unsigned char>> outputs;
  for (size_t i = 0; i < plain.buffers.size(); ++i) {
    if (plain.buffers[i].output) outputs.push_back(memory.bytes(i));
  }
  return outputs;
}

TEST(Tiles, OfEachCandidateGiveTheSameBits) {
  for (size_t k = 0; k < std::size(kKernels); ++k) {
    const Kernel plain = parsed(kKernels[k]);
    Kernel usual = plain;
    const KernelText text = value_or_throw(print_for(&usual, unlimited(EP_DIALECT_C)));
    const auto expected = results(plain, usual, text, kSizes[k]);
    std::vector<std::string> texts = {text.text};
    for (const Tiles& tiles : candidates(usual)) {
      Kernel tiled = plain;
      const Result<KernelText> other = print_for(&tiled, unlimited(EP_DIALECT_C), tiles);
      ASSERT_TRUE(other.ok()) << plain.name << ", " << tiles_text(tiles) << ": " << other.status().message();
      if (sums_text(tiled) != sums_text(usual)) continue;
      if (std::find(texts.begin(), texts.end(), other->text) != texts.end()) continue;
      texts.push_back(other->text);
      if (texts.size() <= 4) {
        EXPECT_EQ(results(plain, tiled, other.value(), kSizes[k]), expected) << plain.name << ", " << tiles_text(tiles);
      }
    }
    EXPECT_GT(texts.size(), 3u) << plain.name << " has other loops";
  }
}

TEST(Tiles, OfGroupsComputeTheSame) {
  for (size_t k = 0; k < 2; ++k) {
    const Kernel plain = parsed(kKernels[k]);
    Kernel usual = plain;
    ASSERT_TRUE(schedule_for_groups(&usual).ok());
    Memory expected(plain, kSizes[k], 3);
    ASSERT_TRUE(interpret(usual, kSizes[k], expected.addresses()).ok());
    size_t others = 0;
    for (const Tiles& tiles : candidates(usual)) {
      Kernel tiled = plain;
      const Status status = schedule_for_groups(&tiled, {}, tiles);
      ASSERT_TRUE(status.ok()) << tiles_text(tiles) << ": " << status.message();
      if (sums_text(tiled) != sums_text(usual) || to_string(tiled) == to_string(usual)) continue;
      ++others;
      Memory actual(plain, kSizes[k], 3);
      ASSERT_TRUE(interpret(tiled, kSizes[k], actual.addresses()).ok());
      expect_near(plain, expected, actual, 0, 0, tiles_text(tiles));
    }
    EXPECT_GE(others, 1u) << plain.name;
  }
}

TEST(Tiles, ThatWouldAddInAnotherOrderCountAsNone) {
  const Kernel plain = parsed(kKernels[0]);
  Kernel usual = plain, few = plain;
  ASSERT_TRUE(schedule_for_groups(&usual).ok());
  ASSERT_TRUE(schedule_for_groups(&few, {64, 16384}).ok());
  EXPECT_NE(sums_text(usual), sums_text(few)) << "fewer work-items add up in another order";
  for (const Tiles& tiles : candidates(usual)) {
    const Artifact artifact = value_or_throw(
        make_artifact(plain, {}, unlimited(EP_DIALECT_OPENCL_C), [&](const std::string&) { return tiles; }));
    const Kernel made = parsed(artifact.variants.back().schedule);
    EXPECT_EQ(sums_text(made), sums_text(usual)) << tiles_text(tiles);
    EXPECT_TRUE(artifact.variants.back().tiles == tiles || artifact.variants.back().tiles == Tiles());
  }
}

TEST(Tiles, OfOneVariantMakeNoOther) {
  const Kernel plain = parsed(
      "kernel sums\nsize n in [0, 4294967296]\naxis i n\naxis j 768\nin x f32 768*n\nout y f32 768\n"
      "s = sum f32 at j over i: square(x[768*i + j])\nu = store y[j] at j: s\n");
  const ep_dialect_info dialect = unlimited(EP_DIALECT_C);
  const Artifact usual = value_or_throw(make_artifact(plain, {}, dialect));
  Tiles tiles;
  tiles.column_block = 64;
  for (const Variant& variant : usual.variants) {
    const TilesOf one = [&](const std::string& name) { return name == variant.name ? tiles : Tiles(); };
    const Artifact artifact = value_or_throw(make_artifact(plain, {}, dialect, one));
    ASSERT_EQ(artifact.variants.size(), usual.variants.size());
    for (size_t i = 0; i < usual.variants.size(); ++i) {
      EXPECT_EQ(artifact.variants[i].name, usual.variants[i].name);
      EXPECT_TRUE(artifact.variants[i].tiles == one(usual.variants[i].name));
    }
  }
}

TEST(Tiles, HaveTheirDefaultsInTheirBounds) {
  for (const TileRow& row : tile_rows()) {
    EXPECT_GE(Tiles{}.*row.member, row.least) << row.name;
    EXPECT_LE(Tiles{}.*row.member, row.most) << row.name;
  }
  EXPECT_EQ(tiles_text({}), "default");
  Tiles tiles;
  tiles.unroll = 2;
  tiles.flat_block = 1024;
  EXPECT_EQ(tiles_text(tiles), "flat_block 1024, unroll 2");
}

// --- Search, with invented times.

Tiles with_unroll(int64_t unroll) {
  Tiles tiles;
  tiles.unroll = unroll;
  return tiles;
}
Tiles with_block(int64_t block) {
  Tiles tiles;
  tiles.flat_block = block;
  return tiles;
}

// Returns the seconds of a run of these tiles, given the number of their earlier runs.
using Times = std::function<double(const Tiles& tiles, size_t run)>;

struct Made {
  std::vector<std::pair<Tiles, size_t>> runs;  // indexed by tiles

  size_t& of(const Tiles& tiles) {
    for (auto& [known, count] : runs) {
      if (known == tiles) return count;
    }
    return runs.emplace_back(tiles, 0).second;
  }
};

class MadeUp final : public Trial {
 public:
  MadeUp(Made* made, const Times& times, const Tiles& tiles) : made_(*made), times_(times), tiles_(tiles) {}
  Result<Sample> run() override {
    const double seconds = times_(tiles_, made_.of(tiles_)++);
    if (seconds < 0) return Status(Code::device_lost, "The device is lost.");
    return Sample{seconds, seconds};
  }

 private:
  Made& made_;
  const Times& times_;
  const Tiles tiles_;
};

Result<Found> searched(const std::vector<Tiles>& all, const Times& times, Made* made, Budget budget = {}) {
  const Prepare prepare = [&](const Tiles& tiles) -> Result<std::unique_ptr<Trial>> {
    return std::unique_ptr<Trial>(std::make_unique<MadeUp>(made, times, tiles));
  };
  return search(all, prepare, budget);
}

TEST(Search, AcceptsWhatIsClearlyBetterAlone) {
  for (const auto& [part, accepted] : {std::pair{0.99, false}, {0.972, false}, {0.968, true}, {0.5, true}}) {
    Made made;
    const Times times = [part = part](const Tiles& tiles, size_t) {
      return tiles == with_unroll(2) ? 1e-3 * part : 1e-3;
    };
    const Found found = value_or_throw(searched({with_unroll(1), with_unroll(2), with_unroll(4)}, times, &made));
    EXPECT_EQ(found.better(), accepted) << part;
    EXPECT_TRUE(found.tiles == (accepted ? with_unroll(2) : Tiles())) << part;
    EXPECT_EQ(found.tried, 3u);
    EXPECT_DOUBLE_EQ(found.default_seconds, 1e-3);
    EXPECT_DOUBLE_EQ(found.best_seconds, accepted ? 1e-3 * part : 1e-3);
  }
}

TEST(Search, AsksAgainByTurnsBeforeItAccepts) {
  Made made;
  // Fast while it is tried, as if the machine had been busy before, and no faster afterwards.
  const Times times = [](const Tiles& tiles, size_t run) { return tiles == Tiles() || run > 12 ? 1e-3 : 0.5e-3; };
  EXPECT_FALSE(value_or_throw(searched({with_unroll(2)}, times, &made)).better());
  // Its minimum is good once, but its median is not.
  const Times once = [](const Tiles& tiles, size_t run) { return tiles == Tiles() || run % 13 != 0 ? 1e-3 : 0.5e-3; };
  EXPECT_FALSE(value_or_throw(searched({with_unroll(2)}, once, &made)).better());
}

TEST(Search, GivesUpWhatIsHopeless) {
  Made made;
  const Times times = [](const Tiles& tiles, size_t) { return tiles == with_unroll(1) ? 1.4e-3 : 1e-3; };
  ASSERT_TRUE(searched({with_unroll(1), with_unroll(2)}, times, &made).ok());
  EXPECT_EQ(made.of(with_unroll(1)), 3u) << "one to warm up, two to see";
  EXPECT_GE(made.of(with_unroll(2)), 12u);
}

TEST(Search, EndsWithItsBudget) {
  const Times times = [](const Tiles&, size_t) { return 10e-3; };
  std::vector<Tiles> many;
  for (int64_t block = 64; block < 164; ++block) many.push_back(with_block(block));
  Made made;
  const Found found = value_or_throw(searched(many, times, &made, {.seconds = 0.2, .candidates = 100}));
  EXPECT_GE(found.tried, 2u);
  EXPECT_LE(found.tried, 6u);
  double spent = 0;
  for (const auto& [tiles, runs] : made.runs) spent += 10e-3 * static_cast<double>(runs);
  EXPECT_LE(spent, 0.3);
  Made few;
  EXPECT_EQ(value_or_throw(searched(many, times, &few, {.seconds = 1e9, .candidates = 7})).tried, 7u);
}

TEST(Search, JoinsChangesThatHelpAlone) {
  Made made;
  const Times times = [](const Tiles& tiles, size_t) {
    return 1e-3 * (tiles.unroll == 2 ? 0.8 : 1) * (tiles.flat_block == 1024 ? 0.9 : 1);
  };
  const Found found = value_or_throw(searched({with_block(1024), with_unroll(2), with_unroll(1)}, times, &made));
  EXPECT_EQ(tiles_text(found.tiles), "flat_block 1024, unroll 2");
}

TEST(Search, EndsWhereATrialFails) {
  Made made;
  const Times times = [](const Tiles& tiles, size_t) { return tiles == with_unroll(2) ? -1 : 1e-3; };
  const Result<Found> found = searched({with_unroll(2)}, times, &made);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), Code::device_lost);
  // A candidate without a result is skipped.
  const Times quick = [](const Tiles&, size_t) { return 1e-3; };
  const Prepare none = [&](const Tiles& tiles) -> Result<std::unique_ptr<Trial>> {
    if (!(tiles == Tiles())) return std::unique_ptr<Trial>();
    return std::unique_ptr<Trial>(std::make_unique<MadeUp>(&made, quick, tiles));
  };
  const std::vector<Tiles> all = {with_unroll(2)};
  EXPECT_EQ(value_or_throw(search(all, none, {})).tried, 0u);
}

// --- The data base

TunedLine example() {
  TunedLine line;
  line.space = "size n in [0, 65536]\naxis i n\n\"quoted\" \\ and \x01";
  line.tiles = joined(with_unroll(2), with_block(1024));
  line.sizes = "16384 768";
  line.default_us = 812.5;
  line.best_us = 700.125;
  return line;
}

TEST(TunedLines, ComeBack) {
  const TunedLine line = example();
  const std::string text = line_of(line);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const std::optional<TunedLine> again = parse_line(text);
  ASSERT_TRUE(again.has_value()) << text;
  EXPECT_EQ(again->space, line.space);
  EXPECT_TRUE(again->tiles == line.tiles);
  EXPECT_EQ(again->sizes, line.sizes);
  EXPECT_EQ(line_of(*again), text);
}

TEST(TunedLines, ThatAreDamagedAreNone) {
  const std::string text = line_of(example());
  for (size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(parse_line(text.substr(0, size)).has_value()) << size;
  for (const char* wrong :
       {"", "{}", "null", "[]", "{\"space\": \"a\"}", "{\"tiles\": {}}", "{\"space\": 1, \"tiles\": {}}",
        "{\"space\": \"a\", \"tiles\": {\"unroll\": -1}}", "{\"space\": \"a\", \"tiles\": {\"unroll\": 17}}",
        "{\"space\": \"a\", \"tiles\": {\"unroll\": 1.5}}", "{\"space\": \"a\", \"tiles\": {\"unroll\": 1e300}}",
        "{\"space\": \"a\", \"tiles\": {\"unroll\": nan}}", "{\"space\": \"a\", \"tiles\": {\"flat_block\": 0}}",
        "{\"space\": \"a\", \"tiles\": {\"no such\": 1}}", "{\"space\": \"a\", \"tiles\": {}, \"other\": 1}",
        "{\"space\": \"a\", \"tiles\": {}} x", "{\"space\": \"a\\u00\", \"tiles\": {}}",
        "{\"space\": \"a\", \"tiles\": {}, \"best_us\": 1e999}"}) {
    EXPECT_FALSE(parse_line(wrong).has_value()) << wrong;
  }
  EXPECT_FALSE(parse_line(std::string(100000, '{')).has_value());
  EXPECT_TRUE(parse_line("{\"space\": \"a\", \"tiles\": {}}").has_value());
}

TEST(DataBase, KeepsWhatWasFoundForTheNextProcess) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/tune/cpu.jsonl";
  const TunedLine line = example();
  {
    DataBase base(path, "head");
    EXPECT_FALSE(base.find(line.space).has_value());
    EXPECT_TRUE(base.keep(line));
    EXPECT_TRUE(base.find(line.space).has_value());
  }
  std::ofstream(path, std::ios::app) << "damaged\n{\"space\": \"b\", \"tiles\": {\"unroll\": 99}}\n";
  TunedLine other = line;
  other.tiles = with_unroll(4);
  EXPECT_TRUE(DataBase(path, "head").keep(other));
  const DataBase again(path, "head");
  ASSERT_TRUE(again.find(line.space).has_value());
  EXPECT_TRUE(again.find(line.space)->tiles == other.tiles) << "the last line counts";
  EXPECT_FALSE(again.find("b").has_value());
  EXPECT_FALSE(DataBase(path, "another device").find(line.space).has_value());
  EXPECT_FALSE(DataBase("", "head").keep(line)) << "nowhere to keep it";
}

}  // namespace
}  // namespace tenon::codegen
