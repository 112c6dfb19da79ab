import Base
import Peer
import Wire

/// A received packet as fan-out needs it: parsed once, used for every slot.
///
/// It contains byte ranges and no bytes. They are valid for the buffer that the packet was parsed from, and for its
/// copy in the history.
package struct MediaPacket {
    /// The header as the publisher sent it.
    package let header: RTPHeader
    /// Determined by the payload type.
    package let codec: MediaCodec
    /// Header extensions that are forwarded to viewers.
    package let passedOn: PassedExtensions
    /// The source's sequence number, extended beyond 16 bits.
    package internal(set) var sequenceNumber: Int64 = 0
    /// When the media was captured, on the server's clock; nil until the publisher's clock is known.
    package internal(set) var captured: MonotonicTime?
    /// Nil for audio, and for video whose payload cannot be parsed.
    package internal(set) var video: VideoPacketInfo?
    /// The VP8 or VP9 payload descriptor, whose counters slots rewrite.
    package internal(set) var descriptor = PayloadDescriptor.none
    /// Nil if the packet has no dependency descriptor, or one that cannot be parsed.
    package internal(set) var dependency: DependencyDescriptor?
    /// The sender's picture numbers, with short picture IDs extended.
    package internal(set) var pictures = PictureNumbers()

    package init(header: RTPHeader, codec: MediaCodec, passedOn: PassedExtensions) {
        self.header = header
        self.codec = codec
        self.passedOn = passedOn
    }

    /// Whether a decoder can start here.
    package var isEntryPoint: Bool {
        codec.isVideo ? video?.startsKeyFrame ?? false : !header.payloadRange.isEmpty
    }

    /// Number of packets before this entry point that a decoder may also need.
    ///
    /// In H.264 a delimiter, two parameter sets and enhancement information may come before, each in a packet of its
    /// own.
    var keyFrameHead: Int64 { video?.mayFollowHead == true ? 4 : 0 }
}

/// The places of a packet's forwarded header extensions; nil for those it does not contain.
///
/// They are read under the publisher's IDs and written under the viewer's.
package struct PassedExtensions: Equatable, Sendable {
    /// RFC 6464.
    package var audioLevel: Range<Int>?
    /// 3GPP TS 26.114 §7.4.5.
    package var videoOrientation: Range<Int>?
    /// Set by the publisher; a replay replaces it.
    package var playoutDelay: Range<Int>?
    /// In the publisher's clock.
    package var absoluteCaptureTime: Range<Int>?
    /// Forwarded with a rewritten frame number.
    package var dependencyDescriptor: Range<Int>?

    /// None.
    init() {}

    /// Finds the elements in `packet` by its sender's extension IDs.
    package init(of header: RTPHeader, in packet: Span<UInt8>, ids: ExtensionIDs) {
        var cursor = RTPExtensionCursor(header)
        while let element = cursor.next(in: packet) {
            switch element.id {
            case ids.audioLevel: audioLevel = element.range
            case ids.videoOrientation: videoOrientation = element.range
            case ids.playoutDelay: playoutDelay = element.range
            case ids.absoluteCaptureTime: absoluteCaptureTime = element.range
            case ids.dependencyDescriptor: dependencyDescriptor = element.range
            default: break
            }
        }
    }
}
