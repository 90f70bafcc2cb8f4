// The frame of element-wise shaders: loads inputs and stores results. A shader defines uvec2 computed(x, y, z) on the
// bits of its INPUTS inputs; INPUT_SIZE(i) is the size of input i in bytes. If every operand is contiguous and aligned,
// the first push.packs invocations compute a pack of PACK elements each. All other invocations compute one element
// each.

bool in_memory(const int i) { return (SCALARS & (1 << i)) == 0; }
bool repeated(const int i) { return (REPEATED & (1 << i)) != 0; }

#define NONE uvec2(0u)
#if INPUTS == 1
#define COMPUTED(bits) computed(bits(0), NONE, NONE)
#elif INPUTS == 2
#define COMPUTED(bits) computed(bits(0), bits(1), NONE)
#else
#define COMPUTED(bits) computed(bits(0), bits(1), bits(2))
#endif

uvec2 input_bits(const int i, Places at) {
  return in_memory(i) ? load_element(push.src[i], repeated(i) ? 0u : at.of[i + 1], INPUT_SIZE(i)) : NONE;
}
void make_element(uint index) {
  const Places at = places_of(index, INPUTS);
#define INPUT_BITS(i) input_bits(i, at)
  store_element(push.dst, at.of[0], DST_SIZE, COMPUTED(INPUT_BITS));
#undef INPUT_BITS
}

uvec4 input_pack(const int i, uint number) {
  if (!in_memory(i)) return uvec4(0u);
  if (repeated(i)) return uvec4(load_element(push.src[i], 0u, INPUT_SIZE(i)), 0u, 0u);
  return load_pack(push.src[i], number, PACK * INPUT_SIZE(i));
}
void make_pack(uint number) {
  uvec4 inputs[INPUTS];
  for (int i = 0; i < INPUTS; ++i) inputs[i] = input_pack(i, number);
  uvec4 made = uvec4(0u);
  for (int k = 0; k < PACK; ++k) {
#define INPUT_BITS(i) element_of(inputs[i], repeated(i) ? 0 : k, INPUT_SIZE(i))
    put_element(made, k, DST_SIZE, COMPUTED(INPUT_BITS));
#undef INPUT_BITS
  }
  store_pack(push.dst, number, PACK * DST_SIZE, made);
}

void main() {
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  const uint number = group * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  switch (PACK) {  // kernels/specialize keeps one case
    case 1:
      if (number < push.count) make_element(number);
      break;
    default:
      if (number < push.packs) {
        make_pack(number);
      } else {
        const uint index = number + push.packs * uint(PACK - 1);
        if (index < push.count) make_element(index);
      }
  }
}
