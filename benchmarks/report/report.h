// Measures rows with Google Benchmark and prints them.
//
// Each side of a row is a benchmark called "<row>/<side>". The batches of all sides of a row are interleaved at random,
// so that other work on the machine slows all sides. The answer is checked before anything is timed.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/report/row.h"
#include "benchmarks/report/summary.h"

namespace tenon::bench {

class Report {
 public:
  // Removes the options of Google Benchmark from the arguments: --benchmark_filter=REGEX, --benchmark_repetitions=N
  // (batches per side, default 15), --benchmark_min_time=SECONDS (of one batch, default 0.004), --benchmark_list_tests,
  // --benchmark_format=json (one line of JSON per row), --benchmark_out=FILE (the same lines, appended to FILE) and the
  // rest. Ends the program if an option is unknown.
  Report(int* argc, char** argv);

  // Measures and prints the rows that match the filter.
  void run(const std::vector<Row>& rows);

  // The exit status of the program: 1 if a row was void or over its bar.
  int status() const { return bad_ == 0 ? 0 : 1; }

 private:
  void run_row(const Row& row);
  void print(const Summary& summary);

  double batch_ns_ = 4e6;
  bool json_ = false;
  bool listing_ = false;
  std::string out_path_;
  int bad_ = 0;
};

// The main function of a program with nothing but rows.
int run(const std::vector<Row>& rows, int argc, char** argv);

}  // namespace tenon::bench
