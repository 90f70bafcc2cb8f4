// Measures rows with Google Benchmark and prints them.
//
// Each side of a row is a benchmark called "<row>/<side>". The batches of the sides of one row are interleaved at
// random, so that what else the machine does falls on all of them. The answer is checked before anything is timed.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/report/row.h"
#include "benchmarks/report/summary.h"

namespace tenon::bench {

class Report {
 public:
  // Takes the options of Google Benchmark out of the arguments: --benchmark_filter=REGEX, --benchmark_repetitions=N
  // (batches per side, 15 by default), --benchmark_min_time=SECONDS (of one batch, 0.004 by default),
  // --benchmark_list_tests, --benchmark_format=json (a line of JSON per row), --benchmark_out=FILE (the same lines,
  // appended to FILE) and the rest. Ends the program if an option is unknown.
  Report(int* argc, char** argv);

  // Measures and prints the rows that the filter leaves.
  void run(const std::vector<Row>& rows);

  // For main: 1 if a row was void or over its bar.
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

// A program that has nothing but rows.
int run(const std::vector<Row>& rows, int argc, char** argv);

}  // namespace tenon::bench
