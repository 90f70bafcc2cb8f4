// Adds one to the greatest int.
#include <climits>
#include <cstdio>

int main(int argc, char**) {
  int sum = INT_MAX - 1 + argc;
  sum += argc;
  std::printf("%d\n", sum);
  return 0;
}
