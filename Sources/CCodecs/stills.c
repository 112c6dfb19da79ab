#include "CCodecs.h"

#include <cairo.h>
#include <stdlib.h>
#include <string.h>
#include <webp/decode.h>

static uint32_t big_endian(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static int fits(int64_t width, int64_t height, int maximum_side) {
    return width > 0 && height > 0 && width <= maximum_side && height <= maximum_side;
}

static uint8_t *decode_jpeg(const uint8_t *bytes, size_t count, int maximum_side, int *width, int *height) {
    tjhandle handle = tjInitDecompress();
    if (handle == NULL) return NULL;
    // Each scan of a progressive file costs as much as the whole picture; libjpeg-turbo ends after 500 of them.
    const int flags = TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS;
    int sampling, space;
    uint8_t *pixels = NULL;
    if (tjDecompressHeader3(handle, bytes, count, width, height, &sampling, &space) == 0
        && fits(*width, *height, maximum_side))
        pixels = malloc((size_t)*width * *height * 4);
    if (pixels != NULL
        && tjDecompress2(handle, bytes, count, pixels, *width, 0, *height, TJPF_BGRX, flags) != 0) {
        free(pixels);
        pixels = NULL;
    }
    tjDestroy(handle);
    return pixels;
}

static uint8_t *decode_webp(const uint8_t *bytes, size_t count, int maximum_side, int *width, int *height) {
    if (!WebPGetInfo(bytes, count, width, height) || !fits(*width, *height, maximum_side)) return NULL;
    size_t size = (size_t)*width * *height * 4;
    uint8_t *pixels = malloc(size);
    if (pixels == NULL) return NULL;
    if (WebPDecodeBGRAInto(bytes, count, pixels, size, *width * 4) != NULL) return pixels;
    free(pixels);
    return NULL;
}

struct reader {
    const uint8_t *bytes;
    size_t count;
};

static cairo_status_t read_png(void *context, unsigned char *data, unsigned int length) {
    struct reader *reader = context;
    if (reader->count < length) return CAIRO_STATUS_READ_ERROR;
    memcpy(data, reader->bytes, length);
    reader->bytes += length;
    reader->count -= length;
    return CAIRO_STATUS_SUCCESS;
}

static uint8_t *decode_png(const uint8_t *bytes, size_t count, int maximum_side, int *width, int *height) {
    // The first chunk says the size, before the library makes room for it.
    if (count < 24 || !fits(big_endian(bytes + 16), big_endian(bytes + 20), maximum_side)) return NULL;
    struct reader reader = {bytes, count};
    cairo_surface_t *surface = cairo_image_surface_create_from_png_stream(read_png, &reader);
    uint8_t *pixels = NULL;
    if (cairo_surface_status(surface) == CAIRO_STATUS_SUCCESS) {
        cairo_surface_flush(surface);
        *width = cairo_image_surface_get_width(surface);
        *height = cairo_image_surface_get_height(surface);
        int stride = cairo_image_surface_get_stride(surface);
        cairo_format_t format = cairo_image_surface_get_format(surface);
        const uint8_t *data = cairo_image_surface_get_data(surface);
        if ((format == CAIRO_FORMAT_ARGB32 || format == CAIRO_FORMAT_RGB24)
            && fits(*width, *height, maximum_side))
            pixels = malloc((size_t)*width * *height * 4);
        // Transparent parts, whose colours are multiplied already, show black.
        for (int row = 0; pixels != NULL && row < *height; row++)
            memcpy(pixels + (size_t)row * *width * 4, data + (size_t)row * stride, (size_t)*width * 4);
    }
    cairo_surface_destroy(surface);
    return pixels;
}

uint8_t *ccodecs_still_decode(const uint8_t *bytes, size_t count, int maximum_side, int *width, int *height) {
    if (count >= 3 && memcmp(bytes, "\xFF\xD8\xFF", 3) == 0)
        return decode_jpeg(bytes, count, maximum_side, width, height);
    if (count >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0)
        return decode_webp(bytes, count, maximum_side, width, height);
    if (count >= 8 && memcmp(bytes, "\x89PNG\r\n\x1A\n", 8) == 0)
        return decode_png(bytes, count, maximum_side, width, height);
    return NULL;
}

void ccodecs_still_free(uint8_t *pixels) { free(pixels); }
