/* decode.c - which decoder a file needs, and what it looks like when there is none. */
#include "base/image/decode.h"

#include <string.h>

static const unsigned char png_magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
static const unsigned char jpeg_magic[3] = {0xff, 0xd8, 0xff};

/* First bytes of what people hand over by mistake. */
static const struct {
    size_t at, n;
    const char *bytes, *what;
} looks[] = {
    {0, 4, "GIF8", "a GIF picture"},
    {0, 2, "BM", "a BMP picture"},
    {8, 4, "WEBP", "a WebP picture"},
    {0, 4, "II*\0", "a TIFF picture"},
    {0, 4, "MM\0*", "a TIFF picture"},
    {4, 8, "ftypavif", "an AVIF picture"},
    {4, 8, "ftypheic", "a HEIC picture"},
    {4, 4, "ftyp", "an MP4 or HEIF file"},
    {4, 4, "jP  ", "a JPEG 2000 picture"},
    {0, 4, "\xff\x4f\xff\x51", "a JPEG 2000 stream"},
    {4, 4, "JXL ", "a JPEG XL picture"},
    {0, 2, "\xff\x0a", "a JPEG XL stream"},
    {0, 4, "\x76\x2f\x31\x01", "an OpenEXR picture"},
    {0, 6, "\x93NUMPY", "a NumPy array"},
    {0, 4, "%PDF", "a PDF document"},
    {0, 4, "PK\3\4", "a ZIP archive"},
    {0, 2, "\x1f\x8b", "gzip data"},
    {0, 4, "\x89HDF", "an HDF5 file"},
    {0, 4, "\x89PNG", "a PNG picture whose signature was damaged by a text-mode copy"},
    {0, 3, "PNG", "a PNG picture without its first byte"},
    {0, 2, "\xff\xd8", "a JPEG picture cut or damaged after its first two bytes"},
    {0, 1, "{", "JSON text"},
    {0, 1, "<", "XML, SVG or HTML text"},
};

static const char *look(const unsigned char *bytes, size_t n)
{
    if (n == 0)
        return "empty";
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++)
        if (n >= looks[i].at + looks[i].n &&
            memcmp(bytes + looks[i].at, looks[i].bytes, looks[i].n) == 0)
            return looks[i].what;
    size_t text = 0;
    while (text < n && text < 256 &&
           ((bytes[text] >= ' ' && bytes[text] < 0x7f) ||
            (bytes[text] >= '\t' && bytes[text] <= '\r')))
        text++;
    return text == n || text == 256 ? "text" : "nothing known (raw pixels?)";
}

static bool is_jpeg(const unsigned char *b, size_t n)
{
    return n >= sizeof jpeg_magic && memcmp(b, jpeg_magic, sizeof jpeg_magic) == 0;
}

static bool is_png(const unsigned char *b, size_t n)
{
    return n >= sizeof png_magic && memcmp(b, png_magic, sizeof png_magic) == 0;
}

bool tec_image_begins(const void *bytes, size_t n)
{
    return is_jpeg(bytes, n) || is_png(bytes, n);
}

enum tec_status tec_image_decode(struct tec_image *out, const void *bytes, size_t n, size_t most,
                                 struct tec_arena *arena, struct tec_error *err)
{
    struct tec_arena_mark mark = tec_arena_mark(arena);
    const unsigned char *b = bytes;
    enum tec_status status;
    *out = (struct tec_image){0};
    if (is_jpeg(b, n))
        status = tec_image_decode_jpeg(out, b, n, most, arena, err);
    else if (is_png(b, n))
        status = tec_image_decode_png(out, b, n, most, arena, err);
    else
        status = tec_fail(err, TEC_UNSUPPORTED,
                          "%zu bytes are neither JPEG nor PNG: they look like %s; convert them to "
                          "PNG or JPEG",
                          n, look(b, n));
    if (status != TEC_OK) {
        tec_arena_rewind(arena, mark);
        *out = (struct tec_image){0};
    }
    return status;
}
