// The cost of a launch in a program: a chain of tiny ops on four floats as one program, against the same ops called
// eagerly; and the cost of a run of one op.
#include <string>

#include "benchmarks/dispatch/tiny_chain.h"
#include "benchmarks/report/keep.h"
#include "benchmarks/report/report.h"

namespace {

constexpr int64_t kLength = 1000;
constexpr double kMostNsPerNode = 35;
constexpr double kMostNsPerRun = 500;

}  // namespace

int main(int argc, char** argv) {
  using tenon::bench::keep;
  const tenon::bench::TinyChain chain(kLength), one(1);
  const auto check = [&]() -> std::string {
    if (chain.run().to_host<float>() != chain.run_eagerly().to_host<float>()) return "the chain is wrong";
    return one.run().to_host<float>() == one.run_eagerly().to_host<float>() ? "" : "the single op is wrong";
  };
  const auto nodes = [&](int64_t n) {
    for (int64_t i = 0; i < n; i += kLength) keep(chain.run());
  };
  const auto eager_nodes = [&](int64_t n) {
    for (int64_t i = 0; i < n; i += kLength) keep(chain.run_eagerly());
  };
  const auto runs = [&](int64_t n) {
    for (int64_t i = 0; i < n; ++i) keep(one.run());
  };
  const auto eager_runs = [&](int64_t n) {
    for (int64_t i = 0; i < n; ++i) keep(one.run_eagerly());
  };
  tenon::bench::Row node{"node of a chain of 1,000, 4 floats", {"program", nodes}, {{"eager", eager_nodes}}, 0, check};
  node.most_ns = kMostNsPerNode;
  tenon::bench::Row run{"run of one op, 4 floats", {"program", runs}, {{"eager", eager_runs}}, 0, check};
  run.most_ns = kMostNsPerRun;
  return tenon::bench::run({node, run}, argc, argv);
}
