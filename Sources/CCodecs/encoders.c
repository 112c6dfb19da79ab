#include "CCodecs.h"

#include <libavcodec/avcodec.h>
#include <libavutil/channel_layout.h>
#include <libavutil/log.h>
#include <libavutil/opt.h>
#include <stdlib.h>
#include <string.h>

struct ccodecs_encoder {
    AVCodecContext *av;
    AVPacket *packet;
    AVFrame *frame;
};

void ccodecs_encoder_close(struct ccodecs_encoder *encoder) {
    if (encoder == NULL) return;
    av_frame_free(&encoder->frame);
    av_packet_free(&encoder->packet);
    avcodec_free_context(&encoder->av);
    free(encoder);
}

static struct ccodecs_encoder *prepare(const char *name) {
    struct ccodecs_encoder *encoder = calloc(1, sizeof *encoder);
    if (encoder == NULL) return NULL;
    av_log_set_level(AV_LOG_QUIET);
    const AVCodec *codec = avcodec_find_encoder_by_name(name);
    encoder->av = codec != NULL ? avcodec_alloc_context3(codec) : NULL;
    encoder->packet = av_packet_alloc();
    encoder->frame = av_frame_alloc();
    if (encoder->av == NULL || encoder->packet == NULL || encoder->frame == NULL) {
        ccodecs_encoder_close(encoder);
        return NULL;
    }
    encoder->av->thread_count = 1;
    // What a decoder must know stands before the first frame, and not in the frames.
    encoder->av->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    return encoder;
}

struct ccodecs_encoder *ccodecs_h264_open(int width, int height, int frames_per_second, int bitrate) {
    struct ccodecs_encoder *encoder = prepare("libx264");
    if (encoder == NULL) return NULL;
    AVCodecContext *av = encoder->av;
    av->width = width;
    av->height = height;
    av->pix_fmt = AV_PIX_FMT_YUV420P;
    av->time_base = (AVRational){1, frames_per_second};
    av->framerate = (AVRational){frames_per_second, 1};
    av->bit_rate = bitrate;
    av->rc_max_rate = bitrate;
    av->rc_buffer_size = bitrate;
    // Key frames only where they are asked for.
    av->gop_size = 1 << 20;
    av->max_b_frames = 0;
    av->color_range = AVCOL_RANGE_MPEG;
    av->colorspace = AVCOL_SPC_SMPTE170M;
    av_opt_set(av->priv_data, "preset", "superfast", 0);
    av_opt_set(av->priv_data, "tune", "zerolatency", 0);
    av_opt_set(av->priv_data, "forced-idr", "1", 0);
    av_opt_set(av->priv_data, "x264-params", "scenecut=0", 0);
    if (avcodec_open2(av, av->codec, NULL) == 0) return encoder;
    ccodecs_encoder_close(encoder);
    return NULL;
}

struct ccodecs_encoder *ccodecs_aac_open(int bitrate) {
    struct ccodecs_encoder *encoder = prepare("aac");
    if (encoder == NULL) return NULL;
    AVCodecContext *av = encoder->av;
    av->sample_rate = 48000;
    av->sample_fmt = AV_SAMPLE_FMT_FLTP;
    av->bit_rate = bitrate;
    av_channel_layout_default(&av->ch_layout, 2);
    if (avcodec_open2(av, av->codec, NULL) == 0 && av->frame_size == CCODECS_AAC_FRAMES) return encoder;
    ccodecs_encoder_close(encoder);
    return NULL;
}

const uint8_t *ccodecs_encoder_header(struct ccodecs_encoder *encoder, size_t *count) {
    *count = encoder->av->extradata_size > 0 ? (size_t)encoder->av->extradata_size : 0;
    return encoder->av->extradata;
}

/// Hands the frame to the encoder, and takes what is made.
static int encode(struct ccodecs_encoder *encoder, struct ccodecs_encoded *encoded) {
    av_packet_unref(encoder->packet);
    int sent = avcodec_send_frame(encoder->av, encoder->frame);
    av_frame_unref(encoder->frame);
    if (sent < 0) return CCODECS_FAILED;
    int received = avcodec_receive_packet(encoder->av, encoder->packet);
    if (received == AVERROR(EAGAIN)) return 0;
    if (received < 0 || encoder->packet->size <= 0) return CCODECS_FAILED;
    encoded->bytes = encoder->packet->data;
    encoded->count = (size_t)encoder->packet->size;
    encoded->is_key_frame = (encoder->packet->flags & AV_PKT_FLAG_KEY) != 0;
    return 1;
}

int ccodecs_h264_encode(
    struct ccodecs_encoder *encoder, const uint8_t *const planes[3], const int strides[3], int64_t number,
    int is_key_frame, struct ccodecs_encoded *encoded) {
    AVFrame *frame = encoder->frame;
    frame->format = AV_PIX_FMT_YUV420P;
    frame->width = encoder->av->width;
    frame->height = encoder->av->height;
    if (av_frame_get_buffer(frame, 0) < 0) return CCODECS_FAILED;
    for (int plane = 0; plane < 3; plane++) {
        int width = plane == 0 ? frame->width : (frame->width + 1) / 2;
        int height = plane == 0 ? frame->height : (frame->height + 1) / 2;
        for (int row = 0; row < height; row++)
            memcpy(
                frame->data[plane] + (ptrdiff_t)row * frame->linesize[plane],
                planes[plane] + (ptrdiff_t)row * strides[plane], (size_t)width);
    }
    frame->pts = number;
    frame->pict_type = is_key_frame ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE;
    return encode(encoder, encoded);
}

int ccodecs_aac_encode(
    struct ccodecs_encoder *encoder, const float *samples, int64_t time, struct ccodecs_encoded *encoded) {
    AVFrame *frame = encoder->frame;
    frame->format = AV_SAMPLE_FMT_FLTP;
    frame->nb_samples = CCODECS_AAC_FRAMES;
    frame->sample_rate = 48000;
    if (av_channel_layout_copy(&frame->ch_layout, &encoder->av->ch_layout) < 0
        || av_frame_get_buffer(frame, 0) < 0)
        return CCODECS_FAILED;
    for (int channel = 0; channel < 2; channel++) {
        float *plane = (float *)frame->extended_data[channel];
        for (int index = 0; index < CCODECS_AAC_FRAMES; index++) plane[index] = samples[2 * index + channel];
    }
    frame->pts = time;
    return encode(encoder, encoded);
}
