"""Host time of PyTorch's eager ops on four floats on the GPU, called from Python as its users do."""
import time

import torch


def main():
    count = 1000
    x = torch.tensor([-1.5, 2.25, -0.125, 3.0], device="cuda")
    print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}")
    with torch.no_grad():
        for name, call in (("relu", lambda: torch.relu(x)), ("add", lambda: torch.add(x, x))):
            samples = []
            for _ in range(15):
                torch.cuda.synchronize()
                start = time.perf_counter()
                for _ in range(count):
                    call()
                torch.cuda.synchronize()
                samples.append((time.perf_counter() - start) / count)
            samples.sort()
            print(f"{name}, 4 floats: {1e9 * samples[len(samples) // 2]:.0f} ns per op, batch and wait")


if __name__ == "__main__":
    main()
