// Runs recorded programs on the wrapped asynchronous fake, as segments and command lists, or in parts that the fake
// takes as whole graphs. The fake keeps blobs and reports times. In each round one call fails, is cancelled, or loses
// the device. The process continues, and the next run is right. See README.md.
//
//   fault_graphs [--rounds 300] [--seed 1] [--slot graph_compile] [--trouble cancel] [--tally FILE]
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/background/cancellation.h"
#include "core/device/trace.h"
#include "core/graph/execute/islands.h"
#include "core/graph/recorder.h"
#include "core/ops/ops.h"
#include "core/tensor/device.h"
#include "loader/loader.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"
#include "tests/e2e/faults/plan.h"
#include "tests/fakes/async/control.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::testing {
namespace {

constexpr int kTries = 6;
constexpr int kRuns = 8;  // runs of each program: plain runs and replays
constexpr int64_t kSide = 6;

uint64_t graph_runs = 0;

std::vector<float> random_floats(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> values(0.1f, 1.0f);
  std::vector<float> floats(kSide * kSide);
  for (float& value : floats) value = values(random);
  return floats;
}

Tensor apply(uint64_t which, const Tensor& a, const Tensor& b) {
  switch (which) {
    case 0: return relu(a);
    case 1: return mul(add(a, b), 0.5);
    case 2: return mul(matmul(a, b), 0.125);
    case 3: return softmax(a, -1);
    case 4: return sigmoid(a);
    default: return maximum(a, transpose(b, 0, 1));
  }
}

// Eight ops on two inputs, drawn from `seed`, recorded and run. Programs with odd seeds are scheduled; from the others
// the device takes islands.
std::vector<float> run_program(Device device, uint64_t seed) {
  const TensorList inputs = {Tensor::from<float>(random_floats(seed), {kSide, kSide}, device),
                             Tensor::from<float>(random_floats(~seed), {kSide, kSide}, device)};
  graph::Recorder recorder(device);
  graph::Executable program = [&] {
    const InterpreterScope scope(recorder);
    std::mt19937_64 random(seed);
    TensorList all;
    for (const Tensor& input : inputs) all.push_back(recorder.input(input.dtype(), input.dims()));
    for (int i = 0; i < 8; ++i) {
      const Tensor a = all[random() % all.size()], b = all[random() % all.size()];
      all.push_back(apply(random() % 6, a, b));
    }
    return graph::prepare(recorder.finish(TensorList{all[all.size() - 1], all[all.size() - 3]}),
                          {.whole_graphs = false, .scheduled = seed % 2 == 1});
  }();
  if (seed % 2 == 0) graph::take_islands(&program);
  std::vector<float> answer;
  for (int time = 0; time < kRuns; ++time) {
    ++graph_runs;
    for (const Tensor& output : graph::run(program, inputs)) {
      const std::vector<float> values = output.to_host<float>();
      answer.insert(answer.end(), values.begin(), values.end());
    }
  }
  return answer;
}

class Campaign {
 public:
  explicit Campaign(uint64_t seed)
      : plan_(
            {Slot::memory_allocate, Slot::stream_create, Slot::upload, Slot::download, Slot::event_create,
             Slot::event_record, Slot::event_query, Slot::event_host_wait, Slot::event_elapsed, Slot::primitive_support,
             Slot::primitive_create, Slot::primitive_launch, Slot::graph_capability, Slot::graph_compile,
             Slot::graph_launch, Slot::command_list_begin, Slot::command_list_end, Slot::command_list_replay},
            seed),
        seed_(seed) {
    fakes::async_control().shadow = false;
    fakes::async_control().memory = uint64_t{1} << 26;
    fakes::async_control().reference = fakes::async_control().graphs = fakes::async_control().blobs = true;
    faulty().wrap(fakes::async_query);
    faulty().forgetful = 3;
    loader::register_provider("faulty", fakes::faulty_query(0));
  }

  Plan& plan() { return plan_; }
  fakes::Faulty& faulty() { return fakes::faulty(0); }

