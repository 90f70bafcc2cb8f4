#include "loader/kept/lines.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "loader/kept/kept.h"
#include "loader/settings/settings.h"
#include "loader/trust/trust.h"

namespace tenon::loader {
namespace {

constexpr int kLooks = 200;  // attempts to take a lock, 5 ms apart
constexpr useconds_t kLook = 5000;

std::vector<std::string> whole_lines(std::string_view bytes) {
  std::vector<std::string> lines;
  for (size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    lines.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
  }
  return lines;
}

bool lock(int descriptor) {
  for (int look = 0; look < kLooks; ++look) {
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    usleep(kLook);
  }
  return false;
}

// The file at `path`, locked. Checks that `path` still names this file, and that nobody else can have written it.
Descriptor open_locked(const std::string& path) {
  for (int attempt = 0; attempt < kLooks; ++attempt) {
    Descriptor file(open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (file.get() < 0 || !lock(file.get())) return {};
    const Result<FileIdentity> own = identify(file.get(), path);
    const Result<CheckedFile> named = open_checked(path, settings().trust == Trust::owned);
    if (!own.ok()) return {};
    if (!named.ok()) {
      if (access(path.c_str(), F_OK) != 0) continue;  // replaced meanwhile
      return {};
    }
    if (named->identity.same_file(own.value())) return file;
  }
  return {};
}

std::optional<std::string> all_of(int descriptor, uint64_t most) {
  std::string bytes;
  char part[1 << 16];
  while (true) {
    const ssize_t count = pread(descriptor, part, sizeof part, static_cast<off_t>(bytes.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 || bytes.size() > most) return std::nullopt;
    if (count == 0) return bytes;
    bytes.append(part, static_cast<size_t>(count));
  }
}

// Writes in one call, so that a process that is killed leaves a whole line or none. A full disk may still cut a line.
bool append(int descriptor, const std::string& text) {
  ssize_t count = -1;
  do {
    count = write(descriptor, text.data(), text.size());
  } while (count < 0 && errno == EINTR);
  return count == static_cast<ssize_t>(text.size());
}

// The youngest of `lines` (without the head) that fit into half of `most` bytes.
std::string younger_half(const std::vector<std::string>& lines, uint64_t most) {
  size_t first = lines.size();
  uint64_t bytes = 0;
  while (first > 1 && bytes + lines[first - 1].size() + 1 <= most / 2) bytes += lines[--first].size() + 1;
  std::string text;
  for (size_t i = first; i < lines.size(); ++i) text += lines[i] + "\n";
  return text;
}

}  // namespace

std::vector<std::string> read_lines(const std::string& path, std::string_view head, uint64_t most) {
  const std::optional<std::string> bytes = read_kept(path, most);
  if (!bytes) return {};
  std::vector<std::string> lines = whole_lines(*bytes);
  if (lines.empty() || lines[0] != head) return {};
  lines.erase(lines.begin());
  return lines;
}

bool append_line(const std::string& path, std::string_view head, std::string_view line, uint64_t most) {
  const std::string first = std::string(head) + "\n";
  const std::string last = std::string(line) + "\n";
  if (path.empty() || first.size() + last.size() > most || last.find('\n') + 1 != last.size()) return false;
  make_folders(path);
  const Descriptor file = open_locked(path);
  if (file.get() < 0) return false;
  const std::optional<std::string> bytes = all_of(file.get(), 2 * most);
  const bool known = bytes && bytes->starts_with(first);
  if (bytes && bytes->empty()) return append(file.get(), first + last);
  if (!known) return keep_file(path, first + last);
  const bool torn = bytes->back() != '\n';
  if (bytes->size() + torn + last.size() <= most) return append(file.get(), (torn ? "\n" : "") + last);
  return keep_file(path, first + younger_half(whole_lines(*bytes), most) + last);
}

}  // namespace tenon::loader
