#include "loader/library/library.h"
#include "primitives/text/format.h"

#define BOOST_DLL_USE_STD_FS
#include <dlfcn.h>

#include <boost/dll/shared_library.hpp>

#include "loader/library/bundled.h"
#include "loader/library/floating_point.h"
#include "loader/library/scope.h"
#include "loader/log/log.h"

namespace tenon::loader {
namespace {

// The text from dlopen begins with the name it searched: "libfoo.so.1: cannot open shared object file: No such file or
// directory".
std::string remedy_of(const std::string& text) {
  const std::string missing = ": cannot open shared object file";
  const size_t position = text.find(missing);
  if (position != std::string::npos) {
    return fmt::format("Install the library {}, or add its folder to LD_LIBRARY_PATH.", text.substr(0, position));
  }
  if (text.find("undefined symbol") != std::string::npos) {
    return "A library the provider needs is missing or of another version; link the provider with -Wl,-z,defs.";
  }
  return {};
}

class MappedLibrary : public Library {
 public:
  MappedLibrary(Descriptor stub, boost::dll::shared_library library, void* entry)
      : stub_(std::move(stub)), library_(std::move(library)), entry_(entry) {}
  void* entry() const override { return entry_; }

 private:
  Descriptor stub_;  // closed after the library
  boost::dll::shared_library library_;
  void* entry_;
};

Status check_unchanged(const CheckedFile& file) {
  TENON_ASSIGN_OR_RETURN(const FileIdentity now, identify(file.descriptor.get(), file.path));
  if (now == file.identity) return {};
  return Status(Code::invalid_argument, "the file was changed after it had been checked.", "Try again.");
}

}  // namespace

Result<std::unique_ptr<Library>> Library::load(const CheckedFile& file, const char* symbol, Binding binding) {
  TENON_RETURN_IF_ERROR(check_unchanged(file));
  // If the file ends the process in the dynamic linker or in a constructor, this is the last line that the log has
  // about it.
  if (log_enabled(LogTopic::load, LogLevel::debug))
    log(LogTopic::load, LogLevel::debug, fmt::format("loading {}", file.path));
  const KeptFloatingPoint floating_point;
  boost::dll::shared_library library;
  std::error_code failed;
  dlerror();
  Scope scope = binding == Binding::own_first ? scope_of(file.path) : Scope{file.path, RTLD_NOW | RTLD_LOCAL, {}};
  library.load(scope.path, failed, static_cast<boost::dll::load_mode::type>(scope.mode));
  if (failed) {
    // The error code is always "bad file descriptor"; dlerror still holds the reason.
    const char* text = dlerror();
    const std::string reason = text ? text : failed.message();
    return Status(Code::not_found, fmt::format("the dynamic linker refused it: {}", reason), remedy_of(reason))
        .with_rule("N06");
  }
  void* entry = dlsym(library.native(), symbol);
  if (!entry) {
    return Status(Code::not_found, fmt::format("it does not export the function {}", symbol),
                  "Define it with EP_EXPORT, and let no version script make it local.")
        .with_rule("N06");
  }
  TENON_RETURN_IF_ERROR(check_mapping(entry, file));
  TENON_RETURN_IF_ERROR(check_unchanged(file));
  for (const Displaced& each : displaced_libraries(entry)) {
    log(LogTopic::load, LogLevel::warning,
        fmt::format("the plug-in {} brings {}, but gets {}: the process has a library of that name already. Give the "
                    "one that it brings a soname of its own.",
                    file.path, each.own, each.taken));
  }
  return std::unique_ptr<Library>(std::make_unique<MappedLibrary>(std::move(scope.stub), std::move(library), entry));
}

}  // namespace tenon::loader
