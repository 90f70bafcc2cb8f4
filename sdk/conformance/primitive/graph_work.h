// GraphWork: a whole graph made of cases of tests/cases, from graph_capability to the result.
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
    bool constants = false;  // inputs are constants of the graph; else each launch gives them
    bool chained = false;    // SRC of each node is the DST of the node before it
    uint8_t dirt = 0x5b;     // fill byte of the workspace
  };

  // Makes one node for each of `tests`. Their outputs are dense.
  GraphWork(Subject& subject, const std::vector<cases::Case>& tests, Options options);
  GraphWork(const GraphWork&) = delete;
  GraphWork& operator=(const GraphWork&) = delete;

  const ep_graph_desc& table();
  ep_graph_node& node(size_t index) { return nodes_[index]; }

  // Allocates the memory, writes the constants, asks the device and compiles. Skipped if the device does not accept all
  // nodes as one island, or refuses to compile.
  Status create(const Stream& stream);
  // Uploads the operands, launches and downloads the results, without waiting.
  Status submit(const Stream& stream);
  // Takes the faults. The stream has finished.
  Status settle(const Stream& stream);
  // Compares every output with the reference, and checks that no other byte changed. The stream has finished.
  Status compare() const;

  const std::vector<ep_fault>& faults() const { return faults_; }
  uint64_t tag = 1;

 private:
  struct Part {
    cases::Case test;
    cases::Image start, want, got;
    Memory memory;
  };
  // The location of a value's bytes.
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
  std::vector<Origin> origins_;  // one per value
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

// Returns the device's answers for the nodes of `table`.
Result<std::vector<ep_graph_answer>> ask_capability(Subject& subject, const ep_graph_desc& table);

// True if each output of `test` fills its memory, which graphs require.
bool has_dense_outputs(const cases::Case& test);

}  // namespace tenon::conformance
