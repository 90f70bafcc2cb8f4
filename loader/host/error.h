// ep_error: the host's object that carries a failure across the border. take_error (loader.h) turns it into a Status.
#pragma once

#include <string>
#include <string_view>

#include "ep_api/ep_api.h"

struct ep_error {
  ep_status status;
  std::string sentence, remedy;
};

namespace tenon::loader {

// Never fails. If memory runs out, it returns one static error, which is never released.
ep_error* make_error(ep_status status, std::string_view sentence, std::string_view remedy) noexcept;
void release_error(ep_error* error) noexcept;

// Starts to track each error, for the validation layer. is_live_error then returns true for every error that make_error
// returned and that has not been released.
void track_errors();
bool is_live_error(const ep_error* error);

}  // namespace tenon::loader
