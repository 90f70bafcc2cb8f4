// GraphWork: a whole graph made of cases of tests/cases, from the question to the result.
#pragma once

#include <cstdint>
#include <vector>

#include "sdk/conformance/subject.h"
#include "tests/cases/case.h"
#include "tests/cases/image.h"

namespace tenon::conformance {

class GraphWork {
 public:
  struct Options {
    bool constants = false;  // the inputs are constants of the graph, else each launch gives them
    bool chained = false;    // from the second node on, SRC is the DST of the node before
    uint8_t dirt = 0x5b;     // fill byte of the workspace
  };

  // One node for each of `tests`, whose outputs are dense.
  GraphWork(Subject& subject, const std::vector<cases::Case>& tests, Options options);
  GraphWork(const GraphWork&) = delete;
  GraphWork& operator=(const GraphWork&) = delete;

  const ep_graph_desc& table();
  ep_graph_node& node(size_t index) { return nodes_[index]; }

  // Makes the memory, writes the constants, asks the device and compiles. Skipped if the device does not take all
  // nodes under one number, or refuses.
  Status create(const Stream& stream);
  // Uploads the operands, launches and downloads them; waits for nothing.
  Status submit(const Stream& stream);
  // Takes the faults. The stream has finished.
  Status settle(const Stream& stream);
  // Compares every output with the reference, and everything else with what was there. The stream has finished.
  Status compare() const;

  const std::vector<ep_fault>& faults() const { return faults_; }
  uint64_t tag = 1;

 private:
  struct Part {
    cases::Case test;
    cases::Image start, want, got;
    Memory memory;
  };
  // Where the bytes of a value lie.
  struct Origin {
    size_t part;
    uint64_t offset;
  };

  void add_node(size_t index);
  void run_reference();
  Status upload(const Stream& stream);
  Status compile();

  Subject& subject_;
  Options options_;
  std::vector<Part> parts_;
  std::vector<ep_graph_value> values_;
  std::vector<Origin> origins_;  // by value
  std::vector<ep_buffer> constants_;
  std::vector<ep_graph_node> nodes_;
  ep_graph_desc desc_{};
  Graph graph_;
  ep_graph_info info_{};
  Memory workspace_;
  std::vector<uint8_t> dirty_;
  std::vector<ep_buffer> lent_buffers_;
  std::vector<ep_fault> faults_;
};

// What the device says of the nodes of `table`.
Result<std::vector<ep_graph_answer>> ask_capability(Subject& subject, const ep_graph_desc& table);

// True if each output of `test` fills its memory, as a value of a graph must be filled.
bool has_dense_outputs(const cases::Case& test);

}  // namespace tenon::conformance
