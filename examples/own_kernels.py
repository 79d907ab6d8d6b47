"""The roofline of your own kernels, at every level of the memory: numbers as a profiler gives them, roofs as a data sheet does.

    python examples/own_kernels.py [FOLDER]

The same on the command line:
    roofline points kernels.csv --roof "FP64=9.7 TFLOP/s" --roof "L2=5.1 TB/s" --roof "HBM=2.04 TB/s" -o kernels.svg
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # not needed once the package is installed

from roofline.plot import from_points, read_points, read_roof

# Made-up kernels of an A100's size: FLOPs, bytes that crossed L2 and HBM, and the time.
KERNELS = """name,flops,bytes:L2,bytes:HBM,seconds
triad,2 GFLOP,24 GB,24 GB,16 ms
7-point stencil,16 GFLOP,28 GB,17 GB,13 ms
sparse product,4 GFLOP,39 GB,29 GB,20 ms
FFT,15 GFLOP,22 GB,11 GB,9.5 ms
dense product,2.2 TFLOP,12 GB,2.6 GB,290 ms
"""
ROOFS = ("FP64 = 9.7 TFLOP/s", "L2 = 5.1 TB/s", "HBM = 2.04 TB/s")


def main(folder: str = ".") -> None:
    chart = from_points(read_points(KERNELS), [read_roof(text) for text in ROOFS], title="Five kernels, by memory level")
    for row in chart.rows:
        print(f"{row['name']:16} {row['level']:4} {row['FLOP/byte']:>7} FLOP/byte  {row['FLOP/s']:>14}  {row['of its roof']:>7} of {row['bound by']}")
    print(chart.save(Path(folder) / "kernels.svg"))


if __name__ == "__main__":
    main(*sys.argv[1:2])
