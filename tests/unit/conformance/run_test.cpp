// Child processes, with tests that do forbidden things.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "primitives/text/format.h"
#include "sdk/conformance/jobs.h"
#include "sdk/conformance/running.h"
#include "sdk/conformance/test.h"
#include "sdk/conformance/verdict.h"

namespace tenon::conformance {
namespace {

// The findings of `tests`, in order.
std::vector<Finding> run(const std::vector<conformance::Test>& tests, double time_limit = 10) {
  std::vector<Finding> findings;
  std::vector<size_t> order;
  run_in_children(tests, time_limit, [&](size_t number, const Finding& finding) {
    order.push_back(number);
    findings.push_back(finding);
  });
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
  EXPECT_EQ(findings.size(), tests.size());
  return findings;
}

conformance::Test make(const char* name, std::function<Status()> body, bool shares = false) {
  return {name, "E01", "", std::move(body), shares};
}

TEST(Run, TellsEachOutcomeFromTheOthers) {
  const std::vector<Finding> findings =
      run({make("passes", [] { return Status(); }), make("fails", [] { return broken("S04", "it came too early"); }),
           make("fails_without_rule", [] { return Status(Code::busy, "it was busy."); }),
           make("is_skipped", [] { return skipped("it has no events."); }),
           make("crashes",
                [] {
                  std::raise(SIGKILL);
                  return Status();
                }),
           make("exits", []() -> Status { _exit(3); })});
  ASSERT_EQ(findings.size(), 6u);
  EXPECT_EQ(findings[0].outcome, Outcome::passed);
  EXPECT_EQ(findings[1].sentence, "it came too early (rule S04).");
  EXPECT_EQ(findings[1].rule, "S04");
  EXPECT_EQ(findings[2].outcome, Outcome::failed);
  EXPECT_EQ(findings[2].rule, "E01") << "the rule of the test, where the sentence names none";
  EXPECT_EQ(findings[3].outcome, Outcome::skipped);
  EXPECT_EQ(findings[3].sentence, "it has no events.");
  EXPECT_EQ(findings[4].outcome, Outcome::crashed);
  EXPECT_NE(findings[4].sentence.find("signal 9"), std::string::npos) << findings[4].sentence;
  EXPECT_EQ(findings[5].outcome, Outcome::crashed);
  EXPECT_NE(findings[5].sentence.find("exit code 3"), std::string::npos) << findings[5].sentence;
}

TEST(Run, ADeadChildTellsWhatItWasDoing) {
  const std::vector<Finding> findings = run({make("crashes",
                                                  [] {
                                                    note_descriptor("matmul : dst f32[2,2]{2,1}");
                                                    note_call("primitive_launch");
                                                    std::raise(SIGKILL);
                                                    return Status();
                                                  }),
                                             make("hangs",
                                                  []() -> Status {
                                                    note_call("event_host_wait");
                                                    for (;;) pause();
                                                  })},
                                            1);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].sentence,
            "its process died of signal 9 (Killed), the last call was primitive_launch (rule X01).\n"
            "  the last descriptor was matmul : dst f32[2,2]{2,1}");
  EXPECT_EQ(findings[1].sentence, "it made no new call for 1 s, the last call was event_host_wait (rule X02).")
      << "nothing of the test before it";
}

TEST(Run, AFailureNamesOneRule) {
  const Status inner = broken("P14", "element 3 differs").with_context("  in place");
  const Status outer = broken("S01", "launch 2 was disturbed: {}", without_rule(inner).message());
  EXPECT_EQ(outer.message(), "launch 2 was disturbed: element 3 differs (rule S01).\n  in place");
  EXPECT_EQ(status_text(EP_STATUS_UNSUPPORTED), "'unsupported'");
  EXPECT_EQ(status_text(77), "77");
}

TEST(Run, WhatIsNotClaimedIsSkippedAndSaysSo) {
  const std::vector<Finding> findings = run({make("unclaimed", [] { return not_claimed("unsupported: no f16."); }),
                                             make("skipped", [] { return skipped("it has no events."); })});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].outcome, Outcome::skipped);
  EXPECT_TRUE(findings[0].not_claimed);
  EXPECT_FALSE(findings[1].not_claimed);
}

TEST(Run, EndsWhatHangsAndGoesOn) {
  const std::vector<Finding> findings = run({make("hangs",
                                                  []() -> Status {
                                                    for (;;) pause();
                                                  }),
                                             make("passes", [] { return Status(); })},
                                            2);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].outcome, Outcome::hung);
  EXPECT_NE(findings[0].sentence.find("(rule X02)"), std::string::npos);
  EXPECT_EQ(findings[1].outcome, Outcome::passed);
}

TEST(Run, ATestThatMakesCallsIsNotHung) {
  const std::vector<Finding> findings = run({make("calls",
                                                  [] {
                                                    for (int i = 0; i < 5; ++i) {
                                                      note_call("primitive_launch");
                                                      usleep(400'000);
                                                    }
                                                    return Status();
                                                  })},
                                            1);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].outcome, Outcome::passed) << findings[0].sentence;
}

