import Base
import Peer
import Wire

/// Receives the packets of a tap, for a part of the server such as the transcoder.
///
/// Called on the worker's thread, which must not be delayed: an implementation may copy into a bounded buffer, and no
/// more.
package protocol TapSink: AnyObject, Sendable {
    /// Receives one packet.
    /// - Parameter bytes: the unencrypted packet; valid during the call.
    func take(_ packet: TappedPacket, _ bytes: Span<UInt8>)
    /// The last call: the key frame is complete, the tap was closed, or the track has ended.
    func finish()
}

/// Identifies a tap; unique within a node.
package struct TapID: Hashable, Sendable {
    /// Never reused.
    package let number: UInt64

    package init(number: UInt64) {
        self.number = number
    }
}

/// A request to put a tap on a track.
package struct TapOpening: Sendable {
    /// The track to tap; the request must go to its worker.
    package enum Target: Sendable {
        /// What a session publishes on an m-line.
        case source(SessionID, mid: String)
        case track(PublishedTrack)
    }

    /// Which packets the tap receives.
    package enum Mode: Equatable, Sendable {
        /// The packets of one key frame, complete and in order, and then no more: the latest one, or else the next.
        ///
        /// - `after`: a key frame that was received before and is not wanted again.
        /// - `mayAsk`: whether a key frame may be requested from the publisher.
        case keyFrame(after: TapMark?, mayAsk: Bool)
        /// Every packet as it arrives, retransmitted ones after later ones.
        ///
        /// Video begins with a key frame, from the cache if there is one.
        case whole
    }

    /// Chosen by control, which uses it to close the tap.
    package let id: TapID
    /// Looked up once, when the tap is opened.
    package let target: Target
    /// Fixed for the tap's lifetime.
    package let mode: Mode
    /// Maximum height of the simulcast layer, in pixels; nil for the best.
    ///
    /// If all layers are higher, the tap receives the lowest one.
    package let maximumHeight: Int?
    /// Whether it receives only what is sent for others: no layer is requested for its sake.
    package let isAlongside: Bool
    /// Called on the worker's thread.
    package let sink: any TapSink

    package init(
        id: TapID, target: Target, mode: Mode, maximumHeight: Int? = nil, isAlongside: Bool = false,
        sink: any TapSink
    ) {
        self.id = id
        self.target = target
        self.mode = mode
        self.maximumHeight = maximumHeight
        self.isAlongside = isAlongside
        self.sink = sink
    }
}

/// Identifies a key frame of a track.
package struct TapMark: Equatable, Sendable {
    let epoch: UInt32
    let sequenceNumber: Int64

    /// The mark of a key frame's first packet.
    package init(_ packet: TappedPacket) {
        epoch = packet.epoch
        sequenceNumber = packet.sequenceNumber
    }

    package init(epoch: UInt32, sequenceNumber: Int64) {
        self.epoch = epoch
        self.sequenceNumber = sequenceNumber
    }
}

/// The properties of a tapped packet.
package struct TappedPacket: Equatable, Sendable {
    /// The codec of this packet; a publisher may change codecs.
    package let codec: MediaCodec
    /// The source's sequence number, extended beyond 16 bits.
    package let sequenceNumber: Int64
    /// In ticks of the codec's clock, as the publisher sent it.
    package let timestamp: UInt32
    /// Whether it is the last packet of a frame.
    package let marker: Bool
    /// Whether a decoder can begin here.
    package let isEntryPoint: Bool
    /// Changes with the layer and when the source restarts; sequence numbers and timestamps are not comparable across
    /// it.
    package let epoch: UInt32
    /// When the worker received it, or read it from the cache.
    package let arrival: MonotonicTime
    /// When the media was captured, on the server's clock; nil while unknown, and for packets from the cache.
    package let captured: MonotonicTime?
    /// In -dBov, 0 (loudest) to 127; nil if the publisher sends no level.
    package let audioLevel: UInt8?
    /// The value of the video orientation extension; nil if there is none.
    package let orientation: UInt8?
    /// The payload's place in the bytes.
    package let payload: Range<Int>

    init(_ packet: ForwardedPacket, _ bytes: Span<UInt8>, epoch: UInt32) {
        codec = packet.codec
        sequenceNumber = packet.sequenceNumber
        timestamp = packet.timestamp
        marker = packet.marker
        isEntryPoint = packet.startsKeyFrame || !packet.codec.isVideo
        self.epoch = epoch
        arrival = packet.arrival
        captured = packet.captured
        audioLevel = packet.passedOn.audioLevel.flatMap { range in
            (try? bytes.uint8(at: range.lowerBound)).map { $0 & 0x7F }
        }
        orientation = packet.passedOn.videoOrientation.flatMap { try? bytes.uint8(at: $0.lowerBound) }
        payload = packet.payload
    }
}
