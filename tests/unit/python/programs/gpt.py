"""A small GPT that learns a text, as people write it for PyTorch: model, mixed precision, schedule, checkpoint, generation.
It is a function of the module, torch or tenon (gpt_test.py)."""
import math
import os
import tempfile


def run(torch, compiled=False):
    """Trains for 60 steps, saves and loads a checkpoint, and generates 20 letters. Returns what a test can compare."""
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(1337)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    text = "to be or not to be that is the question " * 20
    chars = sorted(set(text))
    stoi = {ch: i for i, ch in enumerate(chars)}
    data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
    train, val = data[:int(0.9 * len(data))], data[int(0.9 * len(data)):]
    block, batch, width, heads, layers = 16, 8, 32, 4, 2

    def get_batch(split):
        source = train if split == "train" else val
        ix = torch.randint(len(source) - block, (batch,))
        x = torch.stack([source[i:i + block] for i in ix])
        y = torch.stack([source[i + 1:i + block + 1] for i in ix])
        return x.to(device), y.to(device)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(width, 3 * width, bias=False)
            self.proj = nn.Linear(width, width)
            self.drop = nn.Dropout(0.1)
            self.register_buffer("mask", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

        def forward(self, x):
            B, T, C = x.size()
            q, k, v = self.qkv(x).split(width, dim=2)
            q, k, v = (t.view(B, T, heads, C // heads).transpose(1, 2) for t in (q, k, v))
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
            att = self.drop(F.softmax(att, dim=-1))
            return self.proj((att @ v).transpose(1, 2).contiguous().view(B, T, C))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attn = Attention()
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

        def forward(self, x):
            x = x + self.attn(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.transformer = nn.ModuleDict(dict(wte=nn.Embedding(len(chars), width), wpe=nn.Embedding(block, width),
                                                  h=nn.ModuleList([Block() for _ in range(layers)]), ln_f=nn.LayerNorm(width)))
            self.lm_head = nn.Linear(width, len(chars), bias=False)
            self.transformer.wte.weight = self.lm_head.weight
            self.apply(self._init_weights)
            for pn, p in self.named_parameters():
                if pn.endswith("proj.weight"):
                    torch.nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * layers))

        def _init_weights(self, module):
            if isinstance(module, nn.Linear):
                torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
                if module.bias is not None:
                    torch.nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

        def forward(self, idx, targets=None):
            b, t = idx.size()
            pos = torch.arange(0, t, dtype=torch.long, device=idx.device).unsqueeze(0)
            x = self.transformer.wte(idx) + self.transformer.wpe(pos)
            for each in self.transformer.h:
                x = each(x)
            logits = self.lm_head(self.transformer.ln_f(x))
            loss = None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
            return logits, loss

        @torch.no_grad()
        def generate(self, idx, count, temperature=1.0, top_k=None):
            for _ in range(count):
                logits, _ = self(idx[:, -block:])
                logits = logits[:, -1, :] / temperature
                if top_k is not None:
                    v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                    logits[logits < v[:, [-1]]] = -float("Inf")
                probs = F.softmax(logits, dim=-1)
                idx = torch.cat((idx, torch.multinomial(probs, num_samples=1)), dim=1)
            return idx

    model = GPT().to(device)
    count = sum(p.numel() for p in model.parameters())
    decay = [p for p in model.parameters() if p.requires_grad and p.dim() >= 2]
    rest = [p for p in model.parameters() if p.requires_grad and p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=1e-2, betas=(0.9, 0.95))
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=60)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    net = torch.compile(model) if compiled else model
    losses = []
    for step in range(60):
        x, y = get_batch("train")
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            logits, loss = net(x, y)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        held = torch.stack([model(*get_batch("val"))[1] for _ in range(4)]).mean().item()
    path = os.path.join(tempfile.mkdtemp(), "ckpt.pt")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 60, "config": {"block": block}}, path)
    checkpoint = torch.load(path, map_location=device)
    twin = GPT()
    twin.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    twin.eval()
    x, y = get_batch("val")
    same = torch.allclose(twin(x)[0], model(x)[0])
    made = model.generate(torch.zeros((1, 1), dtype=torch.long), 20, top_k=3)[0].tolist()
    return {"count": count, "first": losses[0], "last": losses[-1], "held": held, "same": same, "text": "".join(chars[i] for i in made)}

