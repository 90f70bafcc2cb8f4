// Keys: unsigned integers with the same order as the elements, which ep_api.h defines above ep_sort_attributes.
#pragma once

#include "providers/cuda/kernels/element.h"

namespace tenon::provider::cuda {

// Converts elements to keys and back. -0 has the key of 0, and every NaN the greatest key.
template <class Key>
class KeyForm {
 public:
  TENON_ON_GPU explicit KeyForm(const KeyArguments& arguments)
      : form_(arguments.form),
        descending_(arguments.descending != 0),
        sign_(static_cast<Key>(1) << (8 * arguments.size - 1)),
        all_(static_cast<Key>(sign_ | (sign_ - 1))),
        infinity_(static_cast<Key>(arguments.infinity)) {}

  TENON_ON_GPU Key key(Key bits) const {
    Key key = bits;
    if (form_ == key_signed) key = bits ^ sign_;
    if (form_ == key_float) {
      const Key magnitude = bits & (sign_ - 1);
      key = (bits & sign_) != 0 ? bits ^ all_ : bits | sign_;
      if (magnitude == 0) key = sign_;
      if (magnitude > infinity_) key = all_;
    }
    return descending_ ? key ^ all_ : key;
  }
  // Finds the element of a key. False if several elements share the key.
  TENON_ON_GPU bool element(Key key, Key* bits) const {
    if (descending_) key ^= all_;
    *bits = form_ == key_signed ? key ^ sign_ : key;
    if (form_ != key_float) return true;
    *bits = (key & sign_) != 0 ? key ^ sign_ : key ^ all_;
    return key != sign_ && key != all_;
  }

  // True for the key of NaN, in ascending order.
  TENON_ON_GPU bool is_nan(Key key) const { return form_ == key_float && key == all_; }

 private:
  int32_t form_;
  bool descending_;
  Key sign_;
  Key all_;
  Key infinity_;
};

template <class Key>
TENON_ON_GPU Key bits_at(uint64_t address, int64_t index, int32_t size) {
  if constexpr (sizeof(Key) == 8) {
    return reinterpret_cast<const uint64_t*>(address)[index];
  } else {
    if (size == 4) return reinterpret_cast<const uint32_t*>(address)[index];
    return size == 2 ? reinterpret_cast<const uint16_t*>(address)[index]
                     : reinterpret_cast<const uint8_t*>(address)[index];
  }
}
template <class Key>
TENON_ON_GPU void put_bits(uint64_t address, int64_t index, int32_t size, Key bits) {
  if constexpr (sizeof(Key) == 8) {
    reinterpret_cast<uint64_t*>(address)[index] = bits;
  } else {
    if (size == 4)
      reinterpret_cast<uint32_t*>(address)[index] = bits;
    else if (size == 2)
      reinterpret_cast<uint16_t*>(address)[index] = static_cast<uint16_t>(bits);
    else
      reinterpret_cast<uint8_t*>(address)[index] = static_cast<uint8_t>(bits);
  }
}

}  // namespace tenon::provider::cuda
