// NS objects: references, pools, strings, arrays, data, coders.
#include <gtest/gtest.h>

#include <thread>

#include "Foundation/Foundation.hpp"

namespace {

struct Counted : NS::Referencing<Counted> {
  explicit Counted(int* alive) : alive_(alive) { ++*alive_; }
  ~Counted() override { --*alive_; }
  int* alive_;
};

TEST(Foundation, RetainRelease) {
  int alive = 0;
  Counted* object = new Counted(&alive);
  EXPECT_EQ(object->retainCount(), 1u);
  EXPECT_EQ(object->retain(), object);
  EXPECT_EQ(object->retainCount(), 2u);
  object->release();
  EXPECT_EQ(alive, 1);
  object->release();
  EXPECT_EQ(alive, 0);
}

TEST(Foundation, SharedPointers) {
  int alive = 0;
  {
    auto owner = NS::TransferPtr(new Counted(&alive));
    EXPECT_EQ(owner->retainCount(), 1u);
    auto second = NS::RetainPtr(owner.get());
    EXPECT_EQ(owner->retainCount(), 2u);
    NS::SharedPtr<NS::Object> base = second;
    EXPECT_EQ(owner->retainCount(), 3u);
    NS::SharedPtr<Counted> moved = std::move(second);
    EXPECT_FALSE(bool(second));
    EXPECT_EQ(owner->retainCount(), 3u);
    base = nullptr;
    moved = NS::SharedPtr<Counted>(moved);
    EXPECT_EQ(owner->retainCount(), 2u);
    Counted* raw = moved.detach();
    EXPECT_EQ(raw->retainCount(), 2u);
    raw->release();
    EXPECT_TRUE(owner == NS::RetainPtr(owner.get()));
  }
  EXPECT_EQ(alive, 0);
}

TEST(Foundation, PoolsNest) {
  int outer_alive = 0, inner_alive = 0;
  auto* outer = NS::AutoreleasePool::alloc()->init();
  (new Counted(&outer_alive))->autorelease();
  auto* inner = NS::AutoreleasePool::alloc()->init();
  (new Counted(&inner_alive))->autorelease();
  inner->drain();
  EXPECT_EQ(inner_alive, 0);
  EXPECT_EQ(outer_alive, 1);
  auto* forgotten = NS::AutoreleasePool::alloc()->init();
  (new Counted(&inner_alive))->autorelease();
  outer->release();  // takes the pools inside with it
  EXPECT_EQ(outer_alive, 0);
  EXPECT_EQ(inner_alive, 0);
  forgotten->release();
}

TEST(Foundation, ReleasingMayAutorelease) {
  struct Chain : NS::Referencing<Chain> {
    explicit Chain(int* alive, int more) : alive_(alive), more_(more) { ++*alive_; }
    ~Chain() override {
      --*alive_;
      if (more_ > 0) (new Chain(alive_, more_ - 1))->autorelease();
    }
    int *alive_, more_;
  };
  int alive = 0;
  auto* pool = NS::AutoreleasePool::alloc()->init();
  (new Chain(&alive, 5))->autorelease();
  pool->drain();
  EXPECT_EQ(alive, 0);
}

TEST(Foundation, ThreadWithoutPool) {
  int alive = 0;
  std::thread([&] {
    for (int i = 0; i < 10; ++i) (new Counted(&alive))->autorelease();
    EXPECT_EQ(alive, 10);
  }).join();
  EXPECT_EQ(alive, 0);
}

TEST(Foundation, Strings) {
  auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
  NS::String* s = MTLSTR(
      "gr\xc3\xb6\xc3\x9f"
      "e \xf0\x9f\x99\x82");
  EXPECT_EQ(s->length(), 8u);  // the smiley is two units of UTF-16
  EXPECT_EQ(s->lengthOfBytes(NS::UTF8StringEncoding), 12u);
  EXPECT_TRUE(s->isEqualToString(NS::String::string(s)));
  EXPECT_TRUE(s->isEqual(NS::TransferPtr(s->copy()).get()));
  EXPECT_EQ(s->hash(), NS::String::string(s)->hash());
  EXPECT_FALSE(s->isEqual(NS::Array::array()));
  EXPECT_EQ(NS::String::string(static_cast<const char*>(nullptr)), nullptr);
}

TEST(Foundation, Arrays) {
  int alive = 0;
  {
    auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    auto a = NS::TransferPtr(new Counted(&alive)), b = NS::TransferPtr(new Counted(&alive));
    const NS::Object* objects[] = {a.get(), b.get(), a.get()};
    NS::Array* array = NS::Array::array(objects, 3);
    EXPECT_EQ(array->count(), 3u);
    EXPECT_EQ(array->object<Counted>(1), b.get());
    EXPECT_EQ(array->object(3), nullptr);
    EXPECT_EQ(a->retainCount(), 3u);
    EXPECT_TRUE(array->isEqual(NS::TransferPtr(array->copy()).get()));
    objects[1] = nullptr;
    EXPECT_EQ(NS::Array::array(objects, 3), nullptr);
    EXPECT_EQ(NS::Array::array(nullptr, 1), nullptr);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Foundation, Coders) {
  auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
  NS::Coder* coder = NS::Coder::coder();
  coder->encodeInteger(-5, "five");
  coder->encodeInteger(NS::IntegerMin, "least");
  coder->encodeString(MTLSTR("text"), "text");
  NS::Coder* inner = NS::Coder::coder();
  inner->encodeInteger(7, "seven");
  coder->encodeCoder(inner, "inner");
  NS::Coder* back = NS::Coder::coder(coder->data());
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->decodeInteger("five"), -5);
  EXPECT_EQ(back->decodeInteger("least"), NS::IntegerMin);
  EXPECT_EQ(back->decodeInteger("missing", 3), 3);
  EXPECT_EQ(back->decodeInteger("text", 3), 3);
  EXPECT_STREQ(back->decodeString("text")->utf8String(), "text");
  EXPECT_EQ(back->decodeString("five"), nullptr);
  EXPECT_EQ(back->decodeCoder("inner")->decodeInteger("seven"), 7);
  EXPECT_TRUE(back->data()->isEqual(coder->data()));
  coder->fail("no");
  EXPECT_EQ(coder->data(), nullptr);
  EXPECT_EQ(NS::Coder::coder(NS::Data::data("BNNSARC1\xff\xff\xff\xff", 12)), nullptr);
  EXPECT_EQ(NS::Data::data(nullptr, 3), nullptr);
}

}  // namespace
