/// Codec libraries as Debian packages them, and functions for what Swift does not see: macros, variadic functions,
/// and structs that change with the library's version.
///
/// Every function that can fail returns a negative number; none prints.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <libyuv.h>
#include <turbojpeg.h>
#include <webp/encode.h>

// Decoders

enum ccodecs_format { CCODECS_VP8 = 0, CCODECS_VP9 = 1, CCODECS_H264 = 2, CCODECS_AV1 = 3, CCODECS_HEVC = 4 };
enum ccodecs_layout { CCODECS_I420 = 0, CCODECS_I422 = 1, CCODECS_I444 = 2, CCODECS_I010 = 3 };

/// A decoder of libvpx (VP8, VP9) or libavcodec (H.264 and HEVC its own, AV1 by dav1d), with one thread.
struct ccodecs_decoder;

/// What a decoder shows; good until its next call.
struct ccodecs_frame {
    const uint8_t *planes[3];
    int strides[3];
    int width, height;
    /// One of `ccodecs_layout`.
    int layout;
    int is_full_range, is_bt709;
    /// What came with the frame that shows it.
    int64_t timestamp;
};

enum {
    CCODECS_FAILED = -1,
    CCODECS_TOO_LARGE = -2,
    CCODECS_UNSUPPORTED = -3,
};

/// @param reorders whether frames may be shown in another order than they come, which costs time; of H.264 and HEVC alone.
/// @return null if the library has no such decoder.
struct ccodecs_decoder *ccodecs_decoder_open(enum ccodecs_format format, int maximum_side, int reorders);
/// Decodes one frame, in the format that RTP carries (H.264 and HEVC with start codes, AV1 with sizes).
/// @param timestamp any number, which comes out with the picture.
/// @return 1 with a picture, 0 without one, or negative.
int ccodecs_decoder_decode(
    struct ccodecs_decoder *decoder, const uint8_t *bytes, size_t count, int64_t timestamp,
    struct ccodecs_frame *frame);
void ccodecs_decoder_close(struct ccodecs_decoder *decoder);

/// A decoder of AAC (libavcodec's own), and what brings its sound to 48 kHz and two channels.
struct ccodecs_sound;

/// @param configuration an AudioSpecificConfig.
/// @return null if that makes no sense.
struct ccodecs_sound *ccodecs_sound_open(const uint8_t *configuration, size_t count);
/// Decodes one frame, without a header of its own.
/// @param samples left and right in turn; good until the next call.
/// @return how many of each there are, or negative.
int ccodecs_sound_decode(
    struct ccodecs_sound *sound, const uint8_t *bytes, size_t count, const float **samples);
void ccodecs_sound_close(struct ccodecs_sound *sound);

// Encoders

/// An encoder of libavcodec, with one thread: H.264 by x264, AAC by its own.
struct ccodecs_encoder;

/// One frame as it was encoded; good until the encoder's next call.
struct ccodecs_encoded {
    const uint8_t *bytes;
    size_t count;
    int is_key_frame;
};

/// Samples of a channel in a frame of AAC.
enum { CCODECS_AAC_FRAMES = 1024 };

/// H.264 without B-frames and look-ahead.
/// @param bitrate in bits a second, as a mean and at most over a second.
/// @return null where libavcodec has no such encoder, or does not take the values.
struct ccodecs_encoder *ccodecs_h264_open(int width, int height, int frames_per_second, int bitrate);
/// AAC-LC of stereo at 48 kHz.
struct ccodecs_encoder *ccodecs_aac_open(int bitrate);
/// What a decoder must know: parameter sets with start codes, or an AudioSpecificConfig; lasts as long as the encoder.
const uint8_t *ccodecs_encoder_header(struct ccodecs_encoder *encoder, size_t *count);
/// @param planes of I420, of the size that the encoder was opened for.
/// @param number of the picture, counted up.
/// @return 1 with a frame, with start codes; 0 without one; or negative.
int ccodecs_h264_encode(
    struct ccodecs_encoder *encoder, const uint8_t *const planes[3], const int strides[3], int64_t number,
    int is_key_frame, struct ccodecs_encoded *encoded);
/// @param samples left and right in turn, CCODECS_AAC_FRAMES of each.
/// @param time of the first of them, in samples.
/// @return as above; the first frames are made of what was before the beginning.
int ccodecs_aac_encode(
    struct ccodecs_encoder *encoder, const float *samples, int64_t time, struct ccodecs_encoded *encoded);
void ccodecs_encoder_close(struct ccodecs_encoder *encoder);

/// Four bytes a pixel out of I420. libyuv's constants must lie where it put them: it loads them as aligned vectors.
int ccodecs_i420_to_bgra(
    const uint8_t *y, int y_stride, const uint8_t *u, const uint8_t *v, int chroma_stride, uint8_t *bgra,
    int width, int height, int is_bt709, int is_full_range);

// Still pictures

/// Encodes I420 as WebP.
/// @return the number of bytes, with `*bytes` to be given to `ccodecs_webp_free`; negative on failure.
int64_t ccodecs_webp_encode(
    const uint8_t *const planes[3], const int strides[3], int width, int height, float quality,
    uint8_t **bytes);
void ccodecs_webp_free(uint8_t *bytes);

/// Decodes a JPEG, WebP or PNG file to four bytes a pixel (blue, green, red, and one that means nothing).
/// @return null for what is none, or wider or higher than `maximum_side`; to be given to `ccodecs_still_free`.
uint8_t *ccodecs_still_decode(const uint8_t *bytes, size_t count, int maximum_side, int *width, int *height);
void ccodecs_still_free(uint8_t *pixels);

// What it runs on

/// Such as v1.12.0; lasts.
const char *ccodecs_vpx_version(void);
/// A byte for each part.
unsigned int ccodecs_avcodec_version(void);
