// Quantised operands of a run: converts their numbers to real numbers and back ("Quantisation" in ep_api.h).
#pragma once

#include "primitives/reference/call.h"

namespace tenon::reference {

class Quantised {
 public:
  // Operand `role` of `call`, quantised or not.
  Quantised(const Call& call, int32_t role);

  explicit operator bool() const { return scale_ || zero_point_; }
  const Operand& operand() const { return operand_; }

  // The integer minus its zero point.
  int64_t integer(const int64_t* index) const;
  // The real number at `index`. If the operand is not quantised, returns the number itself. The product of an integer
  // of 33 bits and a scale of 24 bits is exact.
  long double real(const int64_t* index) const;
  // Stores the number that represents `value`. If the operand is not quantised, stores `value` rounded to its dtype.
  void write(const int64_t* index, double value) const;

 private:
  double scale(const int64_t* index) const;
  // The index of the scale and zero point of the element at `index`.
  void parameter_index(const int64_t* index, int64_t* out) const;

  Operand operand_, scale_, zero_point_;
  ep_quantisation how_ = {};
};

}  // namespace tenon::reference
