// main: PER_THREAD elements each, neighbours on neighbouring threads.
void main() {
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  const uint first = group * gl_WorkGroupSize.x * uint(PER_THREAD) + gl_LocalInvocationID.x;
  for (int i = 0; i < PER_THREAD; ++i) {
    const uint index = first + uint(i) * gl_WorkGroupSize.x;
    if (index < push.count) run(index);
  }
}
