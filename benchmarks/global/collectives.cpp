// Exchanges of our communicator against direct MPI calls, alternating in one run.
//
//   mpirun -n 2 bench_collectives [<megabytes>...]     default: 1 4 16 64 256
//
// Each row: the median time of both sides, their ratio, and the bytes that a rank sends or receives per second. Rows in
// microseconds have 8 bytes and show the cost of an exchange beyond MPI's own.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "core/global/communicator.h"
#include "primitives/text/format.h"

namespace {

using namespace tenon;
using namespace tenon::global;
using Clock = std::chrono::steady_clock;

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// Seconds of one call on the slowest rank.
double seconds_of(const std::function<void()>& call, int times) {
  MPI_Barrier(MPI_COMM_WORLD);
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < times; ++i) call();
  double own = std::chrono::duration<double>(Clock::now() - begin).count() / times, slowest = 0;
  MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

void must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

struct Row {
  std::string name;
  std::function<void()> ours, theirs;
  double bytes;  // sent by one rank
};

void measure(const Communicator& ranks, const Row& row) {
  const int times = row.bytes < 1e5 ? 200 : 1;
  std::vector<double> ours, theirs, ratios;
  for (int round = 0; round < 15; ++round) {
    const bool ours_first = round % 2 == 0;
    const double first = seconds_of(ours_first ? row.ours : row.theirs, times);
    const double second = seconds_of(ours_first ? row.theirs : row.ours, times);
    if (round < 2) continue;  // warm-up
    ours.push_back(ours_first ? first : second);
    theirs.push_back(ours_first ? second : first);
    ratios.push_back(ours.back() / theirs.back());
  }
  if (ranks.rank() != 0) return;
  const double a = median(ours), b = median(theirs);
  std::printf("%-24s %10.1f us, MPI %10.1f us, ratio %.2f, %6.2f GB/s\n", row.name.c_str(), a * 1e6, b * 1e6,
              median(ratios), row.bytes / a * 1e-9);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const Result<std::shared_ptr<Communicator>> world = Communicator::world();
  must(world.status());
  Communicator& ranks = *world.value();
  std::vector<int64_t> megabytes;
  for (int i = 1; i < argc; ++i) megabytes.push_back(std::atoll(argv[i]));
  if (megabytes.empty()) megabytes = {0, 1, 4, 16, 64, 256};
  const int n = ranks.size();
  for (const int64_t size : megabytes) {
    const int64_t count = std::max<int64_t>(2, (size << 20) / 4) / n * n, part = count / n;
    std::vector<float> src(static_cast<size_t>(count), 1.0F), dst(src.size());
    const std::vector<int64_t> parts(static_cast<size_t>(n), part);
    std::vector<int> counts(static_cast<size_t>(n), static_cast<int>(part)), starts;
    for (int rank = 0; rank < n; ++rank) starts.push_back(rank * static_cast<int>(part));
    const double bytes = 4.0 * static_cast<double>(count) * (n - 1) / n;
    const auto label = [size](const char* kind) {
      return fmt::format("{} {}", kind, size == 0 ? "8 B" : fmt::format("{} MB", size));
    };
    const Row rows[] = {
        {label("all_reduce"),
         [&] { must(ranks.all_reduce(src.data(), dst.data(), count, DType::f32, Reduction::sum)); },
         [&] { MPI_Allreduce(src.data(), dst.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); },
         2 * bytes},
        {label("all_gather"), [&] { must(ranks.all_gather(src.data(), dst.data(), parts, DType::f32)); },
         [&] {
           MPI_Allgatherv(src.data(), static_cast<int>(part), MPI_FLOAT, dst.data(), counts.data(), starts.data(),
                          MPI_FLOAT, MPI_COMM_WORLD);
         },
         bytes},
        {label("reduce_scatter"),
         [&] { must(ranks.reduce_scatter(src.data(), dst.data(), parts, DType::f32, Reduction::sum)); },
         [&] { MPI_Reduce_scatter(src.data(), dst.data(), counts.data(), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }, bytes},
        {label("all_to_all"), [&] { must(ranks.all_to_all(src.data(), dst.data(), parts, parts, DType::f32)); },
         [&] {
           MPI_Alltoallv(src.data(), counts.data(), starts.data(), MPI_FLOAT, dst.data(), counts.data(), starts.data(),
                         MPI_FLOAT, MPI_COMM_WORLD);
         },
         bytes},
    };
    for (const Row& row : rows) measure(ranks, row);
  }
  return 0;
}
