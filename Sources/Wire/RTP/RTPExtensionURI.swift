/// The header extensions that this server knows, by their URIs in `a=extmap`.
package enum RTPExtensionURI: String, CaseIterable, Sendable {
    /// RFC 9143 §15.
    case mid = "urn:ietf:params:rtp-hdrext:sdes:mid"
    /// RFC 8852 §3.1.
    case rtpStreamID = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
    /// RFC 8852 §3.2.
    case repairedRTPStreamID = "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id"
    case transportSequenceNumber =
        "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
    case absoluteSendTime = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
    case absoluteCaptureTime = "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time"
    case playoutDelay = "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"
    case videoContentType = "http://www.webrtc.org/experiments/rtp-hdrext/video-content-type"
    case videoTiming = "http://www.webrtc.org/experiments/rtp-hdrext/video-timing"
    case colorSpace = "http://www.webrtc.org/experiments/rtp-hdrext/color-space"
    case videoLayersAllocation =
        "http://www.webrtc.org/experiments/rtp-hdrext/video-layers-allocation00"
    /// RFC 6464.
    case audioLevel = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
    /// 3GPP TS 26.114 §7.4.5.
    case videoOrientation = "urn:3gpp:video-orientation"
    /// RFC 5450.
    case transmissionTimeOffset = "urn:ietf:params:rtp-hdrext:toffset"
    /// AV1 RTP payload specification, appendix A.
    case dependencyDescriptor =
        "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"
}
