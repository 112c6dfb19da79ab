#include "CComposing.h"

int ccomposing_opus_configure(OpusEncoder *encoder, int bitrate, int recovery, int loss, int complexity) {
    if (opus_encoder_ctl(encoder, OPUS_SET_BITRATE(bitrate)) != OPUS_OK) return -1;
    if (opus_encoder_ctl(encoder, OPUS_SET_INBAND_FEC(recovery)) != OPUS_OK) return -1;
    if (opus_encoder_ctl(encoder, OPUS_SET_PACKET_LOSS_PERC(loss)) != OPUS_OK) return -1;
    if (opus_encoder_ctl(encoder, OPUS_SET_COMPLEXITY(complexity)) != OPUS_OK) return -1;
    return 0;
}
