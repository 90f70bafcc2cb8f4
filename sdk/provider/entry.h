// entry<f>: `f` behind an exception barrier, for use in a table of the ABI.
//
//   ops.copy = entry<copy>;   // ep_status copy(ep_stream*, ep_buffer, ep_buffer, uint64_t, ep_error**), may throw
//
// The first parameter of `f` is a handle whose struct has a member `const ep_host* host`; the last one is `ep_error**`.
// std::bad_alloc becomes EP_STATUS_OUT_OF_HOST_MEMORY, Stopped EP_STATUS_CANCELLED, and any other exception
// EP_STATUS_INTERNAL with its text. A function of the table that returns void (destroy, free, close) needs no barrier:
// declare it noexcept. `f` runs with the default floating-point state, whatever state the caller has set.
#pragma once

#include <exception>
#include <new>
#include <tuple>

#include "sdk/provider/error.h"
#include "sdk/provider/floating_point.h"

namespace tenon::provider {

// Converts the exception that is being handled into the error of a call.
inline ep_status caught(const ep_host* host, ep_error** error) noexcept {
  try {
    throw;
  } catch (const Stopped&) {
    return fail_text(host, error, EP_STATUS_CANCELLED, "The host cancelled the call.");
  } catch (const std::bad_alloc&) {
    return fail_text(host, error, EP_STATUS_OUT_OF_HOST_MEMORY, "The provider ran out of host memory.");
  } catch (const std::exception& exception) {
    return fail(host, error, EP_STATUS_INTERNAL, "The provider failed inside: %s.", exception.what());
  } catch (...) {
    return fail_text(host, error, EP_STATUS_INTERNAL, "The provider failed inside with an unknown exception.");
  }
}

template <auto function>
struct Entry;

template <class Handle, class... Rest, ep_status (*function)(Handle*, Rest...)>
struct Entry<function> {
  static ep_status call(Handle* handle, Rest... rest) noexcept {
    const DefaultFloatingPoint floating_point;
    try {
      return function(handle, rest...);
    } catch (...) {
      return caught(handle->host, std::get<sizeof...(Rest) - 1>(std::tuple<Rest...>(rest...)));
    }
  }
};

template <auto function>
inline constexpr auto entry = &Entry<function>::call;

}  // namespace tenon::provider
