// The time to plan a decoder in the shape of Llama 70B for 4,096 ranks, and its modelled step time compared with
// Megatron's layout (tensor parallel in a node, data parallel beyond) in the same model.
//
//   bench_plan [<layers>]     default: 80
//
// Each row: seconds of planning, modelled seconds of a step for both layouts, and their ratio.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "primitives/text/format.h"
#include "tests/unit/cluster/programs.h"

int main(int argc, char** argv) {
  using namespace tenon::cluster;
  const Decoder sizes{.layers = argc > 1 ? std::atoi(argv[1]) : 80};
  const Topology topology = parse_topology(kBigCluster);
  const int64_t ranks = topology.ranks();
  for (const bool train : {false, true}) {
    const auto begin = std::chrono::steady_clock::now();
    const Program program = decoder_program(sizes, train);
    const Plan plan = make_plan(program, topology, ranks);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    PlanOptions options;
    options.grids = {{ranks / 8, 8}};
    options.given = megatron(program, sizes, train);
    const Plan theirs = make_plan(program, topology, ranks, options);
    const Forecast own = forecast(program, plan, topology), other = forecast(program, theirs, topology);
    const std::string row = fmt::format(
        "{} {} calls, grid {}: planned in {:.1f} s; a step {:.4f} s ({}), Megatron's {:.4f} s ({}), ratio {:.3f}\n",
        train ? "training" : "forward", program.calls().size(), plan.grid, took, own.seconds(),
        plan.fits ? "fits" : "does not fit", other.seconds(), theirs.fits ? "fits" : "does not fit",
        own.seconds() / other.seconds());
    std::fputs(row.c_str(), stdout);
    std::fflush(stdout);
  }
  return 0;
}
