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

// Never fails. Without memory it gives one static error, which is never released.
ep_error* make_error(ep_status status, std::string_view sentence, std::string_view remedy) noexcept;
void release_error(ep_error* error) noexcept;

// From now on errors are counted one by one, for the validation layer: is_live_error is then true of every
// error that make_error gave and nobody has released yet.
void track_errors();
bool is_live_error(const ep_error* error);

}  // namespace tenon::loader
