#include "loader/explain/class_word.h"

#include <algorithm>

#include "loader/select/spelling.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

// The class "cpu" is left out, since "cpu" is also the name of a provider.
bool is_of_class(std::string_view word, int32_t device_class) {
  if (device_class == EP_DEVICE_CLASS_CPU) return false;
  const bool is_gpu = device_class == EP_DEVICE_CLASS_DISCRETE || device_class == EP_DEVICE_CLASS_INTEGRATED;
  return word == device_class_name(device_class) || (is_gpu && word == "gpu");
}

}  // namespace

bool is_class_word(std::string_view word, const std::vector<std::string>& providers) {
  if (std::find(providers.begin(), providers.end(), word) != providers.end()) return false;
  constexpr int32_t classes[] = {EP_DEVICE_CLASS_DISCRETE, EP_DEVICE_CLASS_INTEGRATED, EP_DEVICE_CLASS_SOFTWARE,
                                 EP_DEVICE_CLASS_ACCELERATOR};
  return std::any_of(std::begin(classes), std::end(classes), [&](int32_t one) { return is_of_class(word, one); });
}

std::string class_word_remedy(std::string_view word, const std::vector<ListedDevice>& devices) {
  std::string names;
  for (const ListedDevice& device : devices) {
    if (!device.info.usable() || !is_of_class(word, device.info.device_class)) continue;
    names += (names.empty() ? "" : ", ") + device.spelling;
  }
  const std::string advice = names.empty()
                                 ? ", and no usable device is of that class. Name one of the devices there are."
                                 : fmt::format(". Name a device of that class: {}.", names);
  return fmt::format("'{}' names a class of devices, not a provider{}", word, advice);
}

}  // namespace tenon::loader
