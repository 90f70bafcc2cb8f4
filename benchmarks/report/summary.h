// Sums up the samples of a row: medians, the ratio, and whether the row keeps its bar.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/report/row.h"

namespace tenon::bench {

// Samples in their order: nanoseconds per run, one sample per batch. Ours first, then the peers.
using Samples = std::vector<std::vector<double>>;

struct Timing {
  double median = 0;
  double spread = 0;  // the distance between the quartiles
};

enum class Verdict { none, ok, over, void_row };  // none: the row states no bar, or the filter left out a side

struct Summary {
  std::string name;
  std::vector<std::string> labels;            // of `timings`, without sides that have no samples
  std::vector<Timing> timings;                // ours first, if it was measured
  double bytes = 0;                           // as in the row
  bool compared = false;                      // ours and a peer were measured, so `ratio` is set
  Timing ratio;                               // the ratio of medians; its spread is that of n-th sample by n-th sample
  double over_ns = 0;                         // nanoseconds of ours less those of the peer, if compared
  double bar = 0, slack_ns = 0, most_ns = 0;  // as in the row
  Verdict verdict = Verdict::none;
  std::string wrong;  // why the row is void
};

// The median of an even number of samples is the upper one. `samples` is not empty.
Timing summarize(std::vector<double> samples);

// `samples[0]` belongs to row.ours, `samples[i]` to row.peers[i - 1]. The fastest peer is the one with the least
// median.
Summary summarize(const Row& row, const Samples& samples);

Summary void_row(const Row& row, std::string wrong);

// "relu, 4 floats | tenon on cpu: 54.1 ns +-0.4 | ... | ratio 0.090 +-0.002 | bar 0.100 | ok"
std::string to_text(const Summary& summary);

// The summary as one line of JSON.
std::string to_json(const Summary& summary);

}  // namespace tenon::bench
