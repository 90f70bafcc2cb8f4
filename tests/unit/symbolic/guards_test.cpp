// Random questions to an arena, over every combination of sizes.
#include <gtest/gtest.h>

#include "core/symbolic/values.h"
#include "random_size.h"

namespace tenon::symbolic {
namespace {

constexpr int64_t kMost = 7;  // the sizes of the symbols range from 0 to this
constexpr size_t kSymbols = 3;

struct Question {
  Relation relation;
  std::shared_ptr<const Tree> a, b;
  bool answer;
};

// A program with sizes `hints` that asks random questions.
struct Program {
  explicit Program(uint64_t seed) : random(seed) {
    const ArenaScope scope(arena);
    for (int64_t& hint : hints) {
      hint = 2 + static_cast<int64_t>(random() % static_cast<uint64_t>(kMost - 1));
      (void)arena.symbol({.source = "", .range = {0, kMost}, .hint = hint});
    }
    for (int i = 0; i < 6; ++i) ask();
  }

  void ask() {
    const auto a = random_tree(random, 3, kSymbols);
    const auto b = random_tree(random, 2, kSymbols);
    const auto relation = static_cast<Relation>(random() % 4);
    try {
      const Condition condition{relation, size_of(*a, arena), size_of(*b, arena)};
      const auto expected = holds(relation, *a, *b, hints);
      if (!expected) return;
      const bool answer = arena.decide(condition);
      EXPECT_EQ(answer, *expected) << arena.text() << arena.text(condition);
      questions.push_back({relation, a, b, answer});
    } catch (const Error&) {
    }
  }

  // Calls `visit` for all sizes of the symbols.
  template <class Visit>
  static void every_size(const Visit& visit) {
    for (int64_t i = 0; i < (kMost + 1) * (kMost + 1) * (kMost + 1); ++i) {
      const int64_t symbols[kSymbols] = {i % (kMost + 1), i / (kMost + 1) % (kMost + 1), i / (kMost + 1) / (kMost + 1)};
      visit(symbols);
    }
  }

  // True if all questions have the same answers at these sizes; nothing if one of them has no answer.
  std::optional<bool> same_answers(std::span<const int64_t> symbols) const {
    bool same = true;
    for (const Question& question : questions) {
      const auto answer = holds(question.relation, *question.a, *question.b, symbols);
      if (!answer) return std::nullopt;
      same = same && *answer == question.answer;
    }
    return same;
  }

  std::mt19937_64 random;
  Arena arena{"program"};
  int64_t hints[kSymbols];
  std::vector<Question> questions;
};

Values bound(const Arena& arena, std::span<const int64_t> symbols) {
  Values values(arena);
  for (uint32_t i = 0; i < symbols.size(); ++i) EXPECT_TRUE(values.bind(i, symbols[i]).ok());
  return values;
}

TEST(Guards, HoldExactlyWhereAllQuestionsHaveTheSameAnswers) {
  int asked = 0, guards = 0, inside = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Program program(seed);
    asked += static_cast<int>(program.questions.size());
    guards += static_cast<int>(program.arena.constraints().size());
    Program::every_size([&](std::span<const int64_t> symbols) {
      const auto same = program.same_answers(symbols);
      if (!same) return;
      Values values = bound(program.arena, symbols);
      ASSERT_EQ(values.broken_guard() == nullptr, *same)
          << program.arena.text() << "at " << symbols[0] << ", " << symbols[1] << ", " << symbols[2];
      inside += *same;
    });
    if (testing::Test::HasFailure()) break;
  }
  std::printf("%d questions, %d guards, %d sizes at which they hold\n", asked, guards, inside);
  EXPECT_GT(asked, 1300);
  EXPECT_LT(guards, asked);
}

TEST(Guards, LeaveEverySizeItsValueItsBoundsAndItsDivisor) {
  int compared = 0;
  for (uint64_t seed = 1000; seed < 1200; ++seed) {
    Program program(seed);
    Arena& arena = program.arena;
    const ArenaScope scope(arena);
    std::vector<std::shared_ptr<const Tree>> trees;
    std::vector<SymDim> sizes;
    for (int i = 0; i < 8; ++i) {
      const auto tree = random_tree(program.random, 4, kSymbols);
      try {
        sizes.push_back(arena.resolve(size_of(*tree, arena)));
        trees.push_back(tree);
      } catch (const Error&) {
      }
    }
    Program::every_size([&](std::span<const int64_t> symbols) {
      if (program.same_answers(symbols) != true) return;
      Values values = bound(arena, symbols);
      for (size_t i = 0; i < sizes.size(); ++i) {
        const auto expected = value_of(*trees[i], symbols);
        if (!expected) continue;
        const Result<int64_t> value = values.of(sizes[i]);
        ASSERT_TRUE(value.ok()) << value.status().message();
        ASSERT_EQ(value.value(), *expected) << arena.text(sizes[i]) << "\n" << arena.text();
        ASSERT_TRUE(arena.range(sizes[i]).holds(*expected)) << arena.text(sizes[i]) << "\n" << arena.text();
        const int64_t divisor = arena.divisor(sizes[i]);
        ASSERT_TRUE(divisor == 0 ? *expected == 0 : *expected % divisor == 0) << arena.text(sizes[i]);
        ++compared;
      }
    });
    if (testing::Test::HasFailure()) break;
  }
  std::printf("%d values compared\n", compared);
  EXPECT_GT(compared, 50000);
}

TEST(Guards, AnswerWithoutAHintOnlyWhatHoldsAtEverySize) {
  int known = 0, open = 0;
  for (uint64_t seed = 2000; seed < 2200; ++seed) {
    Program program(seed);
    Arena& arena = program.arena;
    const ArenaScope scope(arena);
    for (int i = 0; i < 20; ++i) {
      const auto a = random_tree(program.random, 3, kSymbols);
      const auto b = random_tree(program.random, 2, kSymbols);
      const auto relation = static_cast<Relation>(program.random() % 5);
      std::optional<bool> answer;
      try {
        answer = arena.known({relation, size_of(*a, arena), size_of(*b, arena)});
      } catch (const Error&) {
        continue;
      }
      (answer ? known : open) += 1;
      if (!answer) continue;
      Program::every_size([&](std::span<const int64_t> symbols) {
        if (program.same_answers(symbols) != true) return;
        const auto expected = holds(relation, *a, *b, symbols);
        if (!expected) return;
        ASSERT_EQ(*answer, *expected) << arena.text({relation, size_of(*a, arena), size_of(*b, arena)}) << "\n"
                                      << arena.text();
      });
    }
    if (testing::Test::HasFailure()) break;
  }
  std::printf("%d questions known, %d open\n", known, open);
  EXPECT_GT(known, 250);
}

TEST(Guards, ReadBackFromTextAnswerAlike) {
  for (uint64_t seed = 3000; seed < 3200; ++seed) {
    const Program program(seed);
    const std::string text = program.arena.text();
    Result<Arena> back = parse_arena(text, "back");
    ASSERT_TRUE(back.ok()) << back.status().message() << "\n" << text;
    ASSERT_EQ(back.value().text(), text);
  }
}

}  // namespace
}  // namespace tenon::symbolic
