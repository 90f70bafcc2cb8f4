// The commands of the tool: options as the command line gives them, and the function that does the work and returns the
// exit code. Errors are thrown as tenon::Error and printed by main.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

struct RunOptions {
  std::string model, device, output, external_data;
  std::vector<std::string> inputs;  // NAME=FILE.npy, NAME=FILE.pb, NAME=random, NAME=random:1x3x224x224
  std::vector<std::string> dims;    // NAME=NUMBER, for named dynamic dims
  std::string format = "npy";
  uint32_t repeat = 1;
  uint64_t seed = 1;
  bool report = false, json = false, eager = false;
};
int run_model(const RunOptions& options);

struct CompareOptions {
  std::string model, external_data;
  std::vector<std::string> devices;       // two; the first is held to be right
  std::vector<std::string> inputs, dims;  // as for run; inputs not given are random
  uint64_t seed = 1;
  std::optional<double> tolerance;  // relative, of every float; else by dtype
  bool isolate = false;             // B's nodes get the values of A
  bool json = false;
};
// The exit code is 1 where a node diverges.
int compare_devices(const CompareOptions& options);

struct ReportOptions {
  bool json = false;
};
int list_devices(const ReportOptions& options);
int doctor(const ReportOptions& options);

struct OpsOptions {
  std::string name;  // of one op, or empty
  bool json = false, onnx = false;
};
int list_ops(const OpsOptions& options);

// "tenon 0.1.0 (commit ...)", with the libraries it was built with and found.
std::string version_text();
// The topics of `tenon help` that are not commands.
std::string help_topics();

struct OnnxTestOptions {
  std::vector<std::string> folders;
  std::string device;
  double rtol = 1e-3, atol = 1e-7;
  bool tolerance_given = false;
  uint32_t jobs = 0;       // 0: as many as threads may run
  double time_limit = 20;  // seconds per case
  bool json = false, quiet = false;
};
int onnx_test(const OnnxTestOptions& options);

// Everything after `conform`, as it stands: the kit reads it.
struct ConformOptions {
  std::vector<std::string> words;
};
int conform(const ConformOptions& options);

struct NewProviderOptions {
  std::string name;
  std::string to;      // the folder; empty: one called `name`
  bool force = false;  // although a provider of that name is found
};
int new_provider(const NewProviderOptions& options);

}  // namespace tenon::cli
