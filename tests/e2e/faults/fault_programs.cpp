// Runs random programs on two asynchronous devices. One call of each program fails. See README.md.
#include <cstdlib>
#include <cstring>
#include <string>

#include "loader/loader.h"
#include "primitives/text/format.h"
#include "tests/e2e/faults/explanation.h"
#include "tests/e2e/faults/faulty_machine.h"
#include "tests/e2e/faults/plan.h"
#include "tests/e2e/faults/verdict.h"
#include "tests/unit/vm/performance.h"

namespace tenon::testing {
namespace {

class Campaign {
 public:
  explicit Campaign(uint64_t seed)
      : plan_({Slot::memory_allocate, Slot::stream_create, Slot::stream_synchronize, Slot::stream_flush,
               Slot::stream_take_fault, Slot::copy, Slot::upload, Slot::download, Slot::peer_open, Slot::peer_copy,
               Slot::event_create, Slot::event_record, Slot::event_query, Slot::event_host_wait,
               Slot::stream_wait_event, Slot::primitive_create, Slot::primitive_launch},
              seed),
        seed_(seed) {}

  Plan& plan() { return plan_; }
  fakes::Faulty& faulty() { return fakes::faulty(0); }

  // Runs one program with one fault, and sometimes one without.
  std::string round(uint64_t number) {
    verdict_.clear();
    fakes::async_control().delay_us = number % 4 == 0 ? 20 : 0;
    fakes::async_control().lazy = number % 5 == 0;
    const Program program = draw_program(seed_ * 1000003 + number);
    const Strike strike = plan_.next();
    prepare(strike, number);
    // The host synchronises a stream only if it cannot make an event.
    const bool led = strike.slot == Slot::stream_synchronize;
    faulty().arm(strike.slot, strike.trouble, led ? 0 : strike.nth,
                 led ? std::optional(Slot::event_record) : std::nullopt);
    const bool open = machine_.open_again();
    if (!open) verdict_.fail("the devices cannot be opened again");
    const Outcome outcome = open ? run(program) : Outcome();
    const int lost = open ? settle() : -1;
    plan_.done(strike, faulty().disarm(), faulty().calls_since());
    if (verdict_.text().empty()) {
      verdict_.fail(lost >= 0 ? explain_lost(program, outcome, lost) : explain(program, outcome));
    }
    if (verdict_.text().empty()) check_rest();
    if (lost >= 0) machine_.close();
    if (verdict_.text().empty() && number % 16 == 0) go_on(number);
    if (verdict_.text().empty()) return {};
    return fmt::format("round {}: {} call {}, {}: {}\n{}", number, loader::slot_name(strike.slot), strike.nth,
                       fakes::trouble_names[static_cast<size_t>(strike.trouble)], verdict_.text(), print(program));
  }

  // Checks that the devices hold nothing any more.
  std::string finish() {
    verdict_.clear();
    machine_.close();
    return verdict_.text();
  }

 private:
  // An error of a request that the program itself made must name the request and its op.
  Outcome run(const Program& program) {
    const auto judge = [this](Instruction::Kind, const Status& status) {
      if (status.message().find("mix: ") == std::string::npos) verdict_.check(status);
      return Status();
    };
    return perform(program, machine_, judge).outcome;
  }

  // Makes sure that the program will call the function.
  void prepare(const Strike& strike, uint64_t number) {
    const bool creates = strike.slot == Slot::stream_create || strike.slot == Slot::event_create ||
                         strike.slot == Slot::primitive_create || strike.slot == Slot::memory_allocate ||
                         strike.slot == Slot::peer_open;
    const bool direct = strike.slot == Slot::peer_open || strike.slot == Slot::peer_copy;
    if (creates || (direct && !fakes::async_control().peers)) {
      machine_.close();
      fakes::async_control().peers = direct || number % 2 == 0;
    }
    if (strike.slot == Slot::stream_flush) fakes::async_control().lazy = true;
  }

  // Waits for both devices. Returns the number of the lost one, or -1.
  int settle() {
    int lost = -1;
    for (int i = 0; i < kDevices; ++i) {
      for (Status status = vm::synchronize(machine_.device(i)); !status.ok();
           status = vm::synchronize(machine_.device(i))) {
        verdict_.check(status);
      }
      const Result<StorageHandle> made = machine_.AsyncMachine::allocate(i, 1);
      const bool works =
          made.ok() && machine_.upload(made.value().get(), 0, {7}).ok() && machine_.download(made.value().get()).ok();
      if (!works) lost = i;
    }
    return lost;
  }

  void check_rest() {
    for (int i = 0; i < kDevices; ++i) {
      const uint64_t live = machine_.device(i)->allocator->stats().live;
      if (live != 0) verdict_.fail(fmt::format("{} bytes leaked", live));
    }
    if (const std::string wrong = machine_.violation(); !wrong.empty()) verdict_.fail(wrong);
  }

  void go_on(uint64_t number) {
    if (!machine_.open_again()) return verdict_.fail("the devices cannot be opened after the fault");
    const Program program = draw_program(~(seed_ * 1000003 + number));
    const Outcome outcome = run(program);
    settle();
    if (outcome != replay(program)) verdict_.fail("the next program, without a fault, is not as its replay");
  }

  Plan plan_;
  Verdict verdict_;
  FaultyMachine machine_{verdict_};
  uint64_t seed_;
};

int campaign(uint64_t rounds, uint64_t seed, const char* slot, const char* trouble, const std::string& tally) {
  fakes::async_control().shadow = false;
  fakes::faulty(0).wrap(fakes::async_query);
  loader::register_provider("faulty", fakes::faulty_query(0));
  Campaign one(seed);
  one.plan().only(slot, trouble);
  one.plan().load(tally);
  for (uint64_t number = 0; number < rounds; ++number) {
    const std::string failure = one.round(number);
    if (failure.empty()) continue;
    std::printf("%s\n", failure.c_str());
    return 1;
  }
  if (const std::string left = one.finish(); !left.empty()) {
    std::printf("%s\n", left.c_str());
    return 1;
  }
  one.plan().report("random programs on wrapped asynchronous devices", one.faulty(), tally);
  return 0;
}

}  // namespace
}  // namespace tenon::testing

int main(int argc, char** argv) {
  uint64_t rounds = 2000, seed = 1;
  const char *slot = "", *trouble = "", *tally = "";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--seed") == 0) seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--slot") == 0) slot = argv[i + 1];
    if (std::strcmp(argv[i], "--trouble") == 0) trouble = argv[i + 1];
    if (std::strcmp(argv[i], "--tally") == 0) tally = argv[i + 1];
  }
  return tenon::testing::campaign(rounds, seed, slot, trouble, tally);
}
