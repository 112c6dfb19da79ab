/// What composing needs besides decoders: libvpx's VP8 encoder, Opus, and text by Pango.
///
/// Functions for what Swift does not see: macros, variadic functions, and structs that change with the library's
/// version. Every function that can fail returns a negative number or null; none prints.
#pragma once
#include <opus/opus.h>
#include <stddef.h>
#include <stdint.h>

// VP8

struct ccomposing_vp8_settings {
    int width, height;
    int frames_per_second;
    /// In kbit/s.
    int bitrate;
    int threads;
    /// 0 to 16: the higher, the less it costs.
    int speed;
    /// Of the bit rate, what the lower of two temporal layers takes; 0 for one layer.
    int lower_layer_percent;
    /// What a key frame may take, of a frame's share of the rate.
    int key_frame_percent;
    /// Whether the rate is kept to at any price: pictures may be coarse, and left out.
    int is_strict;
};

/// What the encoder made of a picture; good until its next call.
struct ccomposing_vp8_frame {
    const uint8_t *bytes;
    size_t count;
    int is_key_frame;
};

struct ccomposing_vp8;

struct ccomposing_vp8 *ccomposing_vp8_open(const struct ccomposing_vp8_settings *settings);
/// @param timestamp in ticks of 90 kHz, later than the one before.
/// @param temporal_layer 1 for a picture that no other needs; 0 for all where there is one layer. A key frame is of 0.
/// @return 1 with a frame, 0 if the picture was left out to keep to the rate, or negative.
int ccomposing_vp8_encode(
    struct ccomposing_vp8 *encoder, const uint8_t *const planes[3], const int strides[3], int64_t timestamp,
    int duration, int forces_key_frame, int temporal_layer, struct ccomposing_vp8_frame *frame);
void ccomposing_vp8_close(struct ccomposing_vp8 *encoder);

// Opus

/// Sets up an encoder for live sound: bits a second, whether a packet has a copy of the one before, for so many percent
/// of loss.
int ccomposing_opus_configure(OpusEncoder *encoder, int bitrate, int recovery, int loss, int complexity);

// Text

/// Draws one line of text, cut with an ellipsis where it is too wide, as coverage: 0 to 255 a pixel, row by row.
/// @param size height of the font in pixels.
/// @return coverage, to be freed by `ccomposing_text_free`; null if nothing could be drawn.
uint8_t *ccomposing_text_draw(const char *text, int size, int maximum_width, int *width, int *height);
void ccomposing_text_free(uint8_t *coverage);
