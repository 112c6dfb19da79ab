#include <stdlib.h>
#include <string.h>
#include <vpx/vp8cx.h>
#include <vpx/vpx_encoder.h>
#include "CComposing.h"

struct ccomposing_vp8 {
    vpx_codec_ctx_t context;
    vpx_codec_enc_cfg_t configuration;
};

struct ccomposing_vp8 *ccomposing_vp8_open(const struct ccomposing_vp8_settings *settings) {
    struct ccomposing_vp8 *encoder = calloc(1, sizeof *encoder);
    if (!encoder) return NULL;
    vpx_codec_enc_cfg_t *c = &encoder->configuration;
    if (vpx_codec_enc_config_default(vpx_codec_vp8_cx(), c, 0)) goto failed;
    c->g_w = settings->width;
    c->g_h = settings->height;
    c->g_timebase.num = 1;
    c->g_timebase.den = 90000;
    c->g_threads = settings->threads;
    c->g_lag_in_frames = 0;
    c->g_error_resilient = VPX_ERROR_RESILIENT_DEFAULT;
    c->rc_end_usage = VPX_CBR;
    c->rc_target_bitrate = settings->bitrate;
    c->rc_dropframe_thresh = settings->is_strict ? 30 : 0;
    c->rc_resize_allowed = 0;
    c->rc_min_quantizer = 4;
    c->rc_max_quantizer = settings->is_strict ? 63 : 56;
    c->rc_undershoot_pct = 100;
    c->rc_overshoot_pct = 15;
    c->rc_buf_initial_sz = 500;
    c->rc_buf_optimal_sz = 600;
    c->rc_buf_sz = 1000;
    c->kf_mode = VPX_KF_DISABLED;
    if (settings->lower_layer_percent > 0) {
        c->ts_number_layers = c->ts_periodicity = 2;
        c->ts_rate_decimator[0] = 2;
        c->ts_rate_decimator[1] = 1;
        c->ts_layer_id[0] = 0;
        c->ts_layer_id[1] = 1;
        c->ts_target_bitrate[0] = settings->bitrate * settings->lower_layer_percent / 100;
        c->ts_target_bitrate[1] = settings->bitrate;
    }
    if (vpx_codec_enc_init(&encoder->context, vpx_codec_vp8_cx(), c, 0)) goto failed;
    vpx_codec_control(&encoder->context, VP8E_SET_CPUUSED, -settings->speed);
    vpx_codec_control(&encoder->context, VP8E_SET_STATIC_THRESHOLD, 100);
    vpx_codec_control(&encoder->context, VP8E_SET_NOISE_SENSITIVITY, 0);
    vpx_codec_control(&encoder->context, VP8E_SET_TOKEN_PARTITIONS, settings->threads > 1 ? 1 : 0);
    // A key frame takes at most as long as so many percent of a frame's share of the rate.
    vpx_codec_control(&encoder->context, VP8E_SET_MAX_INTRA_BITRATE_PCT, settings->key_frame_percent);
    return encoder;
failed:
    free(encoder);
    return NULL;
}

int ccomposing_vp8_encode(
    struct ccomposing_vp8 *encoder, const uint8_t *const planes[3], const int strides[3], int64_t timestamp,
    int duration, int forces_key_frame, int temporal_layer, struct ccomposing_vp8_frame *frame) {
    // A picture of the lower layer is made of the one before it, and one of the higher layer is needed by none.
    static const vpx_enc_frame_flags_t lower = VP8_EFLAG_NO_REF_GF | VP8_EFLAG_NO_REF_ARF | VP8_EFLAG_NO_UPD_GF
        | VP8_EFLAG_NO_UPD_ARF;
    static const vpx_enc_frame_flags_t higher = VP8_EFLAG_NO_REF_GF | VP8_EFLAG_NO_REF_ARF | VP8_EFLAG_NO_UPD_GF
        | VP8_EFLAG_NO_UPD_ARF | VP8_EFLAG_NO_UPD_LAST | VP8_EFLAG_NO_UPD_ENTROPY;
    vpx_image_t image;
    memset(&image, 0, sizeof image);
    image.fmt = VPX_IMG_FMT_I420;
    image.w = image.d_w = encoder->configuration.g_w;
    image.h = image.d_h = encoder->configuration.g_h;
    image.x_chroma_shift = image.y_chroma_shift = 1;
    image.bps = 12;
    for (int plane = 0; plane < 3; plane++) {
        // libvpx reads only.
        image.planes[plane] = (uint8_t *)planes[plane];
        image.stride[plane] = strides[plane];
    }
    vpx_enc_frame_flags_t flags = forces_key_frame ? VPX_EFLAG_FORCE_KF : 0;
    if (encoder->configuration.ts_number_layers > 1) {
        if (vpx_codec_control(&encoder->context, VP8E_SET_TEMPORAL_LAYER_ID, temporal_layer)) return -1;
        if (!forces_key_frame) flags = temporal_layer > 0 ? higher : lower;
    }
    if (vpx_codec_encode(&encoder->context, &image, timestamp, duration, flags, VPX_DL_REALTIME)) return -1;
    vpx_codec_iter_t iterator = NULL;
    const vpx_codec_cx_pkt_t *packet;
    while ((packet = vpx_codec_get_cx_data(&encoder->context, &iterator))) {
        if (packet->kind != VPX_CODEC_CX_FRAME_PKT) continue;
        frame->bytes = packet->data.frame.buf;
        frame->count = packet->data.frame.sz;
        frame->is_key_frame = (packet->data.frame.flags & VPX_FRAME_IS_KEY) != 0;
        return 1;
    }
    return 0;
}

void ccomposing_vp8_close(struct ccomposing_vp8 *encoder) {
    vpx_codec_destroy(&encoder->context);
    free(encoder);
}
