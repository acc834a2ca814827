"""Features of PyTorch, NumPy and Python that a right solution may use, each in the first lines of a process."""

PREAMBLE = """\
import math, torch
from torch import nn
import torch.nn.functional as F
x = torch.arange(12.).reshape(3, 4) / 7
"""
FEATURES = {
    "half": """
assert x.half().float().shape == (3,4)
x.half().softmax(-1)
x.half() @ x.half().T
x.half().exp().sum(-1)
""",
    "bfloat16": """
x.bfloat16().float()
x.bfloat16().softmax(-1)
x.bfloat16() @ x.bfloat16().T
""",
    "float16 matmul linear": """
nn.Linear(4,4).half()(x.half())
""",
    "bf16 linear": """
nn.Linear(4,4).bfloat16()(x.bfloat16())
""",
    "float8": """
x.to(torch.float8_e4m3fn).float()
""",
    "complex": """
torch.view_as_complex(torch.randn(3,2)).abs()
torch.polar(torch.ones(3), torch.ones(3))
""",
    "complex32": """
torch.view_as_complex(torch.randn(3,2).half())
""",
    "fft": """
torch.fft.fft(x)
""",
    "linalg": """
torch.linalg.inv(torch.eye(3))
torch.linalg.svd(x)
torch.linalg.qr(x)
torch.linalg.norm(x)
torch.linalg.eigh(torch.eye(3))
torch.matrix_exp(torch.eye(3))
torch.linalg.solve(torch.eye(3), torch.ones(3))
torch.linalg.multi_dot([x, x.T])
""",
    "double linalg": """
torch.linalg.svd(x.double())
""",
    "checkpoint": """
from torch.utils.checkpoint import checkpoint
y=x.clone().requires_grad_()
checkpoint(lambda a: a.softmax(-1), y, use_reentrant=False).sum().backward()
""",
    "checkpoint reentrant": """
from torch.utils.checkpoint import checkpoint
y=x.clone().requires_grad_()
checkpoint(lambda a: a.softmax(-1), y, use_reentrant=True).sum().backward()
""",
    "checkpoint sequential": """
from torch.utils.checkpoint import checkpoint_sequential
y=x.clone().requires_grad_()
checkpoint_sequential(nn.Sequential(nn.Linear(4,4),nn.ReLU()),2,y,use_reentrant=False).sum().backward()
""",
    "compile inductor": """
f=torch.compile(lambda a: a.softmax(-1)*2)
f(x)
""",
    "compile eager": """
f=torch.compile(lambda a: a.softmax(-1)*2, backend='eager')
f(x)
""",
    "compile aot_eager": """
f=torch.compile(lambda a: a.softmax(-1)*2, backend='aot_eager')
f(x)
""",
    "compile decorator": """
@torch.compile
def f(a):
    return a+1
""",
    "compile fullgraph eager": """
@torch.compile(backend='eager', fullgraph=True, dynamic=True)
def f(a):
    return a+1
f(x)
""",
    "compiler.disable": """
@torch.compiler.disable
def f(a):
    return a+1
f(x)
""",
    "compiler.is_compiling": """
assert not torch.compiler.is_compiling()
""",
    "compiler.allow_in_graph": """
torch.compiler.allow_in_graph(lambda a: a)
""",
    "_dynamo import": """
import torch._dynamo
torch._dynamo.reset()
""",
    "func.grad": """
torch.func.grad(lambda a: a.pow(2).sum())(x)
""",
    "func.vmap": """
torch.func.vmap(lambda a: a.softmax(-1))(x)
""",
    "torch.vmap": """
torch.vmap(torch.dot)(x, x)
""",
    "vmap random": """
torch.vmap(lambda a: a+torch.rand_like(a), randomness='different')(x)
""",
    "func.jvp": """
torch.func.jvp(lambda a: a.softmax(-1), (x,), (x,))
""",
    "func.vjp": """
torch.func.vjp(lambda a: a.softmax(-1), x)[1](x)
""",
    "func.jacrev": """
torch.func.jacrev(lambda a: a.softmax(-1))(x[0])
""",
    "func.jacfwd": """
torch.func.jacfwd(lambda a: a.softmax(-1))(x[0])
""",
    "func.hessian": """
torch.func.hessian(lambda a: a.exp().sum())(x[0])
""",
    "func.functional_call": """
m=nn.Linear(4,4)
torch.func.functional_call(m, dict(m.named_parameters()), (x,))
""",
    "func.stack_module_state": """
torch.func.stack_module_state([nn.Linear(4,4), nn.Linear(4,4)])
""",
    "func.linearize": """
torch.func.linearize(lambda a: a.sin(), x)[1](x)
""",
    "func.functionalize": """
torch.func.functionalize(lambda a: a.clone().add_(1))(x)
""",
    "flop counter": """
from torch.utils.flop_counter import FlopCounterMode
with FlopCounterMode(display=False) as c:
    x @ x.T
assert c.get_total_flops()==72
""",
    "jit.script": """
@torch.jit.script
def f(a: torch.Tensor):
    return a.softmax(-1)
f(x)
f(x)
f(x)
""",
    "jit.script module": """
m=torch.jit.script(nn.Linear(4,4))
m(x)
m(x)
m(x)
""",
    "jit.trace": """
f=torch.jit.trace(lambda a: a.softmax(-1), x)
f(x)
f(x)
f(x)
""",
    "jit.script loop grad": """
@torch.jit.script
def f(a: torch.Tensor):
    for i in range(3):
        a = a * 2 + 1
    return a.tanh()
for _ in range(4):
    y=x.clone().requires_grad_()
    f(y).sum().backward()
""",
    "meta tensor": """
torch.empty(3,4,device='meta') @ torch.empty(4,3,device='meta')
""",
    "meta module": """
m=nn.Linear(4,4,device='meta')
m(torch.empty(3,4,device='meta'))
""",
    "meta MHA": """
m=nn.MultiheadAttention(8,2,device='meta',batch_first=True)
z=torch.empty(1,3,8,device='meta')
m(z,z,z)
""",
    "meta layers": """
with torch.device('meta'):
    m=nn.Sequential(nn.Embedding(9,4),nn.LayerNorm(4),nn.Conv1d(3,3,1),nn.GELU(),nn.Softmax(-1),nn.Dropout())
    m(torch.zeros(2,3,dtype=torch.long))
""",
    "meta ops": """
m=x.to('meta')
m.softmax(-1)
m.tril()
m.masked_fill(m>0,1)
m.sum(-1)
m.cumsum(-1)
torch.sort(m)
m.topk(2)
m.argsort()
torch.einsum('ij,kj->ik',m,m)
torch.where(m>0,m,m)
m.log_softmax(-1)
F.layer_norm(m,(4,))
F.cross_entropy(m, torch.zeros(3,dtype=torch.long,device='meta'))
m.logsumexp(-1)
m.var(-1)
m.std(-1)
m.gather(1,torch.zeros(3,1,dtype=torch.long,device='meta'))
m.index_select(0,torch.zeros(2,dtype=torch.long,device='meta'))
m.roll(1)
m.flip(0)
m.repeat_interleave(2)
torch.cat([m,m])
m.exp().sin().cos().tanh()
m.unfold(1,2,1)
m.triu()
m.nan_to_num()
m.softmax(-1,dtype=torch.float64)
m.addmm(torch.empty(3,3,device='meta'),m)
F.gelu(m)
F.scaled_dot_product_attention(m[None],m[None],m[None])
""",
    "meta parameter count": """
with torch.device('meta'):
    m=nn.Transformer(16,2,1,1,32,batch_first=True)
sum(p.numel() for p in m.parameters())
""",
    "torch.device context": """
with torch.device('cpu'):
    torch.zeros(3)
""",
    "fake tensor": """
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode() as m:
    nn.Linear(3,3)(torch.ones(2,3))
""",
    "parametrize": """
from torch.nn.utils import parametrize
class P(nn.Module):
    def forward(self, w):
        return w.tril()
m=nn.Linear(4,4)
parametrize.register_parametrization(m,'weight',P())
m(x)
""",
    "weight_norm": """
m=nn.utils.parametrizations.weight_norm(nn.Linear(4,4))
m(x)
""",
    "spectral_norm": """
nn.utils.parametrizations.spectral_norm(nn.Linear(4,4))(x)
nn.utils.parametrizations.orthogonal(nn.Linear(4,4))(x)
""",
    "old weight_norm": """
nn.utils.weight_norm(nn.Linear(4,4))(x)
""",
    "prune": """
import torch.nn.utils.prune as prune
prune.l1_unstructured(nn.Linear(4,4),'weight',0.5)
""",
    "fx trace": """
import torch.fx
class M(nn.Module):
    def forward(self, a):
        return a.softmax(-1)*2
g=torch.fx.symbolic_trace(M())
g(x)
""",
    "make_fx": """
from torch.fx.experimental.proxy_tensor import make_fx
make_fx(lambda a: a.softmax(-1))(x)(x)
""",
    "make_fx symbolic": """
from torch.fx.experimental.proxy_tensor import make_fx
make_fx(lambda a: a.softmax(-1), tracing_mode='symbolic')(x)(x)
""",
    "export": """
class M(nn.Module):
    def forward(self, a):
        return a.softmax(-1)*2
torch.export.export(M(), (x,)).module()(x)
""",
    "library custom_op": """
@torch.library.custom_op('mine::soft', mutates_args=())
def soft(a: torch.Tensor) -> torch.Tensor:
    return a.softmax(-1)
@soft.register_fake
def _(a): return torch.empty_like(a)
soft(x)
""",
    "library define": """
lib=torch.library.Library('mine2','DEF')
lib.define('f(Tensor x) -> Tensor')
lib.impl('f', lambda a: a+1, 'CompositeImplicitAutograd')
torch.ops.mine2.f(x)
""",
    "autograd.functional": """
torch.autograd.functional.jacobian(lambda a: a.softmax(-1), x[0])
torch.autograd.functional.hessian(lambda a: a.exp().sum(), x[0])
torch.autograd.functional.vjp(lambda a: a.softmax(-1), x[0], x[0])
torch.autograd.functional.jvp(lambda a: a.softmax(-1), x[0], x[0])
""",
    "autograd.functional vectorize": """
torch.autograd.functional.jacobian(lambda a: a.softmax(-1), x[0], vectorize=True)
""",
    "autograd.Function": """
class S(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        w=a.softmax(-1)
        ctx.save_for_backward(w)
        return w
    @staticmethod
    def backward(ctx, g):
        w,=ctx.saved_tensors
        return w*(g-(w*g).sum(-1,keepdim=True))
y=x.clone().requires_grad_()
S.apply(y).pow(2).sum().backward()
torch.autograd.gradcheck(S.apply, x.double().requires_grad_())
""",
    "function setup_context vmap": """
class S(torch.autograd.Function):
    generate_vmap_rule=True
    @staticmethod
    def forward(a):
        return a.exp()
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
    @staticmethod
    def backward(ctx, g):
        return g*ctx.saved_tensors[0]
torch.func.vmap(S.apply)(x)
""",
    "double backward": """
y=x.clone().requires_grad_()
g,=torch.autograd.grad(y.softmax(-1).pow(2).sum(), y, create_graph=True)
g.sum().backward()
""",
    "retain/hook": """
y=x.clone().requires_grad_()
z=y*2
z.register_hook(lambda g: g)
z.retain_grad()
z.sum().backward()
""",
    "saved_tensors_hooks": """
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
    y=x.clone().requires_grad_()
    y.exp().sum().backward()
""",
    "save_on_cpu": """
with torch.autograd.graph.save_on_cpu():
    y=x.clone().requires_grad_()
    y.exp().sum().backward()
""",
    "anomaly": """
with torch.autograd.detect_anomaly():
    y=x.clone().requires_grad_()
    y.exp().sum().backward()
""",
    "profiler": """
with torch.profiler.profile() as p:
    x.softmax(-1)
p.key_averages().table()
""",
    "autograd profiler": """
with torch.autograd.profiler.profile() as p:
    x.softmax(-1)
str(p)
""",
    "record_function": """
with torch.profiler.record_function('a'):
    x.exp()
""",
    "forward_ad": """
import torch.autograd.forward_ad as fwAD
with fwAD.dual_level():
    fwAD.unpack_dual(fwAD.make_dual(x, x).softmax(-1))
""",
    "einsum": """
torch.einsum('ij,kj->ik', x, x)
torch.einsum('ij,kj,kl->il', x, x, x)
torch.einsum('...ij,...jk->...ik', x, x.T)
""",
    "einsum opt_einsum": """
import torch.backends.opt_einsum as oe
oe.is_available()
torch.einsum('ij,kj,kl,ml->im', x, x, x, x)
""",
    "autocast bf16": """
with torch.autocast('cpu', dtype=torch.bfloat16):
    x @ x.T
    nn.Linear(4,4)(x)
""",
    "autocast fp16": """
with torch.autocast('cpu', dtype=torch.float16):
    x @ x.T
    F.softmax(x,-1)
""",
    "sdpa": """
F.scaled_dot_product_attention(x[None,None],x[None,None],x[None,None])
F.scaled_dot_product_attention(x[None,None],x[None,None],x[None,None], is_causal=True)
""",
    "sdpa_kernel": """
from torch.nn.attention import sdpa_kernel, SDPBackend
with sdpa_kernel(SDPBackend.MATH):
    F.scaled_dot_product_attention(x[None],x[None],x[None])
""",
    "sdpa half": """
h=x.half()[None,None]
F.scaled_dot_product_attention(h,h,h)
b=x.bfloat16()[None,None]
F.scaled_dot_product_attention(b,b,b)
""",
    "flex attention": """
from torch.nn.attention.flex_attention import flex_attention
q=torch.randn(1,1,16,16)
flex_attention(q,q,q)
""",
    "flex block_mask": """
from torch.nn.attention.flex_attention import create_block_mask
create_block_mask(lambda b,h,q,k: q>=k, 1,1,128,128,device='cpu')
""",
    "attention bias": """
from torch.nn.attention.bias import causal_lower_right
causal_lower_right(3,3)
""",
    "MHA": """
m=nn.MultiheadAttention(8,2,batch_first=True)
z=torch.randn(1,3,8)
m(z,z,z)
m.eval()(z,z,z)
""",
    "Transformer": """
m=nn.TransformerEncoder(nn.TransformerEncoderLayer(8,2,16,batch_first=True),1).eval()
m(torch.randn(1,3,8))
with torch.no_grad(): m(torch.randn(1,3,8), src_key_padding_mask=torch.tensor([[False,False,True]]))
""",
    "nested tensor": """
torch.nested.nested_tensor([x, x[:2]]).to_padded_tensor(0.)
torch.nested.nested_tensor([x, x[:2]], layout=torch.jagged)
""",
    "masked tensor": """
from torch.masked import masked_tensor
masked_tensor(x, x>0).sum(-1)
torch.masked.softmax(x,-1,mask=x>0)
""",
    "sparse": """
x.to_sparse()
torch.sparse.mm(x.to_sparse(), x.T)
x.to_sparse_csr() @ x.T
torch.sparse.softmax(x.to_sparse(), 1)
""",
    "quantize": """
torch.quantize_per_tensor(x,0.1,0,torch.quint8).dequantize()
torch.fake_quantize_per_tensor_affine(x,0.1,0,0,255)
""",
    "dynamic quantization": """
torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4,4)), {nn.Linear})(x)
""",
    "mkldnn": """
x.to_mkldnn().to_dense()
nn.Conv2d(1,1,3)(torch.ones(1,1,5,5))
nn.LSTM(4,4)(x)
nn.GRU(4,4)(x)
""",
    "conv": """
F.conv1d(torch.ones(1,3,9),torch.ones(3,3,3))
F.conv2d(torch.ones(1,1,9,9),torch.ones(1,1,3,3))
F.conv1d(torch.ones(1,3,9).bfloat16(),torch.ones(3,3,3).bfloat16())
F.unfold(torch.ones(1,1,9,9),3)
F.fold(F.unfold(torch.ones(1,1,9,9),3),(9,9),3)
""",
    "conv3d transposed": """
F.conv3d(torch.ones(1,1,5,5,5),torch.ones(1,1,3,3,3))
F.conv_transpose1d(torch.ones(1,3,9),torch.ones(3,3,3))
""",
    "pools": """
F.max_pool1d(torch.ones(1,3,9),3)
F.avg_pool2d(torch.ones(1,1,9,9),3)
F.adaptive_avg_pool1d(torch.ones(1,3,9),2)
F.interpolate(torch.ones(1,3,9),scale_factor=2)
""",
    "embedding bag": """
nn.EmbeddingBag(9,4)(torch.tensor([[1,2]]))
F.embedding(torch.tensor([1]),x)
F.one_hot(torch.tensor([1,2]))
""",
    "distributions": """
d=torch.distributions.Categorical(logits=x)
d.entropy()
d.log_prob(torch.tensor([0,1,2]))
d.sample()
torch.distributions.Normal(0.,1.).cdf(x)
torch.distributions.kl_divergence(d,d)
torch.distributions.MultivariateNormal(torch.zeros(2),torch.eye(2)).log_prob(torch.zeros(2))
""",
    "generator": """
g=torch.Generator().manual_seed(1)
torch.randn(3,generator=g)
torch.multinomial(torch.ones(3),2,generator=g)
torch.randperm(4,generator=g)
""",
    "rng fork": """
with torch.random.fork_rng():
    torch.rand(3)
""",
    "manual_seed": """
torch.manual_seed(0)
torch.seed()
torch.initial_seed()
""",
    "threads": """
torch.set_num_threads(4)
(torch.ones(512,512) @ torch.ones(512,512)).sum()
torch.ones(10**6).sum()
torch.get_num_threads()
""",
    "interop threads": """
torch.set_num_interop_threads(2)
""",
    "jit fork": """
f=torch.jit.fork(torch.add,x,x)
torch.jit.wait(f)
""",
    "futures": """
f=torch.futures.Future()
f.set_result(1)
f.wait()
""",
    "thread pool": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as p:
    list(p.map(lambda i: x+i, range(8)))
""",
    "save/load": """
import io
b=io.BytesIO()
torch.save({'a':x}, b)
b.seek(0)
torch.load(b)
""",
    "save file": """
torch.save(x,'a.pt')
torch.load('a.pt')
""",
    "jit save": """
import io
b=io.BytesIO()
torch.jit.save(torch.jit.script(nn.ReLU()), b)
""",
    "pickle/deepcopy": """
import pickle, copy
pickle.loads(pickle.dumps(x))
copy.deepcopy(nn.Linear(4,4))
""",
    "share_memory": """
x.clone().share_memory_()
""",
    "dataloader": """
from torch.utils.data import DataLoader, TensorDataset
list(DataLoader(TensorDataset(x), batch_size=2, shuffle=True))
""",
    "pad_sequence": """
nn.utils.rnn.pad_sequence([x[0],x[1]])
nn.utils.rnn.pack_padded_sequence(x[None],[3],batch_first=True)
""",
    "optim": """
m=nn.Linear(4,4)
p = list(m.parameters())
for o in (torch.optim.SGD(p,0.1), torch.optim.Adam(p), torch.optim.AdamW(p, fused=True), torch.optim.LBFGS(p)):
    o.zero_grad()
    l=m(x).sum()
    l.backward()
    o.step(lambda: l)
""",
    "lr scheduler": """
m=nn.Linear(4,4)
o=torch.optim.SGD(m.parameters(),0.1)
s=torch.optim.lr_scheduler.LambdaLR(o, lambda i: 1)
o.step()
s.step()
""",
    "swa": """
torch.optim.swa_utils.AveragedModel(nn.Linear(4,4))
""",
    "clip_grad": """
m=nn.Linear(4,4)
m(x).sum().backward()
nn.utils.clip_grad_norm_(m.parameters(),1.)
""",
    "foreach": """
torch._foreach_add([x,x],1.)
""",
    "special": """
torch.special.logsumexp(x,-1)
torch.special.softmax(x,-1)
torch.special.log_softmax(x,-1)
torch.special.erf(x)
torch.special.xlogy(x,x)
torch.special.i0(x)
torch.special.entr(x)
""",
    "cross_entropy": """
F.cross_entropy(x,torch.tensor([0,1,2]),label_smoothing=.1)
F.nll_loss(x.log_softmax(-1),torch.tensor([0,1,2]))
F.kl_div(x.log_softmax(-1),x.softmax(-1))
F.smooth_l1_loss(x,x)
F.ctc_loss(x[:,None].log_softmax(-1),torch.tensor([[1]]),torch.tensor([3]),torch.tensor([1]))
""",
    "numpy": """
import numpy as np
a=x.numpy()
torch.from_numpy(np.exp(a))
np.linalg.svd(a)
np.einsum('ij,kj->ik',a,a,optimize=True)
np.fft.fft(a)
np.random.default_rng(0).normal(size=3)
np.matmul(a,a.T)
np.linalg.inv(np.eye(3))
np.polyfit([1,2,3],[1,2,3],1)
a.astype(np.float16) @ a.astype(np.float16).T
""",
    "printing": """
repr(x)
print(x)
torch.set_printoptions(precision=2)
str(nn.Linear(3,3))
repr(x.half())
repr(x.bfloat16())
repr(torch.view_as_complex(torch.ones(2,2)))
""",
    "__torch_function__": """
class T(torch.Tensor):
    @classmethod
    def __torch_function__(cls, f, t, a=(), k=None):
        return super().__torch_function__(f,t,a,k or {})
x.as_subclass(T).softmax(-1)
""",
    "__torch_dispatch__": """
from torch.utils._python_dispatch import TorchDispatchMode
class M(TorchDispatchMode):
    def __torch_dispatch__(self, f, t, a=(), k=None):
        return f(*a, **(k or {}))
with M():
    x.softmax(-1)
""",
    "pytree": """
import torch.utils._pytree as p
p.tree_map(lambda a: a+1, {'a':[x]})
""",
    "hub dir": """
torch.hub.get_dir()
""",
    "backends": """
torch.backends.mkldnn.is_available()
torch.backends.cpu.get_cpu_capability()
torch.backends.cuda.is_built()
torch.cuda.is_available()
torch.backends.mps.is_available()
torch.cuda.device_count()
torch.get_default_device()
torch.accelerator.is_available()
torch.xpu.is_available()
""",
    "cpu caps": """
torch.cpu._is_avx512_supported()
torch.cpu.is_available()
torch.cpu.current_device()
torch.cpu.synchronize()
""",
    "deterministic": """
torch.use_deterministic_algorithms(True)
x.cumsum(0)
x.clone().index_add_(0,torch.tensor([0]),x[:1])
""",
    "default dtype": """
torch.set_default_dtype(torch.float64)
torch.zeros(3)
torch.set_default_dtype(torch.float32)
""",
    "inference_mode": """
with torch.inference_mode():
    x+1
""",
    "overrides": """
import torch.overrides
torch.overrides.get_overridable_functions()
""",
    "ops schema": """
torch.ops.aten.softmax.int(x,-1)
torch.ops.aten._softmax(x,-1,False)
torch.ops.aten.softmax.int._schema
""",
    "_refs": """
import torch._refs as r
r.softmax(x,-1)
""",
    "_decomp": """
from torch._decomp import get_decompositions
get_decompositions([torch.ops.aten._softmax])
""",
    "decompositions": """
from torch._decomp import core_aten_decompositions
core_aten_decompositions()
""",
    "_numpy": """
import torch._numpy as tnp
tnp.exp(x)
""",
    "higher order cond": """
torch.cond(torch.tensor(True), lambda a: a+1, lambda a: a-1, (x,))
""",
    "while_loop": """
from torch._higher_order_ops.while_loop import while_loop
while_loop(lambda i, a: i<3, lambda i, a: (i+1, a*2), (torch.tensor(0), x))
""",
    "associative_scan": """
from torch._higher_order_ops.associative_scan import associative_scan
associative_scan(lambda a,b: a+b, x, 0, combine_mode='generic')
""",
    "scan": """
from torch._higher_order_ops.scan import scan
scan(lambda c, a: (c+a, c+a), x[0], x, dim=0)
""",
    "torch.testing": """
torch.testing.assert_close(x,x)
torch.testing.make_tensor((2,),device='cpu',dtype=torch.float32)
""",
    "init": """
nn.init.xavier_uniform_(torch.empty(3,3))
nn.init.kaiming_normal_(torch.empty(3,3))
nn.init.orthogonal_(torch.empty(3,3))
nn.init.trunc_normal_(torch.empty(3,3))
""",
    "lazy modules": """
nn.LazyLinear(3)(x)
""",
    "buffer/hook": """
m=nn.Linear(4,4)
m.register_buffer('b',x)
m.register_forward_hook(lambda *a: None)
m(x)
m.register_full_backward_hook(lambda *a: None)
m(x.clone().requires_grad_()).sum().backward()
""",
    "module.compile": """
m=nn.Linear(4,4)
m.compile(backend='eager')
m(x)
""",
    "set_default_device": """
torch.set_default_device('cpu')
torch.ones(3)
""",
    "stdlib": """
import json, csv, sqlite3, decimal, fractions, statistics, functools, itertools, collections, dataclasses
import typing, enum, heapq, bisect, operator, re, string, uuid, hashlib, secrets, tempfile, logging, unittest
import doctest, argparse, multiprocessing, asyncio, concurrent.futures, ctypes, inspect, pprint, textwrap
import datetime, time, random, copy, zlib, gzip, bz2, lzma, platform, getpass, pathlib, glob, shutil
import threading, queue, contextlib, abc, types, warnings, weakref, gc, cProfile, pstats, timeit, trace
import traceback, tracemalloc, zoneinfo, locale, calendar, unicodedata, array, struct, importlib.metadata
uuid.uuid4()
secrets.token_hex()
platform.platform()
getpass.getuser()
tempfile.gettempdir()
datetime.datetime.now().astimezone()
locale.getlocale()
sqlite3.connect(':memory:').execute('select 1')
importlib.metadata.version('torch')
platform.machine()
platform.processor()
""",
    "tempfile": """
import tempfile
with tempfile.NamedTemporaryFile() as f: f.write(b'x')
with tempfile.TemporaryDirectory() as d: open(d+'/a','w').write('x')
""",
    "asyncio": """
import asyncio
async def f(): return 1
asyncio.run(f())
""",
    "multiprocessing.Lock": """
import multiprocessing
multiprocessing.Lock()
""",
    "mp dummy": """
from multiprocessing.pool import ThreadPool
with ThreadPool(2) as p: p.map(str,[1,2])
""",
    "logging": """
import logging
logging.basicConfig()
logging.warning('x')
logging.FileHandler('a.log')
""",
    "expanduser": """
import os, pathlib
os.path.expanduser('~')
pathlib.Path.home()
os.makedirs(os.path.expanduser('~/.cache/x'), exist_ok=True)
""",
    "vmap chunk": """
torch.vmap(lambda a: a*2, chunk_size=2)(x)
""",
    "bmm half": """
h=torch.randn(2,3,4).half()
torch.bmm(h,h.transpose(1,2))
b=torch.randn(2,3,4).bfloat16()
torch.bmm(b,b.transpose(1,2))
torch.baddbmm(torch.zeros(2,3,3),torch.randn(2,3,4),torch.randn(2,4,3))
""",
    "half grads": """
y=x.half().requires_grad_()
(y.float().softmax(-1).half()*2).sum().backward()
y=x.bfloat16().requires_grad_()
y.softmax(-1).sum().backward()
""",
    "half mix": """
h=x.half()
h.masked_fill(h>0,float('-inf'))
torch.where(h>0,h,h)
h.cumsum(-1)
h.logsumexp(-1)
h.amax(-1)
h.sort()
h.topk(2)
h.tril()
torch.softmax(h,-1,dtype=torch.float32)
h.double()
h.log_softmax(-1)
h.var(-1)
F.layer_norm(h,(4,))
h.numpy()
torch.nan_to_num(h)
h.clamp(0,1)
h.pow(2)
h.mul(h).sum().sqrt()
torch.einsum('ij,kj->ik',h,h)
""",
    "large matmul": """
torch.ones(700,700) @ torch.ones(700,700)
""",
    "histc/bincount": """
torch.bincount(torch.tensor([1,1]))
torch.histc(x)
torch.unique(x)
torch.cdist(x,x)
torch.cov(x)
torch.corrcoef(x)
torch.quantile(x,.5)
torch.searchsorted(x[0],x[1])
torch.combinations(x[0])
torch.cartesian_prod(x[0],x[0])
torch.block_diag(x,x)
torch.kron(x,x)
torch.trapezoid(x)
torch.tensordot(x,x.T,1)
torch.meshgrid(x[0],x[0],indexing='ij')
torch.outer(x[0],x[0])
torch.cumprod(x,0)
torch.logcumsumexp(x,0)
torch.stft(torch.ones(64),16,window=torch.ones(16),return_complex=True)
""",
    "logging torch": """
import torch._logging
torch._logging.set_logs(dynamo=20)
""",
    "distributed": """
import torch.distributed as d
d.is_available() and d.is_initialized()
""",
    "gelu variants": """
F.gelu(x,approximate='tanh')
F.silu(x)
F.mish(x)
F.glu(x)
F.rms_norm(x,(4,))
F.group_norm(x[None],3)
F.batch_norm(x,torch.zeros(4),torch.ones(4))
F.normalize(x)
F.cosine_similarity(x,x)
F.pairwise_distance(x,x)
F.gumbel_softmax(x)
F.dropout(x)
F.pad(x,(1,1))
F.multi_head_attention_forward
""",
}
