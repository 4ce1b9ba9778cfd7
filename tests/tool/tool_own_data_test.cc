// The readers of a user's own data: JPEG files, scaling, fields of CSV files, the choice of what is held out; and that
// no damage to a file is more than a refusal.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "tools/bnns/data/csv.h"
#include "tools/bnns/data/data_error.h"
#include "tools/bnns/data/own_data.h"
#include "tools/bnns/data/picture.h"
#include "tools/bnns/data/prng.h"
#include "tools/bnns/model/train.h"

#if BNNS_HAVE_JPEG
#include <jpeglib.h>
#endif

namespace bnns::tool {
namespace {

namespace fs = std::filesystem;

class OwnData : public testing::Test {
 protected:
  OwnData() : folder_(fs::temp_directory_path() / ("bnns_own_data_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~OwnData() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& content) {
    const fs::path file = folder_ / name;
    std::ofstream(file, std::ios::binary) << content;
    return file.string();
  }
  fs::path folder_;
};

std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

// Cuts a good file at every length, and changes its bytes: each reading ends, well or with a DataError.
void survive(const std::string& good, const std::function<void(const std::string&)>& read) {
  for (std::size_t n = 0; n < good.size(); n += 1 + good.size() / 100) refusal([&] { read(good.substr(0, n)); });
  Prng random(1);
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    for (int k = 0; k < 1 + i % 4; ++k) {
      bad[random.below(static_cast<std::uint32_t>(bad.size()))] = static_cast<char>(random.next());
    }
    refusal([&] { read(bad); });
  }
}

#if BNNS_HAVE_JPEG

// Left half red, right half blue, or the same in grey.
std::string jpeg(std::size_t rows, std::size_t columns, bool colour, bool progressive) {
  jpeg_compress_struct state{};
  jpeg_error_mgr errors{};
  state.err = jpeg_std_error(&errors);
  jpeg_create_compress(&state);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&state, &bytes, &size);
  state.image_width = static_cast<JDIMENSION>(columns), state.image_height = static_cast<JDIMENSION>(rows);
  state.input_components = colour ? 3 : 1;
  state.in_color_space = colour ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&state);
  jpeg_set_quality(&state, 95, TRUE);
  if (progressive) jpeg_simple_progression(&state);
  jpeg_start_compress(&state, TRUE);
  std::vector<JSAMPLE> row;
  for (std::size_t x = 0; x < columns; ++x) {
    const bool left = x < columns / 2;
    if (colour) {
      row.insert(row.end(), {JSAMPLE(left ? 250 : 0), JSAMPLE(0), JSAMPLE(left ? 0 : 250)});
    } else {
      row.push_back(left ? 200 : 20);
    }
  }
  for (std::size_t y = 0; y < rows; ++y) {
    JSAMPROW lines[] = {row.data()};
    jpeg_write_scanlines(&state, lines, 1);
  }
  jpeg_finish_compress(&state);
  std::string out(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&state);
  std::free(bytes);
  return out;
}

TEST_F(OwnData, ReadsJpeg) {
  for (const bool progressive : {false, true}) {
    const std::string colour = write("colour.jpg", jpeg(24, 32, true, progressive));
    const PictureKind kind = picture_kind(colour);
    EXPECT_EQ(kind.rows, 24u);
    EXPECT_EQ(kind.columns, 32u);
    EXPECT_TRUE(kind.colour);
    const Picture three = read_picture(colour, 3), one = read_picture(colour, 1);
    ASSERT_EQ(three.pixels.size(), 3u * 24 * 32);
    EXPECT_NEAR(three.pixels[0], 250, 8);  // red, in its own plane
    EXPECT_NEAR(three.pixels[31], 0, 8);
    EXPECT_NEAR(three.pixels[2 * 24 * 32 + 31], 250, 8);  // blue
    EXPECT_NEAR(one.pixels[0], 0.299 * 250, 8);
    const std::string grey = write("grey.jpg", jpeg(5, 6, false, progressive));
    EXPECT_FALSE(picture_kind(grey).colour);
    EXPECT_NEAR(read_picture(grey, 1).pixels[0], 200, 8);
    EXPECT_NEAR(read_picture(grey, 3).pixels[2 * 30 + 29], 20, 8);
  }
}

