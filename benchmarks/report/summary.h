// What the samples of a row say: medians, the ratio, and whether the row keeps its bar.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/report/row.h"

namespace tenon::bench {

// Samples in the order in which they were taken: nanoseconds per run, one per batch. Ours first, then the peers.
using Samples = std::vector<std::vector<double>>;

struct Timing {
  double median = 0;
  double spread = 0;  // the distance between the quartiles
};

enum class Verdict { none, ok, over, void_row };  // none: the row states no bar, or its filter left out a side

struct Summary {
  std::string name;
  std::vector<std::string> labels;  // of `timings`; sides without samples are left out
  std::vector<Timing> timings;      // ours first, if it was measured
  double bytes = 0;                 // as in the row
  bool compared = false;            // ours and a peer were measured: `ratio` holds
  Timing ratio;                     // medians divided; the spread is that of the n-th sample divided by the peer's n-th
  double over_ns = 0;               // ours less the peer, where compared
  double bar = 0, slack_ns = 0, most_ns = 0;  // as in the row
  Verdict verdict = Verdict::none;
  std::string wrong;  // why the row is void
};

// The median is the upper one of an even number. `samples` is not empty.
Timing summarize(std::vector<double> samples);

// `samples[0]` belongs to row.ours, `samples[i]` to row.peers[i - 1]. The fastest peer is the one of the least median.
Summary summarize(const Row& row, const Samples& samples);

Summary void_row(const Row& row, std::string wrong);

// "relu, 4 floats | tenon on cpu: 54.1 ns +-0.4 | ... | ratio 0.090 +-0.002 | bar 0.100 | ok"
std::string to_text(const Summary& summary);

// The same as one line of JSON.
std::string to_json(const Summary& summary);

}  // namespace tenon::bench
