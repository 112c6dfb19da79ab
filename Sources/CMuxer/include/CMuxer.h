/// Writing frames into a file's format with libavformat, without a file: what is to be written where is taken from here.
///
/// Functions that can fail return a negative AVERROR.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct cmuxer cmuxer;

typedef enum {
    CMUXER_OPUS,
    CMUXER_VP8,
    CMUXER_VP9,
    CMUXER_H264,
    CMUXER_AV1,
    CMUXER_HEVC,
} cmuxer_codec;

typedef enum {
    CMUXER_WEBM,
    /// Fragmented.
    CMUXER_MP4,
    CMUXER_MPEG_TS,
} cmuxer_format;

/// @return NULL if there is no memory or no such format.
cmuxer *cmuxer_open(cmuxer_format format);
/// @param header what a decoder must know before the first frame; for H.264 parameter sets with start codes.
/// @param level of VP9, times ten, with profile 0; 0 for others, whose header tells it.
/// @return the track's number.
int cmuxer_add_video(
    cmuxer *muxer, cmuxer_codec codec, int width, int height, int level, const uint8_t *header,
    size_t header_size);
/// Opus in two channels.
int cmuxer_add_audio(cmuxer *muxer);
/// AAC in two channels at 48 kHz; for MP4 and MPEG-TS.
/// @param configuration an AudioSpecificConfig.
int cmuxer_add_aac(cmuxer *muxer, const uint8_t *configuration, size_t count);
/// After the last track, before the first frame.
/// @param is_segmented whether what is flushed is a segment, which tells its time, and not part of a file; of MP4 alone.
int cmuxer_begin(cmuxer *muxer, int is_segmented);
/// @param time when it is decoded, in microseconds; must grow within a track.
/// @param shown in microseconds, no earlier than that.
int cmuxer_write(
    cmuxer *muxer, int track, int64_t time, int64_t shown, int64_t duration, int is_key_frame, const uint8_t *bytes,
    size_t count);
/// Makes all that was written part of the file's bytes.
int cmuxer_flush(cmuxer *muxer);
/// After the last frame.
int cmuxer_end(cmuxer *muxer);
/// What is to be written, in order; good until the next call of another function.
/// @param index from 0 on.
/// @return 0 where there is no more.
int cmuxer_pending(cmuxer *muxer, size_t index, int64_t *offset, const uint8_t **bytes, size_t *count);
/// Forgets what was to be written.
void cmuxer_clear(cmuxer *muxer);
void cmuxer_free(cmuxer *muxer);
