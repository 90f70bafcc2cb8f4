// The cost of a global op beyond its local op, on tensors of four numbers, where no data has to move.
//
//   bench_global                      one rank
//   mpirun -n 2 bench_global          several
//
// Each row: the median time of both, and the difference; bar: 1 us.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "benchmarks/report/keep.h"
#include "core/global/global.h"
#include "core/ops/ops.h"

namespace {

using namespace tenon;
using global::Placement;
using global::Sbp;
using Clock = std::chrono::steady_clock;

constexpr int kTimes = 2000;

struct Row {
  const char* name;
  std::function<Tensor(const Tensor&, const Tensor&)> op;
  Sbp left = Sbp::split(0), right = Sbp::split(0);
};

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

double nanoseconds_of(const Row& row, const Tensor& x, const Tensor& y) {
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < kTimes; ++i) bench::keep(row.op(x, y));
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kTimes;
}

void measure(const Row& row) {
  const Placement all = Placement::all("cpu");
  const auto spread = [&](Sbp sbp) { return global::to_global(ones({2, 2}), all, {sbp}); };
  const Tensor x = spread(row.left), y = spread(row.right), a = global::to_local(x), b = global::to_local(y);
  std::vector<double> global, local;
  for (int round = 0; round < 33; ++round) {
    const double first = nanoseconds_of(row, x, y), second = nanoseconds_of(row, a, b);
    if (round < 3) continue;  // warm-up
    global.push_back(first);
    local.push_back(second);
  }
  if (global::rank() != 0) return;
  const double ours = median(global), under = median(local);
  std::printf("%-10s %7.0f ns, local %7.0f ns, beyond it %7.0f ns\n", row.name, ours, under, ours - under);
}

}  // namespace

int main() {
  const Row rows[] = {
      {"relu", [](const Tensor& x, const Tensor&) { return relu(x); }},
      {"add", [](const Tensor& x, const Tensor& y) { return add(x, y); }},
      {"add number", [](const Tensor& x, const Tensor&) { return add(x, Scalar(2.0)); }},
      {"matmul", [](const Tensor& x, const Tensor& y) { return matmul(x, y); }, Sbp::split(0), Sbp::broadcast()},
      {"sum rows", [](const Tensor& x, const Tensor&) { return sum(x, {1}); }},
      {"permute",
       [](const Tensor& x, const Tensor&) {
         return permute(x, {1, 0});
       }},
  };
  for (const Row& row : rows) measure(row);
  return 0;
}
