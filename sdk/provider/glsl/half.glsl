// Converts f16 and bf16, as bits, to f32 and back. It does not use packHalf2x16, which may round in either direction, or
// the device's own conversions, which may flush denormals. For denormals of f16 it adds a normal number, so that f32
// rounds at their last bit.

float f16_to_f32(uint bits) {
  const uint shifted = (bits & 0x7fffu) << 13;  // exponent and digits at their positions in f32
  precise float denormal = uintBitsToFloat(shifted + 0x38800000u) - 6.103515625e-5;
  uint magnitude = shifted < 0x800000u ? floatBitsToUint(denormal) : shifted + 0x38000000u;
  if (shifted >= 0x0f800000u) magnitude = shifted == 0x0f800000u ? 0x7f800000u : 0x7fc00000u;
  return uintBitsToFloat(((bits & 0x8000u) << 16) | magnitude);
}
uint f16_from_f32(float value) {
  const uint bits = floatBitsToUint(value);
  const uint magnitude = bits & 0x7fffffffu;
  precise float denormal = uintBitsToFloat(magnitude) + 0.5;
  uint result = magnitude < 0x38800000u ? floatBitsToUint(denormal) - 0x3f000000u
                                        : (magnitude - 0x37fff001u + ((magnitude >> 13) & 1u)) >> 13;
  if (magnitude >= 0x477ff000u) result = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return ((bits >> 16) & 0x8000u) | result;
}
uint bf16_from_f32(float value) {
  const uint bits = floatBitsToUint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}
