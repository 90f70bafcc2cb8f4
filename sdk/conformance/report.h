// Writes the results of a run: a table for people, JUnit and JSON for programs.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sdk/conformance/test.h"

namespace tenon::conformance {

struct Row {
  const Test* test;
  Finding finding;
};

struct RunInfo {
  std::string path;
  std::string provider;  // "cpu 0.1.0, ABI 0.1, gcc 12.2.0"; empty if the note is unreadable
  std::string command;   // the command without " --case NAME"
  double seconds = 0;
};

// The group of a test: "events" of events/time_out, "primitives/unary" of primitives/unary/relu/f32/vector.
std::string group_of(const std::string& name);

using Counts = std::array<int, outcome_count>;
Counts count(const std::vector<Row>& rows);

// "FAILED events/time_out", the reason, and the command that repeats it.
std::string failure_text(const Row& row, const RunInfo& info);
std::string table_text(const std::vector<Row>& rows, const RunInfo& info);
std::string junit_text(const std::vector<Row>& rows, const RunInfo& info);
std::string json_text(const std::vector<Row>& rows, const RunInfo& info);

}  // namespace tenon::conformance
