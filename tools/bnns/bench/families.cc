#include "tools/bnns/bench/families.h"

namespace bnns::tool {

// Of ResNet-50, LeNet, MobileNet, VGG-16, BERT-base and their like, with the batches of a small training step.
const std::vector<Family>& bench_families() {
  static const std::vector<Family> all = {
      {"convolution",
       {"conv convolution forward f32 n=4 i=64 h=56 w=56 o=64 kh=3 kw=3 py=1 px=1",
        "conv convolution dx f32 n=4 i=64 h=56 w=56 o=64 kh=3 kw=3 py=1 px=1",
        "conv convolution dw f32 n=4 i=64 h=56 w=56 o=64 kh=3 kw=3 py=1 px=1",
        "conv convolution forward f32 n=4 i=256 h=14 w=14 o=1024 kh=1 kw=1",
        "conv convolution forward f32 n=32 i=1 h=28 w=28 o=20 kh=5 kw=5",
        "conv convolution forward bf16 n=4 i=64 h=56 w=56 o=64 kh=3 kw=3 py=1 px=1",
        "depthwise convolution forward f32 n=4 i=128 h=56 w=56 o=128 kh=3 kw=3 py=1 px=1 g=128"}},
      {"fully_connected",
       {"fully_connected fully_connected forward f32 n=1 in=768 out=3072",
        "fully_connected fully_connected forward f32 n=64 in=784 out=128",
        "fully_connected fully_connected dx f32 n=64 in=784 out=128",
        "fully_connected fully_connected dw f32 n=64 in=784 out=128",
        "fully_connected fully_connected forward bf16 n=64 in=1024 out=1024"}},
      {"matmul",
       {"matmul matmul forward f32 m=512 n=512 k=512", "matmul matmul forward f32 batch=12 m=128 n=128 k=64 tb=1",
        "matmul matmul forward bf16 m=512 n=512 k=512"}},
      {"pooling",
       {"pool max forward f32 n=8 c=64 h=112 w=112 kh=3 kw=3 sy=2 sx=2 py=1 px=1",
        "pool max backward f32 n=8 c=64 h=112 w=112 kh=3 kw=3 sy=2 sx=2 py=1 px=1",
        "pool average forward f32 n=8 c=256 h=28 w=28 kh=2 kw=2 sy=2 sx=2",
        "pool average backward f32 n=8 c=256 h=28 w=28 kh=2 kw=2 sy=2 sx=2"}},
      {"normalization",
       {"normalization batch forward f32 n=8 c=64 h=56 w=56", "normalization batch backward f32 n=8 c=64 h=56 w=56",
        "normalization layer forward f32 n=512 c=768", "normalization layer backward f32 n=512 c=768"}},
      {"activation",
       {"activation relu forward f32 rows=512 columns=3072", "activation gelu forward f32 rows=512 columns=3072",
        "activation softmax forward f32 rows=512 columns=512", "activation softmax backward f32 rows=512 columns=512"}},
      {"loss", {"loss softmax forward f32 n=128 c=1000", "loss huber forward f32 n=128 c=1000"}},
      {"optimizer", {"optimizer adam step f32 count=1000000", "optimizer momentum step f32 count=1000000"}},
      {"arithmetic",
       {"arithmetic add forward f32 a=512 b=3072", "arithmetic multiply forward f32 a=512 b=3072 broadcast=1",
        "arithmetic exp forward f32 a=512 b=3072"}},
      {"attention",
       {"attention self forward f32 n=2 l=128 h=12 d=64", "attention self backward f32 n=2 l=128 h=12 d=64"}},
      {"lstm", {"lstm lstm forward f32 t=16 n=16 in=128 h=256", "lstm lstm backward f32 t=16 n=16 in=128 h=256"}},
      {"embedding",
       {"embedding embedding forward f32 rows=10000 columns=256 count=512",
        "embedding embedding backward f32 rows=10000 columns=256 count=512"}},
      {"reduction",
       {"reduction sum forward f32 a=512 b=3072 mask=2", "reduction sum forward f32 a=512 b=3072 mask=1",
        "reduction max forward f32 a=8 b=64 c=56 d=56 mask=12"}},
      {"permute",
       {"permute permute forward f32 a=8 b=64 c=56 d=56 axes=0231", "copy to_f32 forward bf16 a=512 b=3072",
        "copy to_f32 forward f32 a=512 b=3072 skip=1"}},
      {"resize", {"resize linear forward f32 n=4 c=32 h=56 w=56 oh=112 ow=112"}},
      {"gather", {"gather gather forward f32 outer=1 size=10000 inner=256 count=512"}},
      {"topk", {"topk topk forward f32 a=128 b=1000 k=5"}},
      {"tile", {"tile tile forward f32 a=64 b=256 ra=4 rb=2"}},
      {"padding", {"padding constant forward f32 a=8 b=64 c=56 d=56 pc=1 pd=1"}},
      {"gram", {"gram gram forward f32 c=64 h=56 w=56"}},
  };
  return all;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& each : bench_families()) names.push_back(each.name);
  return names;
}

}  // namespace bnns::tool