  // One program with one fault, and the same program without it.
  std::string round(uint64_t number) {
    const Strike strike = plan_.next();
    const uint64_t seed = seed_ * 7919 + number % 40;
    const std::vector<float> wanted = run_program(Device("cpu"), seed);
    close();
    fakes::async_control().graph_seed = number % 3;
    fakes::async_control().delay_us = number % 4 == 0 ? 20 : 0;
    const bool traced = strike.slot == Slot::event_elapsed || number % 4 == 1;
    if (traced) trace_begin("/dev/null");
    faulty().arm(strike.slot, strike.trouble, strike.nth);
    std::string wrong = attempts(seed, wanted);
    plan_.done(strike, faulty().disarm(), faulty().calls_since());
    if (wrong.empty()) wrong = attempts(seed, wanted);
    if (traced && !trace_end().ok()) wrong += "the trace cannot be written";
    if (wrong.empty()) wrong = fakes::async_control().violation();
    if (wrong.empty()) return {};
    return fmt::format("round {}: {} call {}, {}: {}", number, loader::slot_name(strike.slot), strike.nth,
                       fakes::trouble_names[static_cast<size_t>(strike.trouble)], wrong);
  }

  // Checks that nothing of the provider is left.
  void close() {
    try {
      tenon::retire("faulty");
    } catch (const Error& error) {
      if (error.code() != Code::not_found) throw;
    }
    if (loader::provider_host_memory("faulty").bytes != 0 || fakes::async_control().allocated_bytes != 0) {
      throw std::runtime_error("memory is left after retiring");
    }
  }

 private:
  // Repeats the program until it succeeds. Each attempt can be cancelled separately.
  std::string attempts(uint64_t seed, const std::vector<float>& wanted) {
    std::string said;
    for (int i = 0; i < kTries; ++i) {
      const Cancellation stop;
      faulty().on_cancel([stop] { stop.cancel(); });
      const CancellationScope scope(stop);
      try {
        return compare(run_program(Device("faulty"), seed), wanted);
      } catch (const Error& error) {
        said = error.what();
        if (said.find("faulty:0") == std::string::npos) return "an error that does not name the device: " + said;
        if (said.find("ing ") == std::string::npos) return "an error that does not name what was done: " + said;
        if (error.code() == Code::device_lost) close();
      }
    }
    return "it does not go on: " + said;
  }

  static std::string compare(const std::vector<float>& got, const std::vector<float>& wanted) {
    if (got.size() != wanted.size()) return "another number of results";
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::abs(got[i] - wanted[i]) <= 1e-5f + 1e-4f * std::abs(wanted[i])) continue;
      return fmt::format("element {} is {} and should be {}", i, got[i], wanted[i]);
    }
    return {};
  }

  Plan plan_;
  uint64_t seed_;
};

int campaign(uint64_t rounds, uint64_t seed, const char* slot, const char* trouble, const std::string& tally) {
  const ScratchFolder folder;  // for the blobs
  setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  Campaign one(seed);
  one.plan().only(slot, trouble);
  one.plan().load(tally);
  for (uint64_t number = 0; number < rounds; ++number) {
    const std::string failure = one.round(number);
    if (failure.empty()) continue;
    std::printf("%s\n", failure.c_str());
    return 1;
  }
  one.close();
  one.plan().report("recorded programs on a wrapped device that takes graphs", one.faulty(), tally);
  std::printf("%llu runs of graphs\n", static_cast<unsigned long long>(graph_runs));
  std::printf("blobs: %llu asked for, %llu kept, %llu calls forgotten; %llu creates were cancelled\n",
              static_cast<unsigned long long>(one.faulty().blobs_asked),
              static_cast<unsigned long long>(one.faulty().blobs_kept),
              static_cast<unsigned long long>(one.faulty().blobs_forgotten),
              static_cast<unsigned long long>(fakes::async_control().cancelled_creates));
  return 0;
}

}  // namespace
}  // namespace tenon::testing

int main(int argc, char** argv) {
  uint64_t rounds = 300, seed = 1;
  const char *slot = "", *trouble = "", *tally = "";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--seed") == 0) seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--slot") == 0) slot = argv[i + 1];
    if (std::strcmp(argv[i], "--trouble") == 0) trouble = argv[i + 1];
    if (std::strcmp(argv[i], "--tally") == 0) tally = argv[i + 1];
  }
  try {
    return tenon::testing::campaign(rounds, seed, slot, trouble, tally);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
