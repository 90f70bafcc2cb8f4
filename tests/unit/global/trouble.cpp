// A program of several ranks in which one does wrong. Each rank prints what it was told, and the test compares.
//   trouble silent    the last rank does not come to an exchange
//   trouble differs   the last rank makes another call
//   trouble gone      the last rank ends in the middle
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "core/global/communicator.h"

namespace {

using namespace tenon;
using namespace tenon::global;

// Prints one whole line, since the ranks share the output.
void say(const Communicator& ranks, const Status& status) {
  std::string text = "rank " + std::to_string(ranks.rank()) + ": " + (status.ok() ? "ok" : status.message()) + "\n";
  static_cast<void>(!write(STDOUT_FILENO, text.data(), text.size()));
}

int run(const std::string& what) {
  const Result<std::shared_ptr<Communicator>> world = Communicator::world();
  if (!world.ok()) {
    std::fprintf(stderr, "%s\n", world.status().message().c_str());
    return 1;
  }
  Communicator& ranks = *world.value();
  const bool is_last = ranks.rank() == ranks.size() - 1;
  static std::vector<float> values(1000, 1.0F);  // an exchange that was given up may still write them
  say(ranks, ranks.all_reduce(values.data(), values.data(), 1000, DType::f32, Reduction::sum, "first"));
  if (is_last && what == "silent") std::this_thread::sleep_for(std::chrono::seconds(4));
  if (is_last && what == "gone") _exit(0);
  if (is_last && what == "differs") {
    say(ranks, ranks.broadcast(values.data(), 500, DType::f32, 0, "other"));
  } else {
    say(ranks, ranks.all_reduce(values.data(), values.data(), 1000, DType::f32, Reduction::sum, "second"));
  }
  say(ranks, ranks.barrier());  // the communicator is broken: at once the same error
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return argc == 2 ? run(argv[1]) : 2; }
