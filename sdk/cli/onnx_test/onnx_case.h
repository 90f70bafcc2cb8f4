// One ONNX test case: a folder with model.onnx and test_data_set_*/input_*.pb, output_*.pb.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::cli {

struct Tolerance {
  double rtol = 1e-3, atol = 1e-7;
};

enum class Verdict { passed, failed, skipped };
const char* verdict_name(Verdict verdict);

// The names of the rungs of the ladder in reports. A CaseResult counts the launches on each rung.
inline constexpr const char* kRungs[] = {"native", "decomposed", "compiled", "host"};
using RungCounts = std::array<uint64_t, 4>;

struct CaseResult {
  Verdict verdict = Verdict::failed;
  std::string sentence;  // why it failed or was skipped, or a note on how it passed; one line
  double milliseconds = 0;
  RungCounts launches{};
};

// Returns every case in `folders` and below, in the order of the folders, then by name. Errors: a folder does not exist
// or has no case.
std::vector<std::string> find_cases(const std::vector<std::string>& folders);

// Returns the tolerance in `data.json` of the case, or `initial` if there is none.
Tolerance case_tolerance(const std::string& folder, const Tolerance& initial);

// Loads the model, runs every data set and compares dtype, shape and elements of every output. Skips a model that the
// importer refuses.
CaseResult run_case(const std::string& folder, const std::string& device, const Tolerance& tolerance);

}  // namespace tenon::cli
