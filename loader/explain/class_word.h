// A class of devices where a provider's name belongs: "gpu", "discrete". A program may not choose a device by class,
// but its user may not know that.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loader/loader.h"

namespace tenon::loader {

// True if `word`, in lower case, names a class of devices and is not the name of one of `providers`.
bool is_class_word(std::string_view word, const std::vector<std::string>& providers);

// What to do about the class word `word`: the devices of its class among `devices`.
std::string class_word_remedy(std::string_view word, const std::vector<ListedDevice>& devices);

}  // namespace tenon::loader
