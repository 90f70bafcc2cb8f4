// Library: a plug-in's shared library. It is mapped so that its symbols are not visible to the program (RTLD_LOCAL),
// and so that it finds its own symbols before the program's (`scope.h`).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ep_api/ep_api.h"
#include "loader/trust/trust.h"
#include "primitives/status/status.h"

namespace tenon::loader {

// Where a plug-in and its libraries look up symbols first: among themselves, or in the program. The latter is for
// libraries that a process may load only once, such as MPI.
enum class Binding : uint8_t { own_first, program_first };

// The destructor unmaps the library. A plug-in that was loaded successfully keeps its Library forever, so it stays
// mapped.
class Library {
 public:
  // Maps the checked file and finds the entry symbol. Errors: dlopen's own, with the missing library or symbol; the
  // file was replaced after the check; it has no `symbol`. A failure leaves nothing mapped.
  static Result<std::unique_ptr<Library>> load(const CheckedFile& file, const char* symbol = EP_PLUGIN_QUERY_SYMBOL,
                                               Binding binding = Binding::own_first);

  virtual ~Library() = default;
  // The function behind the symbol.
  virtual void* entry() const = 0;
  // The entry of a plug-in for devices.
  ep_plugin_query_fn query() const { return reinterpret_cast<ep_plugin_query_fn>(entry()); }
};

// Ok if `address` lies in a mapping of the file behind `descriptor`, whatever device and inode numbers the file system
// shows. Errors: it does not; /proc/self/maps cannot be read.
Status check_mapping(const void* address, const CheckedFile& file);

}  // namespace tenon::loader
