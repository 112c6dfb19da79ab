#include "CMuxer.h"

#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <stdlib.h>
#include <string.h>

/// Bytes that belong together, from `start` on in the buffer.
typedef struct {
    int64_t offset;
    size_t start, count;
} piece;

struct cmuxer {
    AVFormatContext *context;
    AVPacket *packet;
    /// Where libavformat writes next, and how long the file is.
    int64_t position, size;
    uint8_t *bytes;
    size_t count, capacity;
    piece *pieces;
    size_t piece_count, piece_capacity;
};

enum { buffer_size = 32 << 10 };

static int grow(void **memory, size_t *capacity, size_t needed, size_t element) {
    if (needed <= *capacity) return 0;
    size_t wanted = *capacity < 16 ? 16 : *capacity;
    while (wanted < needed) wanted *= 2;
    void *larger = realloc(*memory, wanted * element);
    if (larger == NULL) return AVERROR(ENOMEM);
    *memory = larger;
    *capacity = wanted;
    return 0;
}

static int take(void *opaque, uint8_t *bytes, int count) {
    cmuxer *muxer = opaque;
    int result = grow((void **)&muxer->bytes, &muxer->capacity, muxer->count + (size_t)count, 1);
    if (result < 0) return result;
    piece *last = muxer->piece_count > 0 ? &muxer->pieces[muxer->piece_count - 1] : NULL;
    if (last != NULL && last->offset + (int64_t)last->count == muxer->position) {
        last->count += (size_t)count;
    } else {
        result =
            grow((void **)&muxer->pieces, &muxer->piece_capacity, muxer->piece_count + 1, sizeof(piece));
        if (result < 0) return result;
        muxer->pieces[muxer->piece_count++] = (piece){muxer->position, muxer->count, (size_t)count};
    }
    memcpy(muxer->bytes + muxer->count, bytes, (size_t)count);
    muxer->count += (size_t)count;
    muxer->position += count;
    if (muxer->position > muxer->size) muxer->size = muxer->position;
    return count;
}

static int64_t seek(void *opaque, int64_t offset, int whence) {
    cmuxer *muxer = opaque;
    switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE: return muxer->size;
    case SEEK_SET: break;
    case SEEK_CUR: offset += muxer->position; break;
    case SEEK_END: offset += muxer->size; break;
    default: return AVERROR(EINVAL);
    }
    if (offset < 0) return AVERROR(EINVAL);
    return muxer->position = offset;
}

cmuxer *cmuxer_open(cmuxer_format format) {
    static const char *const names[] = {
        [CMUXER_WEBM] = "webm",
        [CMUXER_MP4] = "mp4",
        [CMUXER_MPEG_TS] = "mpegts",
    };
    cmuxer *muxer = calloc(1, sizeof *muxer);
    if (muxer == NULL) return NULL;
    av_log_set_level(AV_LOG_QUIET);
    uint8_t *buffer = av_malloc(buffer_size);
    muxer->packet = av_packet_alloc();
    if (buffer == NULL || muxer->packet == NULL
        || avformat_alloc_output_context2(&muxer->context, NULL, names[format], NULL) < 0) {
        av_free(buffer);
        cmuxer_free(muxer);
        return NULL;
    }
    muxer->context->pb = avio_alloc_context(buffer, buffer_size, 1, muxer, NULL, take, seek);
    if (muxer->context->pb == NULL) {
        av_free(buffer);
        cmuxer_free(muxer);
        return NULL;
    }
    muxer->context->flags |= AVFMT_FLAG_CUSTOM_IO | AVFMT_FLAG_BITEXACT;
    return muxer;
}

static int set_header(AVCodecParameters *parameters, const uint8_t *header, size_t size) {
    if (size == 0) return 0;
    parameters->extradata = av_mallocz(size + AV_INPUT_BUFFER_PADDING_SIZE);
    if (parameters->extradata == NULL) return AVERROR(ENOMEM);
    memcpy(parameters->extradata, header, size);
    parameters->extradata_size = (int)size;
    return 0;
}

int cmuxer_add_video(
    cmuxer *muxer, cmuxer_codec codec, int width, int height, int level, const uint8_t *header,
    size_t header_size) {
    static const enum AVCodecID names[] = {
        [CMUXER_OPUS] = AV_CODEC_ID_OPUS, [CMUXER_VP8] = AV_CODEC_ID_VP8, [CMUXER_VP9] = AV_CODEC_ID_VP9,
        [CMUXER_H264] = AV_CODEC_ID_H264, [CMUXER_AV1] = AV_CODEC_ID_AV1,
        [CMUXER_HEVC] = AV_CODEC_ID_HEVC,
    };
    AVStream *stream = avformat_new_stream(muxer->context, NULL);
    if (stream == NULL) return AVERROR(ENOMEM);
    stream->time_base = (AVRational){1, 90000};
    stream->codecpar->codec_type = AVMEDIA_TYPE_VIDEO;
    stream->codecpar->codec_id = names[codec];
    stream->codecpar->width = width;
    stream->codecpar->height = height;
    stream->codecpar->format = AV_PIX_FMT_YUV420P;
    // Parameter sets stand in the header alone: players of HLS take no other HEVC.
    if (codec == CMUXER_HEVC) stream->codecpar->codec_tag = MKTAG('h', 'v', 'c', '1');
    if (level > 0) {
        stream->codecpar->profile = 0;
        stream->codecpar->level = level;
    }
    int result = set_header(stream->codecpar, header, header_size);
    return result < 0 ? result : stream->index;
}

