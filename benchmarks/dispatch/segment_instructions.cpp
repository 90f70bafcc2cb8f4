// Runs a segment of tiny ops N times and nothing else, so that callgrind can count:
// bench_segment_instructions OP N, where OP is segment_of_1000 or segment_of_1. A run makes its output and takes its
// block, as a run of a program does. tests/e2e/instructions.py compares the counts with instructions.txt.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "benchmarks/dispatch/tiny_chain.h"
#include "benchmarks/report/keep.h"

// callgrind counts in here and nowhere else.
extern "C" [[gnu::noinline]] void tenon_counted(const std::function<void()>& op, long n) {
  for (long i = 0; i < n; ++i) op();
}

int main(int argc, char** argv) {
  const std::string op = argc == 3 ? argv[1] : "";
  if (op != "segment_of_1000" && op != "segment_of_1") {
    std::fprintf(stderr, "usage: bench_segment_instructions OP N, where OP is segment_of_1000 or segment_of_1\n");
    return 2;
  }
  const tenon::bench::TinyChain chain(op == "segment_of_1" ? 1 : 1000);
  tenon_counted([&] { tenon::bench::keep(chain.run()); }, std::atol(argv[2]));
  return 0;
}
