// The commands of the tool. Each command has a struct with its options and a function that does the work and returns
// the exit code. Errors: tenon::Error, which main prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/precision.h"

namespace tenon::cli {

struct RunOptions {
  std::string model, device, output, external_data;
  std::vector<std::string> inputs;  // NAME=FILE.npy, NAME=FILE.pb, NAME=FILE.txt, NAME=random, NAME=random:1x3
  std::vector<std::string> dims;    // NAME=NUMBER, for named dynamic dims
  std::string format = "npy";
  uint32_t repeat = 1;
  uint64_t seed = 1;
  bool report = false, json = false, eager = false, no_fuse = false;
  Precision precision = Precision::stated;
};
int run_model(const RunOptions& options);

struct ProfileOptions {
  std::string model, device, external_data;
  std::vector<std::string> inputs, dims;  // as in RunOptions; a missing input is random
  std::string plot, trace;                // files to write
  uint64_t seed = 1;
  uint32_t warm_up = 3;
  uint32_t repeat = 0;  // number of runs; 0: as many as fit in two seconds
  uint32_t top = 25;    // nodes in the table
  bool json = false, no_fuse = false;
  Precision precision = Precision::stated;
};
int profile_model(const ProfileOptions& options);

struct TuneModelOptions {
  std::string model, device, external_data;
  std::vector<std::string> inputs, dims;  // as in RunOptions; a missing input is random
  uint64_t seed = 1;
  double budget_ms = 0;  // time for launches of each kernel; 0: chosen for the device
  bool json = false;
};
// Finds better tiles for the kernels of a model, and stores them for TENON_TUNE=load.
int tune_model(const TuneModelOptions& options);

struct CompareOptions {
  std::string model, external_data;
  std::vector<std::string> devices;       // two; the first is the reference
  std::vector<std::string> inputs, dims;  // as in RunOptions; a missing input is random
  uint64_t seed = 1;
  std::optional<double> tolerance;  // relative, for all floats; default: by dtype and tier
  Precision precision = Precision::stated;
  bool isolate = false;  // nodes on the second device get the inputs from the first
  bool json = false;
};
// Returns 1 if a node diverges.
int compare_devices(const CompareOptions& options);

struct GraphOptions {
  std::string file;  // a model, or a graph that this command has written
  std::string device, external_data, pass, output;
  std::vector<std::string> sizes;  // NAME=NUMBER for named dynamic dims (default: symbols); S0=4 for a graph's text
  std::vector<std::string> inputs, dims;  // as in RunOptions
  uint64_t seed = 1;
  bool exact = false, run = false;
};
// Prints the graph of a model after some passes, or reads one and runs it.
int show_graph(const GraphOptions& options);

struct KernelOptions {
  GraphOptions graph;  // without pass, output and run
  std::string stage = "text", emit = "c";
};
// Prints the kernels of a graph at one stage of the code generator.
int show_kernels(const KernelOptions& options);

struct PlanOptions {
  GraphOptions graph;                // without exact, output and run
  std::string topology, grid;        // a file; "512x8", or empty to try grids
  int64_t ranks = 0;                 // 0: all of the topology
  std::vector<std::string> spreads;  // 0=S(0),B for input 0; %17=B,S(1) for a constant
  std::vector<size_t> parameters;    // inputs that training changes, in addition to floating constants
  bool train = false, measure = false, json = false;
};
// Chooses how the values of a graph are spread over the ranks of a modelled cluster, and prints the cost. With
// `measure` the ranks of this launch also run the plan. Returns 1 if the plan does not fit in the memory of a rank.
int plan_model(const PlanOptions& options);

struct CheckOptions {
  std::string model, device;
  bool json = false;
};
// Checks if a model can run, and prints everything that is not supported. Returns 1 if there is any.
int check_model(const CheckOptions& options);

struct ReportOptions {
  bool json = false;
  bool probe = false;  // a child process loads every plug-in first
};
// Call it before looking for providers.
void apply(const ReportOptions& options);
int list_devices(const ReportOptions& options);
int doctor(const ReportOptions& options);

struct OpsOptions {
  std::string name;                    // one op; empty: all ops
  std::vector<std::string> devices;    // to ask; empty: one of each provider
  std::vector<std::string> libraries;  // op libraries to load first
  bool json = false, onnx = false;
};
int list_ops(const OpsOptions& options);

// "tenon 0.1.0 (commit ...)", and the libraries of the build and of this machine.
std::string version_text();
// The topics of `tenon help` besides the commands.
std::string help_topics();

struct OnnxTestOptions {
  std::vector<std::string> folders;
  std::string device;
  double rtol = 1e-3, atol = 1e-7;
  bool tolerance_given = false;
  uint32_t jobs = 0;       // 0: the thread limit
  double time_limit = 20;  // seconds per case
  bool json = false, quiet = false;
};
int onnx_test(const OnnxTestOptions& options);

// The arguments after `conform`, unchanged: the conformance kit parses them.
struct ConformOptions {
  std::vector<std::string> words;
};
int conform(const ConformOptions& options);

struct NewProviderOptions {
  std::string name;
  std::string to;      // the folder; empty: `name`
  bool force = false;  // even if a provider with that name exists
  bool async = false;  // use the asynchronous skeleton instead of the sample
};
int new_provider(const NewProviderOptions& options);

}  // namespace tenon::cli
