// tenon-probe: loads one plug-in, asks it for its devices and their descriptions, and writes the answer to a pipe. The
// loader starts this program (`child.h`), so that a plug-in that crashes or hangs ends only this process.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>

#include "loader/library/library.h"
#include "loader/probe/cache.h"
#include "loader/probe/child.h"
#include "loader/probe/record.h"
#include "loader/registry/plugin.h"
#include "loader/trust/trust.h"

namespace {

using namespace tenon;
using namespace tenon::loader;

// Makes a crash or kill of this process harmless: it ends with its parent and writes no core file.
void become_expendable() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  fcntl(probe_answer_descriptor, F_SETFD, FD_CLOEXEC);
}

Result<Record> read_request() {
  const std::string bytes(std::istreambuf_iterator<char>(std::cin), {});
  const std::optional<Record> request = Record::decode(bytes);
  if (fcntl(probe_answer_descriptor, F_GETFD) < 0 || !request) {
    return Status(Code::invalid_argument, "tenon-probe is started by libtenon, which asks it to probe a plug-in.");
  }
  const Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  dup2(nothing.get(), STDIN_FILENO);
  return *request;
}

std::map<std::string, std::string> values_of(const Record& request) {
  const std::vector<std::string> keys = request.all("key");
  const std::vector<std::string> values = request.all("value");
  std::map<std::string, std::string> all;
  for (size_t i = 0; i < keys.size() && i < values.size(); ++i) all[keys[i]] = values[i];
  return all;
}

// An error from the plug-in counts as an answer: the host gets the same error when it loads the plug-in.
Status ask(const Record& request, Record& answer) {
  const std::string provider = request.get("provider");
  TENON_ASSIGN_OR_RETURN(const CheckedFile file, open_checked(request.get("path"), false));
  if (file_state(file.path) != request.get("state")) {
    return Status(Code::invalid_argument, "the file was changed after it had been checked.");
  }
  Result<std::unique_ptr<Library>> library = Library::load(file);
  if (!library.ok()) return {};
  const ep_plugin_query_fn query = library.value()->query();
  Result<std::unique_ptr<Plugin>> plugin =
      Plugin::make(provider, std::move(library).value(), query, file.path, values_of(request));
  if (!plugin.ok()) return {};
  static_cast<void>(plugin.value()->enumerate());
  for (const ListedDevice& device : plugin.value()->devices()) answer.add("device", device.info.fingerprint);
  static_cast<void>(plugin.value().release());  // no shutdown, since this process ends
  return {};
}

// The files of the code that is mapped now.
std::set<std::string> mapped_libraries() {
  std::set<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t slash = line.find('/');
    const size_t space = line.find(' ');
    const bool is_code = space != std::string::npos && line.compare(space + 3, 1, "x") == 0;
    if (is_code && slash != std::string::npos) files.insert(line.substr(slash));
  }
  return files;
}

bool send(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = write(probe_answer_descriptor, bytes.data() + sent, bytes.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

int main() {
  const Result<Record> request = read_request();
  if (!request.ok()) {
    std::fprintf(stderr, "%s\n", request.status().message().c_str());
    return 2;
  }
  become_expendable();
  Record answer;
  const Status asked = ask(request.value(), answer);
  if (!asked.ok()) {
    std::fprintf(stderr, "%s\n", asked.message().c_str());
    _exit(1);
  }
  for (const std::string& file : mapped_libraries()) answer.add("library", file);
  _exit(send(answer.encode()) ? 0 : 1);
}
