#include "CCodecs.h"

#include <libavcodec/avcodec.h>
#include <libavutil/log.h>
#include <stdlib.h>
#include <string.h>
#include <vpx/vp8dx.h>
#include <vpx/vpx_decoder.h>

struct ccodecs_decoder {
    enum ccodecs_format format;
    int maximum_side;
    int reorders;
    int is_vpx_open;
    vpx_codec_ctx_t vpx;
    AVCodecContext *av;
    AVPacket *packet;
    AVFrame *picture;
};

static vpx_codec_iface_t *vpx_interface(enum ccodecs_format format) {
    return format == CCODECS_VP8 ? vpx_codec_vp8_dx() : vpx_codec_vp9_dx();
}

static int open_av(struct ccodecs_decoder *decoder) {
    static const char *const names[] = {
        [CCODECS_H264] = "h264", [CCODECS_AV1] = "libdav1d", [CCODECS_HEVC] = "hevc",
    };
    av_log_set_level(AV_LOG_QUIET);
    const AVCodec *codec = avcodec_find_decoder_by_name(names[decoder->format]);
    if (codec == NULL) return CCODECS_UNSUPPORTED;
    decoder->av = avcodec_alloc_context3(codec);
    decoder->packet = av_packet_alloc();
    decoder->picture = av_frame_alloc();
    if (decoder->av == NULL || decoder->packet == NULL || decoder->picture == NULL) return CCODECS_FAILED;
    decoder->av->thread_count = 1;
    // Frames come out as they go in: hardly a sender of a live stream reorders.
    if (!decoder->reorders) decoder->av->flags |= AV_CODEC_FLAG_LOW_DELAY;
    decoder->av->max_pixels = (int64_t)decoder->maximum_side * decoder->maximum_side;
    return avcodec_open2(decoder->av, codec, NULL) == 0 ? 0 : CCODECS_FAILED;
}

struct ccodecs_decoder *ccodecs_decoder_open(enum ccodecs_format format, int maximum_side, int reorders) {
    struct ccodecs_decoder *decoder = calloc(1, sizeof *decoder);
    if (decoder == NULL) return NULL;
    decoder->format = format;
    decoder->maximum_side = maximum_side;
    decoder->reorders = reorders && (format == CCODECS_H264 || format == CCODECS_HEVC);
    int result;
    if (format == CCODECS_VP8 || format == CCODECS_VP9) {
        vpx_codec_dec_cfg_t configuration = {.threads = 1};
        result = vpx_codec_dec_init(&decoder->vpx, vpx_interface(format), &configuration, 0) == VPX_CODEC_OK
            ? 0 : CCODECS_FAILED;
        decoder->is_vpx_open = result == 0;
    } else {
        result = open_av(decoder);
    }
    if (result == 0) return decoder;
    ccodecs_decoder_close(decoder);
    return NULL;
}

static int check_size(const struct ccodecs_decoder *decoder, int64_t width, int64_t height) {
    if (width <= 0 || height <= 0) return CCODECS_FAILED;
    return width > decoder->maximum_side || height > decoder->maximum_side ? CCODECS_TOO_LARGE : 1;
}

static int vpx_layout(vpx_img_fmt_t format) {
    switch (format) {
    case VPX_IMG_FMT_I420: return CCODECS_I420;
    case VPX_IMG_FMT_I422: return CCODECS_I422;
    case VPX_IMG_FMT_I444: return CCODECS_I444;
    case VPX_IMG_FMT_I42016: return CCODECS_I010;
    default: return CCODECS_UNSUPPORTED;
    }
}

