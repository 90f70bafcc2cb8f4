// Runs programs of tiny ops and nothing else, so that callgrind can count: bench_segment_instructions OP N. OP is
// segment_node, for N nodes in runs of 1,000, or segment_run, for N runs of one node. tests/e2e/instructions.py
// compares the counts with instructions.txt.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "benchmarks/dispatch/tiny_chain.h"
#include "benchmarks/report/keep.h"

// callgrind counts only in this function.
extern "C" [[gnu::noinline]] void tenon_counted(const std::function<void()>& op, long n) {
  for (long i = 0; i < n; ++i) op();
}

int main(int argc, char** argv) {
  const std::string op = argc == 3 ? argv[1] : "";
  if (op != "segment_node" && op != "segment_run") {
    std::fprintf(stderr, "usage: bench_segment_instructions OP N, where OP is segment_node or segment_run\n");
    return 2;
  }
  const long nodes = op == "segment_node" ? 1000 : 1;  // per run
  const tenon::bench::TinyChain chain(nodes);
  tenon_counted([&] { tenon::bench::keep(chain.run()); }, std::atol(argv[2]) / nodes);
  return 0;
}
