// Library: a plug-in's shared library, mapped with RTLD_NOW | RTLD_LOCAL.
#pragma once

#include <memory>
#include <string>

#include "ep_api/ep_api.h"
#include "loader/trust/trust.h"
#include "primitives/status/status.h"

namespace tenon::loader {

// Unmapped when destroyed: whoever wants it to stay (everyone whose loading succeeded) keeps it for ever.
class Library {
 public:
  // Maps the file that was checked and finds the entry symbol. Errors: what dlopen said, with the missing library or
  // symbol; the file is not the one that was checked any more; no ep_plugin_query_v0. A failure leaves nothing mapped.
  static Result<std::unique_ptr<Library>> load(const CheckedFile& file);

  virtual ~Library() = default;
  virtual ep_plugin_query_fn query() const = 0;
};

// Whether `address` lies in a mapping of the file behind `descriptor`, whatever device and inode numbers the file
// system shows. Errors: it does not; /proc/self/maps cannot be read.
Status check_mapping(const void* address, const CheckedFile& file);

}  // namespace tenon::loader
