// A program of several ranks in which one misbehaves. Each rank prints the error that it got, and the test compares.
//   trouble silent FOLDER    the last rank misses an exchange
//   trouble differs FOLDER   the last rank makes another call
//   trouble compiled FOLDER  the last rank runs another compiled function
//   trouble gone FOLDER      the last rank ends in the middle
//   trouble ahead FOLDER     it ends while exchanges of backward are under way
//   trouble gives FOLDER     it ends while the first rank sends values to it and receives none
//   trouble leaves FOLDER    every rank ends while one of its threads waits for another rank
// A rank ends only when all ranks have printed, because a launcher ends all ranks when one fails. Each rank signals
// this by a file in FOLDER.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/compile/compile.h"
#include "core/global/communicator.h"
#include "core/global/global.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace {

using namespace tenon;
using namespace tenon::global;

// Prints one whole line at once, because the ranks share the output.
void say(const Communicator& ranks, const Status& status) {
  const std::string text = fmt::format("rank {}: {}\n", ranks.rank(), status.ok() ? "ok" : status.message());
  static_cast<void>(!write(STDOUT_FILENO, text.data(), text.size()));
}

void wait_for_others(const Communicator& ranks, int32_t expected, const std::filesystem::path& folder) {
  std::ofstream(folder / std::to_string(ranks.rank())).put('\n');
  for (int round = 0; round < 2000; ++round) {
    int32_t there = 0;
    while (there < expected && std::filesystem::exists(folder / std::to_string(there))) ++there;
    if (there == expected) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Runs compiled functions of a global tensor. The last rank uses another function at the end.
Status run_compiled(bool is_last) {
  const Placement all = Placement::all("cpu");
  const auto sum = compile([](const Tensor& x) { return to_global(x, {Sbp::broadcast()}); });
  const auto part = compile([](const Tensor& x) { return relu(x); });  // runs on each rank's part
  const Tensor x = to_global(tenon::ones({1000}), all, {Sbp::partial()});
  try {
    for (int i = 0; i < 3; ++i) sum(x), part(x);
    is_last ? part(x) : sum(x);
  } catch (const Error& error) {
    const std::string_view text = error.status().message();
    return Status(error.code(), std::string(text.substr(0, text.find('\n'))));
  }
  return {};
}

// Trains. The last rank ends before the third backward; all its reductions are then pending on the other ranks.
Status run_ahead(bool is_last) {
  const Placement all = Placement::all("cpu");
  const auto spread = [&](double value, Sbp sbp) {
    return to_global(to_global(full({300, 300}, value, DType::f32, Device::host()), all, {Sbp::broadcast()}), {sbp});
  };
  const Tensor x = spread(0.01, Sbp::split(0));
  const Tensor first = spread(0.1, Sbp::broadcast()).detach().requires_grad_();
  const Tensor second = spread(0.2, Sbp::broadcast()).detach().requires_grad_();
  for (int step = 0;; ++step) {
    const Tensor loss = sum(matmul(matmul(x, first), second));
    if (is_last && step == 2) _exit(0);
    loss.backward();
    try {
      for (const Tensor& each : {first, second}) {
        static_cast<void>(to_local(to_global(each.grad(), {Sbp::broadcast()})).data());
        each.set_grad({});
      }
    } catch (const Error& error) {
      const std::string_view text = error.status().message();
      return Status(error.code(), std::string(text.substr(0, text.find('\n'))));
    }
  }
}

// Sends values to the next stage of a pipeline, the last rank, which ends after the third value.
Status run_giving(bool is_last) {
  const Placement first("cpu", {0}), last("cpu", {world_size() - 1});
  const Tensor x = to_global(full({1000}, 1.0, DType::f32, Device::host()), first, {Sbp::broadcast()});
  try {
    for (int i = 0; rank() == 0 || i < 3; ++i) {
      const Tensor there = to_local(to_global(x, last, {Sbp::broadcast()}));
      if (there.defined()) static_cast<void>(there.data());
      if (rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  } catch (const Error& error) {
    const std::string_view text = error.status().message();
    return Status(error.code(), std::string(text.substr(0, text.find('\n'))));
  }
  if (is_last) _exit(0);
  return {};
}

int run(const std::string& what, const std::string& folder) {
  const Result<std::shared_ptr<Communicator>> world = Communicator::world();
  if (!world.ok()) {
    std::fprintf(stderr, "%s\n", world.status().message().c_str());
    return 1;
  }
  Communicator& ranks = *world.value();
  const bool is_last = ranks.rank() == ranks.size() - 1;
  static std::vector<float> values(1000, 1.0F);  // an abandoned exchange may still write them
  say(ranks, ranks.all_reduce(values.data(), values.data(), 1000, DType::f32, Reduction::sum, "first"));
  if (what == "leaves") {
    static auto* got = new float(0);  // the thread outlives main
    std::thread([&ranks] {
      say(ranks, ranks.receive(got, 1, DType::f32, (ranks.rank() + 1) % ranks.size()));
    }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return 0;
  }
  if (what == "compiled") {
    say(ranks, run_compiled(is_last));
    wait_for_others(ranks, ranks.size(), folder);
    return 0;
  }
  if (what == "ahead") {
    say(ranks, run_ahead(is_last));
    wait_for_others(ranks, ranks.size() - 1, folder);
    return 0;
  }
  if (what == "gives") {
    say(ranks, run_giving(is_last));
    wait_for_others(ranks, ranks.size() - 1, folder);
    return 0;
  }
  if (is_last && what == "silent") std::this_thread::sleep_for(std::chrono::seconds(4));
  if (is_last && what == "gone") _exit(0);
  if (is_last && what == "differs") {
    say(ranks, ranks.broadcast(values.data(), 500, DType::f32, 0, "other"));
  } else {
    say(ranks, ranks.all_reduce(values.data(), values.data(), 1000, DType::f32, Reduction::sum, "second"));
  }
  say(ranks, ranks.barrier());  // the communicator is broken, so the same error is returned at once
  wait_for_others(ranks, what == "gone" ? ranks.size() - 1 : ranks.size(), folder);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return argc == 3 ? run(argv[1], argv[2]) : 2; }
