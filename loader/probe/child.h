// Child: one run of the helper program that probes a plug-in (`helper.cpp`), in a process of its own.
//
// The process is started by posix_spawn, since a fork of a program with threads may only exec. It reads the request
// from its standard input and writes the answer to descriptor 3, so that output of the plug-in does not get into the
// answer. It inherits the environment and no other descriptor, and it ends when the thread that started it ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tenon::loader {

constexpr int probe_answer_descriptor = 3;

enum class ChildEnd : uint8_t { not_started, exited, died_of_signal, overran };

struct ChildRun {
  ChildEnd end = ChildEnd::not_started;
  int number = 0;       // errno, the exit status, or the signal
  std::string answer;   // the bytes it wrote to probe_answer_descriptor
  std::string printed;  // the last line it printed, shortened
};

// Runs `program`, and kills it with its process group after `time_limit` (0: never).
ChildRun run_child(const std::string& program, const std::string& request, std::chrono::milliseconds time_limit);

}  // namespace tenon::loader
