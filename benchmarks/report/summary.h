// Summarises the samples of a row: medians, the ratio, and the verdict on its bar.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/report/row.h"

namespace tenon::bench {

// Samples in order: nanoseconds per run, one sample per batch. Ours first, then the peers.
using Samples = std::vector<std::vector<double>>;

struct Timing {
  double median = 0;
  double spread = 0;  // the distance between the quartiles
};

enum class Verdict { none, ok, over, void_row };  // none: the row states no bar, or the filter left out a side

struct Summary {
  std::string name;
  std::vector<std::string> labels;            // for `timings`, without sides that have no samples
  std::vector<Timing> timings;                // ours first, if it was measured
  double bytes = 0;                           // from the row
  bool compared = false;                      // ours and a peer were measured, so `ratio` is set
  Timing ratio;                               // the ratio of medians; its spread is computed from the ratios of
                                              // corresponding samples
  double over_ns = 0;                         // our time minus the peer's in nanoseconds, if compared
  double bar = 0, slack_ns = 0, most_ns = 0;  // from the row
  Verdict verdict = Verdict::none;
  std::string wrong;  // why the row is void
};

// `samples` must not be empty. For an even number of samples, the median is the upper one.
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