TEST(Run, ACrashAmongThoseThatShareCostsItselfAlone) {
  std::vector<conformance::Test> tests;
  for (int i = 0; i < 5; ++i) {
    tests.push_back(make(
        "one",
        [i]() -> Status {
          if (i == 2) std::raise(SIGKILL);
          return i == 3 ? broken("P14", "a wrong number") : Status();
        },
        true));
  }
  const std::vector<Finding> findings = run(tests);
  ASSERT_EQ(findings.size(), 5u);
  const Outcome expected[] = {Outcome::passed, Outcome::passed, Outcome::crashed, Outcome::failed, Outcome::passed};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(findings[i].outcome, expected[i]) << i;
}

TEST(Run, ACrashThatNeedsTheTestsBeforeItSaysSo) {
  static int calls = 0;
  std::vector<conformance::Test> tests;
  for (int i = 0; i < 3; ++i) {
    tests.push_back(make(
        "one",
        [] {
          if (++calls == 2) std::raise(SIGKILL);
          return Status();
        },
        true));
  }
  const std::vector<Finding> findings = run(tests);
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[1].outcome, Outcome::crashed);
  EXPECT_NE(findings[1].sentence.find("alone it does not"), std::string::npos) << findings[1].sentence;
  EXPECT_EQ(findings[2].outcome, Outcome::passed);
}

TEST(Run, ATestThatEndsItsProcessCostsItselfAloneAndKeepsItsFinding) {
  std::vector<conformance::Test> tests;
  for (int i = 0; i < 4; ++i) {
    tests.push_back(make(
        "one",
        [i]() -> Status {
          if (i == 1) end_process(broken("S03", "a wait failed"));
          return Status();
        },
        true));
  }
  tests.push_back(make("alone", []() -> Status { end_process(Status(Code::busy, "it was busy.")); }));
  const std::vector<Finding> findings = run(tests);
  ASSERT_EQ(findings.size(), 5u);
  for (size_t i : {0, 2, 3}) EXPECT_EQ(findings[i].outcome, Outcome::passed) << i;
  EXPECT_EQ(findings[1].outcome, Outcome::failed);
  EXPECT_EQ(findings[1].sentence, "a wait failed (rule S03).");
  EXPECT_EQ(findings[4].sentence, "it was busy (rule E01).") << "the rule of the test, where the sentence names none";
}

// The tests of the two lists below. Some share a process; one of them crashes, and one ends the process.
std::vector<conformance::Test> mixed() {
  std::vector<conformance::Test> tests = {make("alone", [] { return Status(); }),
                                          make("fails", [] { return broken("S04", "too early"); })};
  for (int i = 0; i < 20; ++i) {
    tests.push_back(make(
        "shares",
        [i]() -> Status {
          if (i == 7) std::raise(SIGKILL);
          if (i == 11) std::printf("eleven");
          return i == 13 ? skipped("it is the thirteenth.") : Status();
        },
        true));
  }
  tests.push_back(make(
      "closing", [] { return Status(); }, true));
  tests.back().closes_process = true;
  tests.push_back(make("last", [] { return Status(); }));
  return tests;
}

TEST(Jobs, GiveTheFindingsOfASingleJobInTheSameOrder) {
  const std::vector<conformance::Test> tests = mixed();
  const std::vector<Finding> one_by_one = run(tests);
  for (int jobs : {1, 2, 3, 40}) {
    std::vector<Finding> findings;
    std::vector<size_t> order;
    run_in_jobs(tests, 10, jobs, [&](size_t number, const Finding& finding) {
      order.push_back(number);
      findings.push_back(finding);
    });
    ASSERT_EQ(findings.size(), tests.size()) << jobs << " jobs";
    for (size_t i = 0; i < findings.size(); ++i) {
      EXPECT_EQ(order[i], i);
      EXPECT_EQ(findings[i].outcome, one_by_one[i].outcome) << i << " of " << jobs << " jobs";
      EXPECT_EQ(findings[i].output, one_by_one[i].output) << i;
    }
  }
}

TEST(Jobs, EveryProcessIsClosedAndABadClosingIsKept) {
  static int shared_runs = 0;  // runs in this process
  std::vector<conformance::Test> tests;
  for (int i = 0; i < 12; ++i) {
    tests.push_back(make(
        "shares",
        [i] {
          if (i == 2) ++shared_runs;
          return Status();
        },
        true));
  }
  tests.push_back(make(
      "closing", [] { return shared_runs == 0 ? Status() : broken("L01", "the process of the third test leaks"); },
      true));
  tests.back().closes_process = true;
  Finding closing;
  run_in_jobs(tests, 10, 2, [&](size_t number, const Finding& finding) {
    if (number == 12) closing = finding;
  });
  EXPECT_EQ(closing.outcome, Outcome::failed);
  EXPECT_EQ(closing.rule, "L01") << closing.sentence;
}

TEST(Run, WhatIsPrintedIsKeptWithItsTest) {
  const auto say = [](const char* text) {
    return make(
        "talks",
        [text] {
          std::printf("%s", text);
          return Status();
        },
        true);
  };
  const std::vector<Finding> findings = run({say("first"), say("second")});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].output, "first");
  EXPECT_EQ(findings[1].output, "second");
}

}  // namespace
}  // namespace tenon::conformance
