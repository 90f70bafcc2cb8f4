// The engine that runs a system C compiler: the chosen one, or the first of cc, gcc and clang on the PATH.
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "providers/cpu/modules/helper/options.h"
#include "sdk/provider/modules/helper/engine.h"

namespace tenon::provider::helper {
namespace {

std::string compiler;  // absolute path
std::vector<std::string> environment;

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

// The folder to delete if this process is terminated while the compiler runs.
char folder_in_use[4096];
char library_in_use[4096];
volatile pid_t compiler_in_use = 0;

extern "C" void end_of_helper(int) {
  if (compiler_in_use > 0) kill(compiler_in_use, SIGTERM);
  unlink(library_in_use);
  for (int look = 0; look < 20 && rmdir(folder_in_use) != 0 && errno == ENOTEMPTY; ++look) {
    const timespec moment = {0, 1'000'000};
    nanosleep(&moment, nullptr);
  }
  _exit(1);
}

// A private folder for the output and the temporary files of the compiler.
class Folder {
 public:
  Folder() {
    const char* base = std::getenv("TMPDIR");
    path_ = fmt::format("{}/tenon-compile-XXXXXX", base != nullptr && base[0] == '/' ? base : "/tmp");
    if (path_.size() + 16 > sizeof folder_in_use || mkdtemp(path_.data()) == nullptr) path_.clear();
    std::strcpy(library_in_use, library().c_str());
    std::strcpy(folder_in_use, path_.c_str());
  }
  ~Folder() {
    unlink(library_in_use);
    rmdir(folder_in_use);
    folder_in_use[0] = library_in_use[0] = 0;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  bool made() const { return !path_.empty(); }
  std::string library() const { return fmt::format("{}/kernel.so", path_); }

 private:
  std::string path_;
};

// The absolute folders of PATH. An empty entry would mean the current folder, so it is skipped.
std::vector<std::string> folders_of_path() {
  std::vector<std::string> folders;
  const char* path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (rest[0] == '/') folders.push_back(rest.substr(0, end));
    rest.erase(0, std::min(end + 1, rest.size()));
  }
  return folders;
}

bool runs(const std::string& path) {
  struct stat file {};
  return stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string find_compiler(const std::vector<std::string>& folders) {
  for (const char* name : {"cc", "gcc", "clang"}) {
    for (const std::string& folder : folders) {
      const std::string path = fmt::format("{}/{}", folder, name);
      if (runs(path)) return path;
    }
  }
  return {};
}

// Makes an environment in which no variable of the program changes the generated code or the compiler's tools.
void make_environment(const std::vector<std::string>& folders) {
  std::string path = "PATH=";
  for (const std::string& folder : folders) path += (path.back() == '=' ? "" : ":") + folder;
  environment = {path, "LC_ALL=C"};
}

std::vector<char> contents(int file) {
  struct stat status {};
  if (fstat(file, &status) != 0 || status.st_size < 0) return {};
  std::vector<char> bytes(static_cast<size_t>(status.st_size));
  size_t read_bytes = 0;
  while (read_bytes < bytes.size()) {
    const ssize_t count =
        pread(file, bytes.data() + read_bytes, bytes.size() - read_bytes, static_cast<off_t>(read_bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    read_bytes += static_cast<size_t>(count);
  }
  bytes.resize(read_bytes);
  return bytes;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

struct Run {
  int status = -1;  // as returned by waitpid; -1 if the compiler did not start
  std::string output;
};

// Runs the compiler with `options`, and `text` as standard input.
Run run(const std::vector<std::string>& options, const std::string& text) {
  Run made;
  const Descriptor input(memfd_create("tenon-compile text", MFD_CLOEXEC));
  const Descriptor output(memfd_create("tenon-compile output", MFD_CLOEXEC));
  if (input.get() < 0 || output.get() < 0) return made;
  if (write(input.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return made;
  lseek(input.get(), 0, SEEK_SET);
  std::vector<std::string> words = {compiler};
  words.insert(words.end(), options.begin(), options.end());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.get(), STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, socket_descriptor);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, compiler.c_str(), &actions, nullptr, pointers(words).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    made.output = std::strerror(error);
    return made;
  }
  compiler_in_use = child;
  while (waitpid(child, &made.status, 0) < 0 && errno == EINTR) {
  }
  compiler_in_use = 0;
  const std::vector<char> said = contents(output.get());
  made.output.assign(said.data(), std::min<size_t>(said.size(), most_output_bytes));
  return made;
}

Outcome failed(std::string sentence) { return {Result::failed, std::move(sentence), {}}; }

// True if the compiler reports an error in the text, not a problem with the disk or its own parts.
bool blames_text(const std::string& output) {
  const size_t at = output.find("kernel:");
  return at != std::string::npos && output.find("error: ", at) != std::string::npos;
}

std::string how_it_ended(const Run& run) {
  if (run.status < 0) return fmt::format("could not be started: {}", run.output);
  if (WIFSIGNALED(run.status)) return fmt::format("ended with signal {}", WTERMSIG(run.status));
  const size_t end = run.output.find_last_not_of('\n');
  const std::string text = end == std::string::npos ? "" : run.output.substr(0, end + 1);
  const std::string last = text.substr(text.rfind('\n') + 1);
  return fmt::format("failed with status {}{}{}", WEXITSTATUS(run.status), last.empty() ? "" : ": ", last);
}

}  // namespace

Outcome identify(const std::string& chosen) {
  const std::vector<std::string> folders = folders_of_path();
  make_environment(folders);
  signal(SIGTERM, end_of_helper);
  signal(SIGALRM, end_of_helper);
  if (!chosen.empty() && !runs(chosen))
    return failed(fmt::format("The setting compiler names '{}', which cannot be run.", chosen));
  compiler = chosen.empty() ? find_compiler(folders) : chosen;
  if (compiler.empty()) return failed("There is no C compiler: the PATH has no cc, gcc or clang.");
  const Run version = run({"--version"}, "");
  struct stat file {};
  if (version.status != 0 || stat(compiler.c_str(), &file) != 0) {
    return failed(fmt::format("The compiler '{}' {}.", compiler, how_it_ended(version)));
  }
  const std::string first = version.output.substr(0, version.output.find('\n'));
  std::string found = fmt::format("{}\n{} {} {} {}.{}", first, compiler, file.st_ino, file.st_size, file.st_mtim.tv_sec,
                                  file.st_mtim.tv_nsec);
  return {Result::done, std::move(found), {}};
}

Outcome compile(const std::string& text, const Question& question) {
  const Folder folder;
  if (!folder.made())
    return failed(fmt::format("No folder could be made for the compiler's output: {}.", std::strerror(errno)));
  std::vector<std::string> options = code_options(question.target);
  options.insert(options.end(), {"-shared", "-Wl,-Bsymbolic", "-Wl,-z,noexecstack", "-Wl,--build-id=none", "-pipe",
                                 "-o", folder.library(), "-x", "c", "-", "-lm"});
  Run done = run(options, text);
  if (done.status != 0) {
    if (blames_text(done.output)) return {Result::refused, std::move(done.output), {}};
    return failed(fmt::format("The compiler '{}' {}.", compiler, how_it_ended(done)));
  }
  const Descriptor library(open(folder.library().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat file {};
  if (library.get() < 0 || fstat(library.get(), &file) != 0 || !S_ISREG(file.st_mode) || file.st_uid != geteuid()) {
    return failed(fmt::format("The compiler '{}' did not write the library.", compiler));
  }
  return {Result::done, std::move(done.output), contents(library.get())};
}

}  // namespace tenon::provider::helper