TEST_F(OwnData, RefusesDamagedJpeg) {
  const std::string good = jpeg(24, 32, true, false);
  EXPECT_NE(refusal([&] {
              read_picture(write("cut.jpg", good.substr(0, good.size() / 2)), 1);
            }).find("cut.jpg: is no good JPEG file: "),
            std::string::npos);
  std::string huge = good;
  const std::size_t frame = huge.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  huge.replace(frame + 5, 4, "\xf0\x01\xf0\x01");  // rows and columns, before there is memory for them
  EXPECT_NE(refusal([&] { read_picture(write("huge.jpg", huge), 1); }).find("is of 61441 x 61441 pixels, expected at"),
            std::string::npos);
  for (const bool progressive : {false, true}) {
    survive(jpeg(24, 32, true, progressive), [&](const std::string& bytes) { read_picture(write("x.jpg", bytes), 3); });
  }
}

TEST_F(OwnData, LearnsFoldersOfJpeg) {
  for (const char* name : {"a", "b"}) {
    fs::create_directories(folder_ / "jpeg" / name);
    for (int i = 0; i < 5; ++i) {
      write("jpeg/" + std::string(name) + "/" + std::to_string(i) + ".jpeg", jpeg(16, 16, name[0] == 'b', false));
    }
  }
  const DataSplit data = read_own_data(folder_ / "jpeg", {});
  EXPECT_EQ(data.train.count(), 8u);
  EXPECT_EQ(data.test.count(), 2u);
  EXPECT_EQ(data.train.channels, 3u);  // one class is in colour
  EXPECT_EQ(data.train.pixels.size(), 8u * 3 * 256);
}

#else

TEST_F(OwnData, SaysThatThereIsNoLibjpeg) {
  EXPECT_NE(refusal([&] { picture_kind(write("x.jpg", "\xff\xd8\xff\xe0")); }).find("was built without libjpeg"),
            std::string::npos);
}

#endif

TEST(Scaled, IsTheMeanOfTheArea) {
  const Picture in{2, 4, 1, {0, 10, 20, 30, 40, 50, 60, 70}};
  EXPECT_EQ(scaled(in, 1, 2).pixels, (std::vector<std::uint8_t>{25, 45}));
  EXPECT_EQ(scaled(in, 2, 4).pixels, in.pixels);
  EXPECT_EQ(scaled({1, 2, 1, {0, 90}}, 1, 3).pixels, (std::vector<std::uint8_t>{0, 45, 90}));
  EXPECT_EQ(scaled({1, 1, 3, {1, 2, 3}}, 2, 2).pixels, (std::vector<std::uint8_t>{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}));
  for (std::size_t side : {1, 3, 7, 64}) {
    const Picture flat = scaled({5, 9, 1, std::vector<std::uint8_t>(45, 255)}, side, side);
    EXPECT_EQ(flat.pixels, std::vector<std::uint8_t>(side * side, 255));
  }
}

TEST(LoadItem, MovesAndMirrorsEveryChannel) {
  Dataset set;
  set.rows = 1, set.columns = 3, set.channels = 2;
  set.pixels = {10, 20, 30, 40, 50, 0}, set.labels = {0};
  const auto loaded = [&](Change change) {
    std::vector<float> x(6);
    load_item(set, 0, change, x.data());
    for (float& each : x) each = std::round(255 * each);
    return x;
  };
  EXPECT_EQ(loaded({0, 0, true}), (std::vector<float>{30, 20, 10, 0, 50, 40}));
  EXPECT_EQ(loaded({1, 0, true}), (std::vector<float>{0, 30, 20, 0, 0, 50}));
  EXPECT_EQ(loaded({-1, 0, false}), (std::vector<float>{20, 30, 0, 50, 0, 0}));
  EXPECT_EQ(loaded({0, 1, false}), std::vector<float>(6));
}

TEST(LearningRate, FollowsItsSchedule) {
  TrainOptions o;
  o.learning_rate = 1;
  const auto rates = [&](const char* schedule) {
    o.schedule = schedule;
    std::vector<float> all;
    for (const std::size_t step : {0, 20, 50, 75, 99}) all.push_back(learning_rate_at(o, step, 100));
    return all;
  };
  EXPECT_EQ(rates("constant"), (std::vector<float>{1, 1, 1, 1, 1}));
  EXPECT_EQ(rates("step"), (std::vector<float>{1, 1, 0.1f, 0.01f, 0.01f}));
  EXPECT_EQ(rates("linear"), (std::vector<float>{1, 0.8f, 0.5f, 0.25f, 0.01f}));
  const std::vector<float> cosine = rates("cosine");
  EXPECT_FLOAT_EQ(cosine[0], 1);
  EXPECT_NEAR(cosine[2], 0.5, 1e-6);
  EXPECT_NEAR(cosine[3], 0.146447, 1e-5);
}

