"""Host time of PyTorch's eager ops on four floats on the GPU, called in a loop that PyTorch itself runs in C++.

Each call takes the result of the one before: PyTorch would merge calls that are equal.
"""
import time

import torch


@torch.jit.script
def relus(x: torch.Tensor, count: int):
    y = x
    for _ in range(count):
        y = torch.relu(y)
    return y


@torch.jit.script
def sums(x: torch.Tensor, count: int):
    y = x
    for _ in range(count):
        y = torch.add(y, x)
    return y


def main():
    count = 1000
    x = torch.tensor([-1.5, 2.25, -0.125, 3.0], device="cuda")
    print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}")
    with torch.no_grad():
        for name, loop in (("relu", relus), ("add", sums)):
            samples = []
            for _ in range(15):
                torch.cuda.synchronize()
                start = time.perf_counter()
                loop(x, count)
                torch.cuda.synchronize()
                samples.append((time.perf_counter() - start) / count)
            samples.sort()
            print(f"{name}, 4 floats: {1e9 * samples[len(samples) // 2]:.0f} ns per op, batch and wait")


if __name__ == "__main__":
    main()
