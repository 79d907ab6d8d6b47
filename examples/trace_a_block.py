"""Count what a PyTorch module does: FLOPs and bytes of every operator, and what fusion saves. Needs torch.

    python examples/trace_a_block.py

The same on the command line, one phase for each entry of the dict:
    roofline trace examples/trace_a_block.py:phases --fusion attention
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # not needed once the package is installed


def block(width: int = 512, heads: int = 8):
    """A decoder block on the meta device: shapes without values, so no memory and no time."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.qkv, self.out = nn.RMSNorm(width), nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
            self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

        def forward(self, x):
            batch, tokens, _ = x.shape
            q, k, v = self.qkv(self.norm(x)).view(batch, tokens, 3, heads, -1).permute(2, 0, 3, 1, 4)
            scores = (q @ k.transpose(-1, -2)) * (width // heads) ** -0.5
            x = x + self.out((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, tokens, width))
            return x + self.down(nn.functional.gelu(self.up(self.norm(x))))

    with torch.device("meta"):
        return Block().to(torch.bfloat16)


def phases():
    """What is traced: the block on a long prompt, and on one token of many sequences."""
    import torch
    module = block()
    made = lambda batch, tokens: torch.empty(batch, tokens, 512, dtype=torch.bfloat16, device="meta")
    return {"prompt": (module, (made(1, 1024),)), "one token": (module, (made(64, 1),))}


def main() -> None:
    try:
        import torch  # noqa: F401
    except ImportError:
        print("torch is not installed: pip install torch")
        return
    from roofline.trace import trace_function
    for name, t in trace_function(phases).items():
        moved = {f: sum(k.bytes for k in t.kernels(f)) for f in ("none", "elementwise", "attention")}
        print(f"{name}: {t.flops / 1e9:.2f} GFLOP; MB moved: " + ", ".join(f"{f} {b / 1e6:.1f}" for f, b in moved.items()))
        for k in sorted(t.kernels("attention"), key=lambda k: -k.bytes)[:4]:
            print(f"  {k.name:12} {k.flops / 1e6:9.1f} MFLOP {k.bytes / 1e6:8.2f} MB  {k.lead.parameter or k.lead.module or 'the block itself'}")


if __name__ == "__main__":
    main()
