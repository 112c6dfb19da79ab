import Base
import Peer
import Wire

/// Where the packets of a tap go: to somebody inside the server who is not a peer, such as the transcoder.
///
/// Called on the worker's thread, which must not be held up: a copy into a bounded buffer, and no more.
package protocol TapSink: AnyObject, Sendable {
    /// - Parameter bytes: the packet, in the clear; good for the duration of the call.
    func take(_ packet: TappedPacket, _ bytes: Span<UInt8>)
    /// Nothing more comes: the key frame is whole, the tap was closed, or the track has ended.
    func finish()
}

/// Names a tap; unique within a node.
package struct TapID: Hashable, Sendable {
    /// Never used twice.
    package let number: UInt64

    package init(number: UInt64) {
        self.number = number
    }
}

/// A tap to be put on a track.
package struct TapOpening: Sendable {
    /// Which track; its worker has to be asked.
    package enum Target: Sendable {
        /// What a session publishes on an m-line.
        case source(SessionID, mid: String)
        case track(PublishedTrack)
    }

    /// How much the tap takes.
    package enum Mode: Equatable, Sendable {
        /// The packets of one key frame, in order and whole, and then no more: the latest one that came, or the next.
        ///
        /// - `after`: one that was taken before, which is of no use again.
        /// - `mayAsk`: whether the publisher may be asked for one.
        case keyFrame(after: TapMark?, mayAsk: Bool)
        /// Every packet as it comes, those that were sent again behind later ones; video from a key frame on, and
        /// from the cache where that has one.
        case whole
    }

    /// Chosen by control, which closes it by this.
    package let id: TapID
    /// Looked up once, when the tap is opened.
    package let target: Target
    /// For the tap's life.
    package let mode: Mode
    /// Of simulcast layers, the best picture that is not higher is taken, or the least; nil for the best.
    package let maximumHeight: Int?
    /// Whether it takes only what comes for others: no layer is sent for its sake.
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

/// Tells one key frame of a track from others.
package struct TapMark: Equatable, Sendable {
    let epoch: UInt32
    let sequenceNumber: Int64

    package init(_ packet: TappedPacket) {
        epoch = packet.epoch
        sequenceNumber = packet.sequenceNumber
    }

    package init(epoch: UInt32, sequenceNumber: Int64) {
        self.epoch = epoch
        self.sequenceNumber = sequenceNumber
    }
}

/// What a tap tells of one packet.
package struct TappedPacket: Equatable, Sendable {
    /// Of this packet: a publisher may change it.
    package let codec: MediaCodec
    /// Extended, as the source counts.
    package let sequenceNumber: Int64
    /// In ticks of the codec's clock, as the publisher sent it.
    package let timestamp: UInt32
    /// The last packet of a frame.
    package let marker: Bool
    /// Whether a decoder that saw nothing before can begin here.
    package let isEntryPoint: Bool
    /// Changes with the layer, and when the source starts anew: other sequence numbers, another time line.
    package let epoch: UInt32
    /// When the worker received it, or took it out of the cache.
    package let arrival: MonotonicTime
    /// When the media was captured, on our clock; nil while that is not known, and for packets out of the cache.
    package let captured: MonotonicTime?
    /// 0 (loudest) to 127; nil where the publisher does not tell.
    package let audioLevel: UInt8?
    /// As the video orientation extension says it.
    package let orientation: UInt8?
    /// Within the bytes.
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
