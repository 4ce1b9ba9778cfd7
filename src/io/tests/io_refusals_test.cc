// Every reason for which a file, a name or an array is refused: one line that has the file and says what was found and
// what was expected, nothing written, nothing left behind.

#include <sys/stat.h>
#include <unistd.h>

#include "src/io/tests/io_testing.h"

namespace bnns::io::testing {
namespace {

void expect_reason(const std::string& part) {
  const std::string reason = BNNSExtLastError();
  EXPECT_NE(reason.find(part), std::string::npos) << "\"" << reason << "\" does not say \"" << part << "\"";
  EXPECT_EQ(reason.find('\n'), std::string::npos) << reason;
  BNNSExtClearLastError();
}

class IoRefusals : public ::testing::Test {
 protected:
  // The file is refused in both modes, for this reason.
  void refused(const std::string& bytes, const std::string& reason) {
    SCOPED_TRACE(bytes.substr(std::min<size_t>(bytes.size(), 8), 100));
    write_bytes(path_, bytes);
    for (const BNNSExtArrayFileMode mode : {BNNSExtArrayFileRead, BNNSExtArrayFileMap}) {
      for (const std::string& part : {"BNNSExtArrayFileOpen: " + path_ + ": ", reason}) {
        EXPECT_FALSE(open_file(path_, mode));
        expect_reason(part);
      }
    }
  }
  void refused_header(const std::string& header, const std::string& reason) { refused(file_of(header), reason); }

  // One array of 4 bytes with these fields.
  void refused_array(const std::string& fields, const std::string& reason) {
    refused(file_of("{\"w\":{" + fields + "}}", "abcd"), reason);
  }

  void refused_save(const BNNSNDArrayDescriptor* d, const char* name, const std::string& reason) {
    const BNNSExtNamedArray arrays[] = {{name, d}};
    EXPECT_EQ(BNNSExtArraysSave(path_.c_str(), 1, arrays, 0, nullptr), -1);
    expect_reason(reason);
    EXPECT_EQ(folder_.files(), 0u);
  }

  Folder folder_;
  std::string path_ = folder_ / "f";
};

TEST_F(IoRefusals, FilesThatAreNone) {
  EXPECT_FALSE(BNNSExtArrayFileOpen(nullptr, BNNSExtArrayFileRead));
  expect_reason("file is NULL, expected a path");
  EXPECT_FALSE(open_file(""));
  expect_reason("file is \"\", expected a path");
  EXPECT_FALSE(open_file(path_, static_cast<BNNSExtArrayFileMode>(2)));
  expect_reason("mode is 2, expected BNNSExtArrayFileRead or BNNSExtArrayFileMap");
  EXPECT_FALSE(open_file(path_));
  expect_reason("/f: cannot be opened: No such file or directory");
  EXPECT_FALSE(open_file(folder_.path()));
  expect_reason("is not a regular file");
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(open_file(path_));  // and does not wait for a writer
  expect_reason("/f: is not a regular file");
  EXPECT_FALSE(open_file(folder_ / (std::string(300, 'x') + "\n\xff")));
  expect_reason("xxx??: cannot be opened: File name too long");
}

TEST_F(IoRefusals, LengthOfTheHeader) {
  refused("", "the file has 0 bytes, expected 8 and more");
  refused("1234567", "the file has 7 bytes, expected 8 and more");
  refused(std::string("\x01\0\0\0\0\0\0\0", 8),
          "the length of the header is 1, expected at most 0 = the rest of the file");
  refused(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10),
          "the length of the header is 18446744073709551615, expected at most 100000000");
  refused(std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10),
          "the length of the header is 100000001, expected at most 100000000");
  refused(std::string("\x03\0\0\0\0\0\0\0{}", 10), "the length of the header is 3, expected at most 2");
  refused(std::string(8, '\0'), "the header does not begin with '{'");
  refused_header(" {}", "the header does not begin with '{'");
  refused_header("\x80\x02}", "the header does not begin with '{'");
}