static int decode_vpx(
    struct ccodecs_decoder *decoder, const uint8_t *bytes, size_t count, int64_t timestamp,
    struct ccodecs_frame *frame) {
    // Before the library makes room for it.
    vpx_codec_stream_info_t info = {.sz = sizeof info};
    if (vpx_codec_peek_stream_info(vpx_interface(decoder->format), bytes, (unsigned int)count, &info)
            == VPX_CODEC_OK && info.is_kf) {
        int fits = check_size(decoder, info.w, info.h);
        if (fits < 0) return fits;
    }
    if (vpx_codec_decode(&decoder->vpx, bytes, (unsigned int)count, NULL, 0) != VPX_CODEC_OK)
        return CCODECS_FAILED;
    // With spatial layers the last picture is the best one.
    vpx_codec_iter_t iterator = NULL;
    const vpx_image_t *image = NULL;
    for (const vpx_image_t *next; (next = vpx_codec_get_frame(&decoder->vpx, &iterator)) != NULL;) image = next;
    if (image == NULL) return 0;
    frame->layout = vpx_layout(image->fmt);
    // Two bytes a sample, and more than ten bits of them: nobody sends that live.
    if (frame->layout < 0 || (frame->layout == CCODECS_I010 && image->bit_depth != 10))
        return CCODECS_UNSUPPORTED;
    for (int plane = 0; plane < 3; plane++) {
        frame->planes[plane] = image->planes[plane];
        frame->strides[plane] = image->stride[plane];
    }
    frame->width = (int)image->d_w;
    frame->height = (int)image->d_h;
    frame->is_full_range = image->range == VPX_CR_FULL_RANGE;
    frame->is_bt709 = image->cs == VPX_CS_BT_709;
    frame->timestamp = timestamp;
    return check_size(decoder, image->d_w, image->d_h);
}

static int av_layout(int format) {
    switch (format) {
    case AV_PIX_FMT_YUV420P:
    case AV_PIX_FMT_YUVJ420P: return CCODECS_I420;
    case AV_PIX_FMT_YUV422P:
    case AV_PIX_FMT_YUVJ422P: return CCODECS_I422;
    case AV_PIX_FMT_YUV444P:
    case AV_PIX_FMT_YUVJ444P: return CCODECS_I444;
    case AV_PIX_FMT_YUV420P10LE: return CCODECS_I010;
    default: return CCODECS_UNSUPPORTED;
    }
}

static int decode_av(
    struct ccodecs_decoder *decoder, const uint8_t *bytes, size_t count, int64_t timestamp,
    struct ccodecs_frame *frame) {
    if (count > INT32_MAX || av_new_packet(decoder->packet, (int)count) != 0) return CCODECS_FAILED;
    memcpy(decoder->packet->data, bytes, count);
    decoder->packet->pts = timestamp;
    int result = avcodec_send_packet(decoder->av, decoder->packet);
    av_packet_unref(decoder->packet);
    if (result != 0) return CCODECS_FAILED;
    // The last one counts; a call that fails leaves none behind.
    int has_picture = 0;
    AVFrame *next = av_frame_alloc();
    if (next == NULL) return CCODECS_FAILED;
    while (avcodec_receive_frame(decoder->av, next) == 0) {
        av_frame_unref(decoder->picture);
        av_frame_move_ref(decoder->picture, next);
        has_picture = 1;
    }
    av_frame_free(&next);
    if (!has_picture) return 0;
    const AVFrame *picture = decoder->picture;
    frame->layout = av_layout(picture->format);
    if (frame->layout < 0) return CCODECS_UNSUPPORTED;
    for (int plane = 0; plane < 3; plane++) {
        frame->planes[plane] = picture->data[plane];
        frame->strides[plane] = picture->linesize[plane];
        if (frame->strides[plane] <= 0) return CCODECS_UNSUPPORTED;
    }
    frame->width = picture->width;
    frame->height = picture->height;
    frame->is_full_range = picture->color_range == AVCOL_RANGE_JPEG;
    frame->is_bt709 = picture->colorspace == AVCOL_SPC_BT709;
    frame->timestamp = picture->pts;
    return check_size(decoder, picture->width, picture->height);
}

int ccodecs_decoder_decode(
    struct ccodecs_decoder *decoder, const uint8_t *bytes, size_t count, int64_t timestamp,
    struct ccodecs_frame *frame) {
    if (bytes == NULL || count == 0 || count > UINT32_MAX) return CCODECS_FAILED;
    return decoder->av != NULL ? decode_av(decoder, bytes, count, timestamp, frame)
                               : decode_vpx(decoder, bytes, count, timestamp, frame);
}

void ccodecs_decoder_close(struct ccodecs_decoder *decoder) {
    if (decoder == NULL) return;
    if (decoder->is_vpx_open) vpx_codec_destroy(&decoder->vpx);
    av_frame_free(&decoder->picture);
    av_packet_free(&decoder->packet);
    avcodec_free_context(&decoder->av);
    free(decoder);
}

const char *ccodecs_vpx_version(void) { return vpx_codec_version_str(); }

unsigned int ccodecs_avcodec_version(void) { return avcodec_version(); }
