#include "tools/bnns/data/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "tools/bnns/data/data_error.h"
#include "tools/bnns/data/dataset.h"

namespace bnns::tool {

struct ByteSource::Impl {
  std::filesystem::path path;
  std::FILE* file = nullptr;
  std::optional<std::uint64_t> total;
  bool gzip = false;
  bool member_open = false;  // inside a gzip member: the file must not end here
  z_stream stream{};
  std::array<std::uint8_t, 1 << 16> buffer{};

  ~Impl() {
    if (gzip) inflateEnd(&stream);
    if (file != nullptr) std::fclose(file);
  }

  [[noreturn]] void fail(const std::string& what) const { throw DataError(path.string() + ": " + what); }

  std::size_t read_file(std::uint8_t* out, std::size_t size) {
    const std::size_t got = std::fread(out, 1, size, file);
    if (got < size && std::ferror(file) != 0) fail(std::string("cannot be read: ") + std::strerror(errno));
    return got;
  }

  bool refill() {
    if (stream.avail_in > 0) return true;
    stream.next_in = buffer.data();
    stream.avail_in = static_cast<uInt>(read_file(buffer.data(), buffer.size()));
    return stream.avail_in > 0;
  }

  // A gzip file is one or more members; each carries its own checksum and length, which zlib verifies.
  std::size_t inflate_some(std::uint8_t* out, std::size_t size) {
    stream.next_out = out;
    stream.avail_out = static_cast<uInt>(size);
    while (stream.avail_out > 0) {
      if (!refill()) {
        if (member_open) fail("gzip data ends early: the file is truncated");
        break;
      }
      if (!member_open) {
        inflateReset(&stream);
        member_open = true;
      }
      const int status = inflate(&stream, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        member_open = false;
      } else if (status != Z_OK) {
        fail(std::string("damaged gzip data: ") + (stream.msg != nullptr ? stream.msg : zError(status)));
      }
    }
    return size - stream.avail_out;
  }
};

ByteSource::ByteSource(const std::filesystem::path& path) : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    impl_->fail(error ? "cannot be read: " + error.message() : "is not a regular file");
  }
  impl_->file = std::fopen(path.c_str(), "rb");
  if (impl_->file == nullptr) impl_->fail(std::string("cannot be opened: ") + std::strerror(errno));

  std::array<std::uint8_t, 2> magic{};
  impl_->gzip = impl_->read_file(magic.data(), 2) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  std::rewind(impl_->file);
  if (impl_->gzip) {
    constexpr int kGzipWrapper = 16 + MAX_WBITS;
    if (inflateInit2(&impl_->stream, kGzipWrapper) != Z_OK) {
      impl_->gzip = false;
      impl_->fail("zlib cannot start");
    }
  } else {
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (error) impl_->fail("cannot be read: " + error.message());
    impl_->total = size;
  }
}

ByteSource::~ByteSource() = default;

std::size_t ByteSource::read(std::uint8_t* out, std::size_t size) {
  return impl_->gzip ? impl_->inflate_some(out, size) : impl_->read_file(out, size);
}

std::optional<std::uint64_t> ByteSource::total() const {
  return impl_->total;
}

std::string read_all(const std::filesystem::path& file) {
  ByteSource source(file);
  std::string text;
  constexpr std::size_t kChunk = 1 << 16;
  for (std::size_t read = kChunk; read == kChunk;) {  // grows with what arrives: gzip does not say how long it is
    const std::size_t have = text.size();
    if (have > kMaxDataBytes) {
      throw DataError(file.string() + ": has more than " + std::to_string(kMaxDataBytes) + " bytes");
    }
    text.resize(have + kChunk);
    read = source.read(reinterpret_cast<std::uint8_t*>(text.data()) + have, kChunk);
    text.resize(have + read);
  }
  return text;
}

std::string file_kind(const std::filesystem::path& file) {
  std::string text(512, '\0');
  try {
    ByteSource source(file);
    text.resize(source.read(reinterpret_cast<std::uint8_t*>(text.data()), text.size()));
  } catch (const DataError&) {
    return "";
  }
  const auto begins = [&](std::string_view start) { return text.compare(0, start.size(), start) == 0; };
  if (begins("\x89PNG\r\n\x1a\n")) return "a PNG file";
  if (begins("\xff\xd8\xff")) return "a JPEG file";
  if (begins({"\0\0\x08", 3})) return "an IDX file";
  if (text.size() > 8 && text[7] == '\0' && text[8] == '{') return "a safetensors file";
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < 32 && std::strchr("\t\n\r", c) == nullptr;
  };
  if (text.empty() || std::any_of(text.begin(), text.end(), [&](char c) { return c == '\0' || is_control(c); }))
    return "";
  // A table has a separator in its first line, and its name, or a number, says that it is one.
  const std::string line = text.substr(0, text.find('\n'));
  const bool separated = line.find_first_of(",;\t") != line.npos;
  const bool named = file.filename().string().find(".csv") != std::string::npos;
  return separated && (named || line.find_first_of("0123456789") != line.npos) ? "a CSV file" : "a text";
}

}  // namespace bnns::tool