TEST_F(IoRefusals, Json) {
  refused_header("{ ", "the header ends at byte 2, expected a text in quotes");
  refused_header("{}x", "byte 2 of the header is 'x', expected nothing but spaces after the object");
  refused_header(std::string("{}\0", 3), "byte 2 of the header is 0x00, expected nothing but spaces");
  refused_header("{1}", "byte 1 of the header is '1', expected a text in quotes");
  refused_header("{,}", "byte 1 of the header is ',', expected a text in quotes");
  refused_header("{\"a", "the header ends at byte 3, expected the end of a text");
  refused_header("{\"a\"}", "byte 4 of the header is '}', expected ':' after a name");
  refused_header("{\"a\":1}", "byte 5 of the header is '1', expected '{', the beginning of an array");
  refused_header("{\"a\":[[[[", "byte 5 of the header is '[', expected '{'");
  refused_header("{\"a\":{\"dtype\":{\"a\":{\"a\":1}}}}", "byte 14 of the header is '{', expected a text in quotes");
  refused_header("{\"a\":{}}", "byte 6 of the header is '}', expected a text in quotes");
  refused_header("{\"a\\x\":1}", "byte 4 of the header is 'x', expected one of \" \\ / b f n r t u");
  refused_header("{\"a\\", "the header ends at byte 4, expected the rest of an escape");
  refused_header("{\"a\\u12", "the header ends at byte 7, expected four hexadecimal digits");
  refused_header("{\"a\\u12g4\":1}", "byte 7 of the header is 'g', expected four hexadecimal digits");
  refused_header("{\"\\u0000\":1}", "byte 3 of the header is 'u', expected no NUL in a text");
  refused_header("{\"\\ud800\":1}", "expected both halves of a surrogate pair");
  refused_header("{\"\\ud800\\u0041\":1}", "expected both halves of a surrogate pair");
  refused_header("{\"\\udc00\":1}", "expected both halves of a surrogate pair");
  refused_header("{\"\n\":1}", "byte 2 of the header is 0x0a, expected no control character in a text");
  for (const char* bad : {"\x80", "\xc0\xaf", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe5\xb1"}) {
    refused_header(std::string("{\"") + bad + "\":1}", "expected UTF-8");
  }
}

TEST_F(IoRefusals, FieldsOfAnArray) {
  const std::string good = R"("dtype":"F32","shape":[1],"data_offsets":[0,4])";
  refused_array(R"("shape":[1],"data_offsets":[0,4])", "w: dtype is missing");
  refused_array(R"("dtype":"F32","data_offsets":[0,4])", "w: shape is missing");
  refused_array(R"("dtype":"F32","shape":[1])", "w: data_offsets is missing");
  refused_array(good + R"(,"shape":[1])", "w: shape is there twice, expected once");
  refused_array(good + R"(,"strides":[1])", "w: field strides, expected dtype, shape or data_offsets");
  refused_array(good + ",", "expected a text in quotes");
  refused_array(good + " 1", "expected ',' or '}' after a field");
  refused_array(R"("dtype" "F32")", "expected ':' after a field");
  refused_array(R"("dtype":"F128","shape":[1],"data_offsets":[0,4])",
                "w: dtype is F128, expected F32, F16, BF16, I8 to I64");
  refused_array(R"("dtype":"f32","shape":[1],"data_offsets":[0,4])", "w: dtype is f32, expected");
  refused_array(R"("dtype":"F32","shape":1,"data_offsets":[0,4])", "expected '[', the beginning of a shape");
  refused_array(R"("dtype":"F32","shape":[1 2],"data_offsets":[0,4])", "expected ',' or ']' after an extent");
  refused_array(R"("dtype":"F32","shape":[1,],"data_offsets":[0,4])", "is ']', expected a whole number");
  refused_array(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", "is '-', expected a whole number");
  refused_array(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])", "is '.', expected a whole number");
  refused_array(R"("dtype":"F32","shape":[1e0],"data_offsets":[0,4])", "is 'e', expected a whole number");
  refused_array(R"("dtype":"F32","shape":[01],"data_offsets":[0,4])", "expected a number without leading zeros");
  refused_array(R"("dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,4])",
                "begins a number that does not fit in 64 bits");
  refused_array(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4])", "w: shape has more than 8 axes");
  refused_array(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4])",
                "w: shape does not fit in 64 bits");
  refused_array(R"("dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4])",
                "w: shape does not fit in 64 bits");
  refused_array(R"("dtype":"F32","shape":[1],"data_offsets":[0])", "expected ',' between two offsets");
  refused_array(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,8])", "expected ']' after two offsets");
  refused_array(R"("dtype":"F32","shape":[1],"data_offsets":{})", "expected '[', the beginning of data_offsets");
  refused_array(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])",
                "w: data_offsets are 4 and 0, expected 4 bytes between them");
  refused_array(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])",
                "w: data_offsets are 0 and 4, expected 8 bytes between them");
  refused_array(R"("dtype":"F16","shape":[1],"data_offsets":[0,4])",
                "expected 2 bytes between them = shape and dtype F16");
  refused_array(R"("dtype":"F32","shape":[0,18446744073709551615],"data_offsets":[0,4])",
                "expected 0 bytes between them");
}