TEST(HeldOut, TakesItsShareOfEveryClass) {
  std::vector<std::uint16_t> labels;
  for (int i = 0; i < 131; ++i) labels.push_back(i < 100 ? 0 : i < 130 ? 1 : 2);  // the third class has one
  for (const float share : {0.01f, 0.2f, 0.9f}) {
    const std::vector<bool> held = held_out(labels, 3, share, 1, "x");
    std::size_t count[3] = {};
    for (std::size_t i = 0; i < labels.size(); ++i) count[labels[i]] += held[i] ? 1 : 0;
    EXPECT_EQ(count[0], static_cast<std::size_t>(100 * share + 0.5f));
    EXPECT_EQ(count[1], std::max<std::size_t>(1, static_cast<std::size_t>(30 * share + 0.5f)));
    EXPECT_EQ(count[2], 0u);
    EXPECT_EQ(held, held_out(labels, 3, share, 1, "x"));
    EXPECT_NE(held, held_out(labels, 3, share, 2, "x"));
  }
}

TEST_F(OwnData, ReadsFields) {
  const auto lines = [&](const std::string& text) {
    Csv csv(write("x.csv", text));
    std::string all;
    for (std::vector<std::string> row; csv.next(row);) {
      all += std::to_string(csv.line());
      for (const std::string& field : row) all += "[" + field + "]";
    }
    return all;
  };
  EXPECT_EQ(lines("a, b ,c\n1,,3"), "1[a][b][c]2[1][][3]");
  EXPECT_EQ(lines("\n\na;b,c\n"), "3[a][b,c]");
  EXPECT_EQ(lines("a\tb;c\r\n\r\nd\te\r\n"), "1[a][b;c]3[d][e]");
  EXPECT_EQ(lines("\"a,\"\"x\"\"\n\" , b\nc,d\n"), "1[a,\"x\"\n][b]3[c][d]");
  EXPECT_EQ(lines("\"\"\n,\n"), "1[]2[][]");
  EXPECT_EQ(lines(""), "");
  for (const char* bad : {"", "x", "1x", "0x10", "nan", "inf", "-", "1,5", "1e39", "++1", "1 2"}) {
    EXPECT_FALSE(number_in(bad)) << bad;
  }
  EXPECT_EQ(number_in("+1.5e2"), 150.0f);
  EXPECT_EQ(number_in("-.5"), -0.5f);
}

TEST_F(OwnData, SurvivesAnyTable) {
  std::string good = "wide,\"high, too\",kind\n";
  for (int i = 0; i < 60; ++i)
    good += std::to_string(i % 7) + "," + std::to_string(i * 0.5) + ",\"k" + std::to_string(i % 3) + "\"\n";
  survive(good, [&](const std::string& text) { read_own_data(write("x.csv", text), {}); });
}

TEST_F(OwnData, SurvivesAnyText) {
  std::string good;
  for (int i = 0; i < 60; ++i) good += "na\u00efve \u20ac\U0001f600 words\n";
  const auto read = [&](const std::string& text) { read_own_data(write("x.txt", text), {.text = true}); };
  EXPECT_EQ(refusal([&] { read(good); }), "");
  survive(good, read);
  for (const char* bad : {"\x80", "\xc0\x80", "\xe2\x82", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_NE(refusal([&] { read(good + bad); }).find("is not UTF-8"), std::string::npos);
  }
}

TEST_F(OwnData, TextsBecomeWindows) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i % 26);
  const DataSplit data = read_own_data(write("x.txt", text), {.text = true});
  EXPECT_EQ(data.classes.size(), 26u);
  EXPECT_EQ(data.train.count(), 799 / kTextSteps);
  EXPECT_EQ(data.test.count(), 199 / kTextSteps);
  for (std::size_t i = 0; i < data.train.labels.size(); ++i) {
    ASSERT_EQ(data.train.pixels[i], i % 26);
    ASSERT_EQ(data.train.labels[i], (i + 1) % 26);  // the next one, across windows too
  }
  for (const char* each : {" ", "\n", "\t", "\r", "x", "\u00e4"})
    EXPECT_EQ(named_character(character_name(each)), each);
}

}  // namespace
}  // namespace bnns::tool
