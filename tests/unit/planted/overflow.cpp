// Writes one element past the end of a heap block.
#include <cstdio>
#include <vector>

int main(int argc, char**) {
  std::vector<float> values(8);
  float* data = values.data();
  data[7 + argc] = 1.0f;
  std::printf("%g\n", static_cast<double>(data[0]));
  return 0;
}
