// A program that uses MPI itself, together with Tenon. Both see the same communicator of all ranks, whichever of them
// initialises MPI, and their messages do not mix.
//   beside_mpi first    the program initialises MPI, before Tenon is used, and ends it
//   beside_mpi second   Tenon does both
#include <mpi.h>

#include <cstdio>
#include <cstring>

#include "core/global/communicator.h"

namespace {

using namespace tenon;
using namespace tenon::global;

int fail(const char* what, double got, double wanted) {
  std::fprintf(stderr, "%s is %g and must be %g\n", what, got, wanted);
  return 1;
}

int run(bool first) {
  int level = 0, ended = 0;
  if (first) MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  const Result<std::shared_ptr<Communicator>> world = Communicator::world();
  if (!world.ok()) {
    std::fprintf(stderr, "%s\n", world.status().message().c_str());
    return 1;
  }
  Communicator& ranks = *world.value();
  int rank = -1, size = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank != ranks.rank() || size != ranks.size()) return fail("the rank of MPI", rank, ranks.rank());
  const double wanted = size * (size + 1) / 2.0;
  for (int round = 0; round < 100; ++round) {
    double own = rank + 1, theirs = 0, ours = 0;
    MPI_Request request{};
    MPI_Iallreduce(&own, &theirs, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    const Status reduced = ranks.all_reduce(&own, &ours, 1, DType::f64, Reduction::sum);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (!reduced.ok()) std::fprintf(stderr, "%s\n", reduced.message().c_str());
    if (ours != wanted) return fail("our sum", ours, wanted);
    if (theirs != wanted) return fail("the sum of MPI", theirs, wanted);
  }
  MPI_Finalized(&ended);
  if (first && ended == 0) MPI_Finalize();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return argc == 2 ? run(std::strcmp(argv[1], "first") == 0) : 2; }
