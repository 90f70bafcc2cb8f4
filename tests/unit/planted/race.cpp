// Two threads increment one plain variable.
#include <cstdio>
#include <thread>

int main() {
  long count = 0;
  auto work = [&count] {
    for (int i = 0; i < 100000; i++) count++;
  };
  std::thread other(work);
  work();
  other.join();
  std::printf("%ld\n", count);
  return 0;
}
