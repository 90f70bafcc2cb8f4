#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "primitives/text/format.h"

namespace tenon::testing {
namespace {

struct Ended {
  int status = -1;
  std::string output;
};

// Runs vm_child in `mode` with a time limit. Returns standard output and error together.
Ended run(const std::string& mode, const std::string& environment = {}) {
  const std::string command = fmt::format("{} timeout 60 '{}' {} 2>&1", environment, TENON_VM_CHILD, mode);
  Ended ended;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return ended;
  std::array<char, 4096> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) ended.output.append(buffer.data(), n);
  ended.status = pclose(pipe);
  return ended;
}

TEST(Lifecycle, ExitDrainsWorkInFlightAndLogsUnaskedErrors) {
  const Ended ended = run("exit_in_flight");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_NE(ended.output.find("index 77 is out of range for an axis of length 7"), std::string::npos) << ended.output;
}

TEST(Lifecycle, AForkedChildGetsErrorsAndTheParentGoesOn) {
  const Ended ended = run("fork_in_flight");
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST(Lifecycle, ALostDeviceGivesErrorsAndNoHang) {
  const Ended ended = run("lose_device");
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST(Lifecycle, ExitBesideAWorkingThread) {
  const Ended ended = run("exit_beside_a_thread");
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST(Lifecycle, TheTraceNamesThreadsStreamsAndInstructions) {
  const std::string path = ::testing::TempDir() + "tenon_vm_trace.json";
  const Ended ended = run("exit_in_flight", fmt::format("TENON_TRACE='{}'", path));
  EXPECT_EQ(ended.status, 0) << ended.output;
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  for (const char* wanted :
       {"\"traceEvents\"", "async:0 stream 2", "thread 1", "\"mix\"", "\"submit\"", "\"upload\"", "\"wait\""}) {
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted;
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tenon::testing
