// A class of devices given in place of a provider's name: "gpu", "discrete". Devices cannot be chosen by class, but
// users may try it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loader/loader.h"

namespace tenon::loader {

// True if `word`, in lower case, names a class of devices and is not the name of one of `providers`.
bool is_class_word(std::string_view word, const std::vector<std::string>& providers);

// The remedy for the class word `word`: it lists the devices of that class among `devices`.
std::string class_word_remedy(std::string_view word, const std::vector<ListedDevice>& devices);

}  // namespace tenon::loader
