import Base
import Peer
import Wire

/// What fan-out needs to know of one received packet: parsed once, used for every slot.
///
/// Holds byte ranges, not bytes; they are good for the buffer that the packet was parsed from, and for its copy in
/// the history.
package struct MediaPacket {
    /// As the publisher sent it.
    package let header: RTPHeader
    /// By the payload type.
    package let codec: MediaCodec
    /// Extension elements that viewers get as they came.
    package let passedOn: PassedExtensions
    /// Extended beyond 16 bits, as the source counts.
    package internal(set) var sequenceNumber: Int64 = 0
    /// When the media was captured, on our clock; nil while the publisher has not told its own.
    package internal(set) var captured: MonotonicTime?
    /// Nil for audio, and for video whose payload makes no sense.
    package internal(set) var video: VideoPacketInfo?
    /// VP8's or VP9's, whose counters a slot rewrites.
    package internal(set) var descriptor = PayloadDescriptor.none
    /// Nil where the packet has no dependency descriptor.
    package internal(set) var dependency: DependencyDescriptor?
    /// As the sender counts, with short picture ids extended.
    package internal(set) var pictures = PictureNumbers()

    package init(header: RTPHeader, codec: MediaCodec, passedOn: PassedExtensions) {
        self.header = header
        self.codec = codec
        self.passedOn = passedOn
    }

    /// Whether a decoder that saw nothing before can start here.
    package var isEntryPoint: Bool {
        codec.isVideo ? video?.startsKeyFrame ?? false : !header.payloadRange.isEmpty
    }

    /// How many packets before this entry point a decoder may need too: of H.264 a delimiter, two parameter sets and
    /// enhancement information, each in a packet of its own.
    var keyFrameHead: Int64 { video?.mayFollowHead == true ? 4 : 0 }
}

/// Where a packet holds the header extensions that are passed on; nil where it does not.
///
/// Read at the publisher's ids and written under the viewer's.
package struct PassedExtensions: Equatable, Sendable {
    /// RFC 6464.
    package var audioLevel: Range<Int>?
    /// 3GPP TS 26.114 §7.4.5.
    package var videoOrientation: Range<Int>?
    /// The publisher's wish, which a replay replaces.
    package var playoutDelay: Range<Int>?
    /// On the publisher's clock.
    package var absoluteCaptureTime: Range<Int>?
    /// Its frame number is rewritten.
    package var dependencyDescriptor: Range<Int>?

    /// None.
    init() {}

    /// Finds the elements in `packet`, by the ids that its sender uses.
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