TEST_F(IoRefusals, HolesOverlapsAndDuplicates) {
  const auto array = [](const char* name, int begin, int end) {
    return "\"" + std::string(name) + "\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(end - begin) +
           "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  const std::string data = "0123456789";
  const auto file = [&](const std::string& a, const std::string& b) { return file_of("{" + a + "," + b + "}", data); };
  refused(file(array("a", 0, 4), array("b", 5, 10)),
          "b: data_offsets begin at 5, expected 4 = the end of the array before it: there is a hole");
  refused(file(array("a", 0, 6), array("b", 5, 10)),
          "b: data_offsets begin at 5, expected 6 = the end of the array before it: they overlap");
  refused(file(array("a", 0, 10), array("b", 0, 10)), "data_offsets begin at 0, expected 10");
  refused(file(array("a", 0, 10), array("b", 5, 5)), "b: data_offsets begin at 5, expected 10");
  refused(file(array("a", 1, 5), array("b", 5, 10)), "a: data_offsets begin at 1, expected 0");
  refused(file(array("a", 0, 5), array("b", 5, 9)),
          "the arrays have 9 bytes, expected 10 = the bytes after the header");
  refused(file(array("a", 0, 5), array("b", 5, 11)), "b: data_offsets end at 11, expected at most 10");
  refused(file(array("a", 0, 5), array("a", 5, 10)), "a is there twice, expected once");
  refused(file(array("a", 0, 5), array("\\u0061", 5, 10)), "a is there twice, expected once");
  refused(file_of("{}", "x"), "the arrays have 0 bytes, expected 1");
  // A hostile name stays one line, and a message does not grow with it.
  refused(file(array("\\n\\u001b[31m", 0, 4), array("b", 5, 10)), "b: data_offsets");
  refused(file(array("b", 0, 4), array((std::string(5000, 'n') + "\\n").c_str(), 5, 10)),
          "nnnnnnnn...: data_offsets begin at 5");
}

TEST_F(IoRefusals, Metadata) {
  refused_header("{\"__metadata__\":1}", "expected '{', the beginning of __metadata__");
  refused_header("{\"__metadata__\":{\"a\":1}}", "is '1', expected a text in quotes");
  refused_header("{\"__metadata__\":{\"a\":{}}}", "is '{', expected a text in quotes");
  refused_header("{\"__metadata__\":{\"a\"}}", "expected ':' after a key");
  refused_header("{\"__metadata__\":{\"a\":\"b\"", "expected ',' or '}' after a pair");
  refused_header("{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", "__metadata__: key a is there twice");
  refused_header("{\"__metadata__\":{},\"__metadata__\":{}}", "__metadata__ is there twice");
}

TEST_F(IoRefusals, CopiesAndViews) {
  write_bytes(
      path_,
      file_of(
          R"({"b":{"dtype":"BOOL","shape":[3],"data_offsets":[24,27]},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
          R"("u":{"dtype":"F32","shape":[1],"data_offsets":[27,31]}})",
          std::string(24, 'w') + std::string("\x01\x02\x00", 3) + "uuuu"));
  const File file = open_file(path_);
  ASSERT_TRUE(file) << BNNSExtLastError();
  std::vector<float> x(8, 7.0f);
  const auto copy = [&](const char* name, const BNNSNDArrayDescriptor& d, const std::string& reason) {
    EXPECT_EQ(BNNSExtArrayFileCopy(file.get(), name, &d), -1);
    expect_reason(reason);
    EXPECT_EQ(x, std::vector<float>(8, 7.0f)) << "written by a refused call";
  };
  using D = std::initializer_list<size_t>;
  const auto f32 = [&](BNNSDataLayout layout, D sizes, D strides = {}) {
    return describe(layout, sizes, BNNSDataTypeFloat32, x.data(), strides);
  };
  copy("v", f32(BNNSDataLayoutVector, {6}), "f: v is not there, expected one of its 3 arrays");
  copy("w", f32(BNNSDataLayoutVector, {6}), "f: w: the array is [6], expected [2,3] = shape in the file");
  copy("w", f32(BNNSDataLayoutRowMajorMatrix, {2, 3}), "f: w: the array is [3,2], expected [2,3]");
  copy("w", f32(BNNSDataLayout2DFirstMajor, {3, 2}), "f: w: the array is [3,2], expected [2,3]");
  copy("w", f32(BNNSDataLayoutRowMajorMatrix, {3, 2}, {1, 2}),
       "w is f32 3x2: elements (0, 1) and (2, 0) share an address");
  copy("w", f32(BNNSDataLayoutRowMajorMatrix, {3, 0}), "w.size[1] is 0");
  copy("w", f32(static_cast<BNNSDataLayout>(7), {3}), "w.layout is");
  copy("w", f32(BNNSDataLayoutConvolutionWeightsOIHW_Pack32, {1, 1, 3, 2}),
       "w.layout is BNNSDataLayoutConvolutionWeightsOIHW_Pack32");
  copy("w", describe(BNNSDataLayoutRowMajorMatrix, {3, 2}, BNNSDataTypeFloat16, x.data()),
       "w.data_type is BNNSDataTypeFloat16 (0x10010), expected BNNSDataTypeFloat32 (0x10020) = dtype F32 in the file");
  copy("w", describe(BNNSDataLayoutRowMajorMatrix, {3, 2}, BNNSDataTypeFloat32, nullptr), "w.data is NULL");
  copy("b", describe(BNNSDataLayoutVector, {3}, BNNSDataTypeBoolean, x.data()),
       "b: element 1 of type BOOL is 2, expected 0 or 1");
  BNNSExtArrayInfo info{};
  ASSERT_EQ(BNNSExtArrayFileInfo(file.get(), 1, &info), 0);
  copy("w",
       describe(BNNSDataLayoutRowMajorMatrix, {3, 2}, BNNSDataTypeFloat32,
                const_cast<char*>(static_cast<const char*>(info.data) - 3)),
       "f: ");
  EXPECT_EQ(BNNSExtArrayFileCopy(file.get(), "w", nullptr), -1);
  expect_reason("w: array is NULL");
  EXPECT_EQ(BNNSExtArrayFileCopy(file.get(), nullptr, nullptr), -1);
  expect_reason("f: name is NULL");

  BNNSNDArrayDescriptor d{};
  EXPECT_EQ(BNNSExtArrayFileView(file.get(), "w", BNNSDataLayoutVector, &d), -1);
  expect_reason("w: layout is BNNSDataLayoutVector (0x10000), expected one of 2 axes for the shape [2,3]");
  EXPECT_EQ(BNNSExtArrayFileView(file.get(), "w", BNNSDataLayoutFullyConnectedSparse, &d), -1);
  expect_reason("expected one that holds elements in order");
  EXPECT_EQ(BNNSExtArrayFileView(file.get(), "u", BNNSDataLayoutVector, &d), -1);
  expect_reason("u: the elements begin at byte ");
  EXPECT_EQ(BNNSExtArrayFileView(file.get(), "w", BNNSDataLayoutRowMajorMatrix, nullptr), -1);
  expect_reason("f: array is NULL");
  EXPECT_EQ(BNNSExtArrayFileInfo(file.get(), 3, &info), -1);
  expect_reason("f: index is 3, expected less than 3 = number of arrays");
  EXPECT_EQ(BNNSExtArrayFileInfo(file.get(), 0, nullptr), -1);
  expect_reason("f: info is NULL");
  EXPECT_EQ(BNNSExtArrayFileFind(file.get(), nullptr), SIZE_MAX);
  expect_reason("f: name is NULL");
  EXPECT_EQ(BNNSExtArrayFileMetadataAt(file.get(), 0, nullptr), -1);
  expect_reason("f: pair is NULL");
  BNNSExtMetadata pair{};
  EXPECT_EQ(BNNSExtArrayFileMetadataAt(file.get(), 0, &pair), -1);
  expect_reason("f: index is 0, expected less than 0 = pairs of metadata");
  EXPECT_EQ(BNNSExtArrayFileMetadata(file.get(), nullptr), nullptr);
  expect_reason("f: key is NULL");
  x[0] = 0;
  const auto to = f32(BNNSDataLayoutVector, {1});
  EXPECT_EQ(BNNSExtArrayFileCopy(file.get(), "u", &to), 0) << "an unaligned array can be copied";
}

TEST_F(IoRefusals, HandlesThatAreNone) {
  alignas(64) char memory[256] = {};
  for (const BNNSExtArrayFile handle : {BNNSExtArrayFile{}, reinterpret_cast<BNNSExtArrayFile>(memory),
                                        reinterpret_cast<BNNSExtArrayFile>(memory + 1)}) {
    const std::string reason = handle ? "is not an open file of this library" : "file is NULL";
    BNNSExtArrayInfo info{};
    BNNSExtMetadata pair{};
    BNNSNDArrayDescriptor d{};
    EXPECT_EQ(BNNSExtArrayFileCount(handle), 0u), expect_reason(reason);
    EXPECT_EQ(BNNSExtArrayFileInfo(handle, 0, &info), -1), expect_reason(reason);
    EXPECT_EQ(BNNSExtArrayFileFind(handle, "x"), SIZE_MAX), expect_reason(reason);
    EXPECT_EQ(BNNSExtArrayFileCopy(handle, "x", &d), -1), expect_reason(reason);
    EXPECT_EQ(BNNSExtArrayFileView(handle, "x", BNNSDataLayoutVector, &d), -1), expect_reason(reason);
    EXPECT_EQ(BNNSExtArrayFileMetadataCount(handle), 0u), expect_reason(reason);
    EXPECT_EQ(BNNSExtArrayFileMetadataAt(handle, 0, &pair), -1), expect_reason(reason);
    EXPECT_EQ(BNNSExtArrayFileMetadata(handle, "x"), nullptr), expect_reason(reason);
    BNNSExtArrayFileClose(handle);
  }
}

TEST_F(IoRefusals, Saving) {
  float x[2] = {1, 2};
  const auto good = describe(BNNSDataLayoutVector, {2}, BNNSDataTypeFloat32, x);
  refused_save(&good, nullptr, "f: arrays[0].name is NULL, expected a text");
  refused_save(&good, "a\xff", "f: arrays[0].name is a?, whose byte 1 is 0xff, expected UTF-8");
  refused_save(&good, "__metadata__", "f: arrays[0].name is __metadata__, expected another name");
  refused_save(nullptr, "x", "f: x: array is NULL");
  auto bad = good;
  bad.data = nullptr;
  refused_save(&bad, "x", "f: x.data is NULL");
  bad = good, bad.size[0] = 0;
  refused_save(&bad, "x", "f: x.size[0] is 0");
  bad = good, bad.data_type = BNNSDataTypeInt4;
  refused_save(&bad, "x", "f: x.data_type is BNNSDataTypeInt4 (0x20004), expected F32, F16, BF16");
  bad = describe(BNNSDataLayoutConvolutionWeightsOIHW_Pack32, {1, 1, 1, 1}, BNNSDataTypeFloat32, x);
  refused_save(&bad, "x", "f: x.layout is BNNSDataLayoutConvolutionWeightsOIHW_Pack32");
  bad = describe(BNNSDataLayoutFullyConnectedSparse, {1, 1}, BNNSDataTypeFloat32, x);
  refused_save(&bad, "x", "f: x.layout is FullyConnectedSparse");

  const auto save = [&](const std::string& path, size_t count, const BNNSExtNamedArray* arrays, size_t pairs,
                        const BNNSExtMetadata* metadata, const std::string& reason) {
    EXPECT_EQ(BNNSExtArraysSave(path.c_str(), count, arrays, pairs, metadata), -1);
    expect_reason(reason);
    EXPECT_EQ(folder_.files(), 0u);
  };
  const BNNSExtNamedArray twice[] = {{"x", &good}, {"y", &good}, {"x", &good}};
  const BNNSExtMetadata keys[] = {{"k", "1"}, {"k", "2"}}, null_value[] = {{"k", nullptr}}, bad_key[] = {{"\xc3(", ""}};
  save(path_, 3, twice, 0, nullptr, "f: x is there twice, expected once");
  save(path_, 2, nullptr, 0, nullptr, "f: arrays is NULL, expected 2 arrays");
  save(path_, 0, nullptr, 1, nullptr, "f: metadata is NULL, expected 1 pairs");
  save(path_, SIZE_MAX, twice, 0, nullptr, "f: 18446744073709551615 arrays and 0 pairs of metadata, expected as many");
  save(path_, 1, twice, 2, keys, "f: metadata: key k is there twice");
  save(path_, 1, twice, 1, null_value, "f: metadata[0].value is NULL");
  save(path_, 1, twice, 1, bad_key, "f: metadata[0].key is ?(, whose byte 0 is 0xc3, expected UTF-8");
  save("", 1, twice, 0, nullptr, "file is \"\"");
  save(folder_ / "absent/f", 1, twice, 0, nullptr, "absent/f: cannot be written here: No such file or directory");
  save(folder_.path(), 1, twice, 0, nullptr, "is a folder, expected the name of a file");
  save("/dev/full", 1, twice, 0, nullptr, "/dev/full: is no regular file, expected the name of a file");
  EXPECT_EQ(BNNSExtArraysSave(nullptr, 1, twice, 0, nullptr), -1);
  expect_reason("file is NULL");
  const std::string long_text(100000000, 'x');
  const BNNSExtMetadata long_value[] = {{"k", long_text.c_str()}};
  save(path_, 0, nullptr, 1, long_value, "f: names, shapes and metadata take 100000");
}

}  // namespace
}  // namespace bnns::io::testing
