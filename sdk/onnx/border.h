// The border of the importer: a caller sees tenon::Error and no other exception.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::onnx {

// Runs `work()`, the body of a public function. An exception of the standard library becomes a tenon::Error:
// out_of_host_memory for a failed allocation, internal for any other, because the importer never throws one on purpose.
template <class F>
auto at_border(F work) {
  const auto no_memory = [] { return Error(Code::out_of_host_memory, "There is not enough memory on the host."); };
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw no_memory();
  } catch (const std::length_error&) {
    throw no_memory();
  } catch (const std::exception& error) {
    throw Error(
        Code::internal,
        fmt::format("The ONNX importer met an exception that it does not expect: {}. This is a defect of Tenon.",
                    error.what()));
  }
}

}  // namespace tenon::onnx