int cmuxer_add_audio(cmuxer *muxer) {
    // RFC 7845 §5.1: version 1, two channels, no pre-skip, 48 kHz, no gain, mapping family 0.
    static const uint8_t header[] = {
        'O', 'p', 'u', 's', 'H', 'e', 'a', 'd', 1, 2, 0, 0, 0x80, 0xBB, 0, 0, 0, 0, 0,
    };
    AVStream *stream = avformat_new_stream(muxer->context, NULL);
    if (stream == NULL) return AVERROR(ENOMEM);
    stream->time_base = (AVRational){1, 48000};
    stream->codecpar->codec_type = AVMEDIA_TYPE_AUDIO;
    stream->codecpar->codec_id = AV_CODEC_ID_OPUS;
    stream->codecpar->sample_rate = 48000;
    av_channel_layout_default(&stream->codecpar->ch_layout, 2);
    // What a decoder needs to run in after a jump: 80 ms (RFC 7845 §4.6).
    stream->codecpar->seek_preroll = 3840;
    int result = set_header(stream->codecpar, header, sizeof header);
    return result < 0 ? result : stream->index;
}

int cmuxer_add_aac(cmuxer *muxer, const uint8_t *configuration, size_t count) {
    AVStream *stream = avformat_new_stream(muxer->context, NULL);
    if (stream == NULL) return AVERROR(ENOMEM);
    stream->time_base = (AVRational){1, 48000};
    stream->codecpar->codec_type = AVMEDIA_TYPE_AUDIO;
    stream->codecpar->codec_id = AV_CODEC_ID_AAC;
    stream->codecpar->sample_rate = 48000;
    stream->codecpar->frame_size = 1024;
    av_channel_layout_default(&stream->codecpar->ch_layout, 2);
    int result = set_header(stream->codecpar, configuration, count);
    return result < 0 ? result : stream->index;
}

int cmuxer_begin(cmuxer *muxer, int is_segmented) {
    AVDictionary *options = NULL;
    // A fragment when we say so; those of WebM, called clusters, end by themselves a little later. Segments say their
    // time as it was given, tracks of a file begin at 0.
    av_dict_set(
        &options, "movflags",
        is_segmented ? "frag_custom+empty_moov+default_base_moof+frag_discont"
                     : "frag_custom+empty_moov+default_base_moof",
        0);
    if (is_segmented) muxer->context->avoid_negative_ts = AVFMT_AVOID_NEG_TS_DISABLED;
    // Or it would move the first picture that is decoded to where it is shown, and all others with it.
    if (is_segmented) av_dict_set(&options, "use_editlist", "0", 0);
    av_dict_set(&options, "cluster_time_limit", "900", 0);
    // Of MPEG-TS: no frame of sound waits for others, and whoever begins with a picture is told what there is.
    av_dict_set(&options, "pes_payload_size", "0", 0);
    av_dict_set(&options, "mpegts_flags", "pat_pmt_at_frames", 0);
    int result = avformat_write_header(muxer->context, &options);
    av_dict_free(&options);
    if (result < 0) return result;
    avio_flush(muxer->context->pb);
    return muxer->context->pb->error;
}

int cmuxer_write(
    cmuxer *muxer, int track, int64_t time, int64_t shown, int64_t duration, int is_key_frame, const uint8_t *bytes,
    size_t count) {
    if (track < 0 || track >= (int)muxer->context->nb_streams || count > INT32_MAX / 2) return AVERROR(EINVAL);
    int result = av_new_packet(muxer->packet, (int)count);
    if (result < 0) return result;
    memcpy(muxer->packet->data, bytes, count);
    const AVRational microseconds = {1, 1000000};
    AVRational base = muxer->context->streams[track]->time_base;
    muxer->packet->stream_index = track;
    muxer->packet->dts = av_rescale_q(time, microseconds, base);
    muxer->packet->pts = av_rescale_q(shown, microseconds, base);
    // To where the next one is decoded, to the tick: of a fragment that begins before the last one's end by a tick the
    // library forgets when its first picture is shown.
    muxer->packet->duration = av_rescale_q(time + duration, microseconds, base) - muxer->packet->dts;
    if (is_key_frame) muxer->packet->flags |= AV_PKT_FLAG_KEY;
    result = av_write_frame(muxer->context, muxer->packet);
    av_packet_unref(muxer->packet);
    return result;
}

int cmuxer_flush(cmuxer *muxer) {
    int result = av_write_frame(muxer->context, NULL);
    if (result < 0) return result;
    avio_flush(muxer->context->pb);
    return muxer->context->pb->error;
}

int cmuxer_end(cmuxer *muxer) {
    int result = av_write_trailer(muxer->context);
    if (result < 0) return result;
    avio_flush(muxer->context->pb);
    return muxer->context->pb->error;
}

int cmuxer_pending(cmuxer *muxer, size_t index, int64_t *offset, const uint8_t **bytes, size_t *count) {
    if (index >= muxer->piece_count) return 0;
    *offset = muxer->pieces[index].offset;
    *bytes = muxer->bytes + muxer->pieces[index].start;
    *count = muxer->pieces[index].count;
    return 1;
}

void cmuxer_clear(cmuxer *muxer) {
    muxer->count = 0;
    muxer->piece_count = 0;
}

void cmuxer_free(cmuxer *muxer) {
    if (muxer == NULL) return;
    if (muxer->context != NULL) {
        if (muxer->context->pb != NULL) av_freep(&muxer->context->pb->buffer);
        avio_context_free(&muxer->context->pb);
        avformat_free_context(muxer->context);
    }
    av_packet_free(&muxer->packet);
    free(muxer->bytes);
    free(muxer->pieces);
    free(muxer);
}
