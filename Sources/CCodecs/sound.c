#include "CCodecs.h"

#include <libavcodec/avcodec.h>
#include <libavutil/channel_layout.h>
#include <libavutil/log.h>
#include <libavutil/mem.h>
#include <libswresample/swresample.h>
#include <stdlib.h>
#include <string.h>

/// Samples of a channel that one frame may become; 2,048 at 8 kHz are 12,288.
enum { SOUND_LIMIT = 16384 };

struct ccodecs_sound {
    AVCodecContext *av;
    AVPacket *packet;
    AVFrame *frame;
    SwrContext *resampler;
    /// What the resampler was made for.
    AVChannelLayout layout;
    int sample_rate, sample_format;
    float samples[SOUND_LIMIT * 2];
};

struct ccodecs_sound *ccodecs_sound_open(const uint8_t *configuration, size_t count) {
    if (count == 0 || count > 1024) return NULL;
    struct ccodecs_sound *sound = calloc(1, sizeof *sound);
    if (sound == NULL) return NULL;
    av_log_set_level(AV_LOG_QUIET);
    const AVCodec *codec = avcodec_find_decoder_by_name("aac");
    sound->av = codec != NULL ? avcodec_alloc_context3(codec) : NULL;
    sound->packet = av_packet_alloc();
    sound->frame = av_frame_alloc();
    if (sound->av != NULL && sound->packet != NULL && sound->frame != NULL) {
        sound->av->thread_count = 1;
        sound->av->extradata = av_mallocz(count + AV_INPUT_BUFFER_PADDING_SIZE);
        if (sound->av->extradata != NULL) {
            memcpy(sound->av->extradata, configuration, count);
            sound->av->extradata_size = (int)count;
            if (avcodec_open2(sound->av, codec, NULL) == 0) return sound;
        }
    }
    ccodecs_sound_close(sound);
    return NULL;
}

/// Makes a resampler for what the decoder gives out now; HE-AAC shows its real rate with the first frame only.
static int prepare(struct ccodecs_sound *sound) {
    AVFrame *frame = sound->frame;
    if (sound->resampler != NULL && sound->sample_rate == frame->sample_rate
        && sound->sample_format == frame->format
        && av_channel_layout_compare(&sound->layout, &frame->ch_layout) == 0)
        return 0;
    swr_free(&sound->resampler);
    if (frame->sample_rate < 7350 || frame->sample_rate > 192000) return CCODECS_UNSUPPORTED;
    AVChannelLayout stereo = AV_CHANNEL_LAYOUT_STEREO;
    if (swr_alloc_set_opts2(
            &sound->resampler, &stereo, AV_SAMPLE_FMT_FLT, 48000, &frame->ch_layout, frame->format,
            frame->sample_rate, 0, NULL) < 0
        || swr_init(sound->resampler) < 0
        || av_channel_layout_copy(&sound->layout, &frame->ch_layout) < 0)
        return CCODECS_UNSUPPORTED;
    sound->sample_rate = frame->sample_rate;
    sound->sample_format = frame->format;
    return 0;
}

int ccodecs_sound_decode(
    struct ccodecs_sound *sound, const uint8_t *bytes, size_t count, const float **samples) {
    *samples = sound->samples;
    if (bytes == NULL || count == 0 || count > 1 << 16) return CCODECS_FAILED;
    if (av_new_packet(sound->packet, (int)count) != 0) return CCODECS_FAILED;
    memcpy(sound->packet->data, bytes, count);
    int sent = avcodec_send_packet(sound->av, sound->packet);
    av_packet_unref(sound->packet);
    if (sent < 0) return CCODECS_FAILED;
    int total = 0;
    while (avcodec_receive_frame(sound->av, sound->frame) == 0) {
        int status = prepare(sound);
        if (status == 0) {
            uint8_t *output = (uint8_t *)(sound->samples + (size_t)total * 2);
            int made = swr_convert(
                sound->resampler, &output, SOUND_LIMIT - total, (const uint8_t **)sound->frame->extended_data,
                sound->frame->nb_samples);
            if (made > 0) total += made;
        }
        av_frame_unref(sound->frame);
        if (status != 0) return status;
    }
    return total;
}

void ccodecs_sound_close(struct ccodecs_sound *sound) {
    if (sound == NULL) return;
    swr_free(&sound->resampler);
    av_channel_layout_uninit(&sound->layout);
    av_frame_free(&sound->frame);
    av_packet_free(&sound->packet);
    avcodec_free_context(&sound->av);
    free(sound);
}
