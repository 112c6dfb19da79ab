import Base
import ClientPeer
import Peer
import Wire

/// One RTP stream that a viewer receives.
struct ViewerStream {
    let ssrc: UInt32
    let codec: MediaCodec
    /// A retransmission stream names the payload type it stands for.
    let repairs: UInt8?
    var reception: ReceiveStream
    /// Nanoseconds from publisher to here, of the last packet that had a stamp.
    var lastLatency: Int64?

    var isVideo: Bool { codec.isVideo }
}

extension ClientPlan {
    /// What a payload type that arrives stands for.
    struct Incoming: Sendable {
        var codec: MediaCodec
        /// The payload type that it repairs, if it is RTX.
        var repairs: UInt8?
    }

    /// Every payload type the server may send; those that mean different things on different m-lines keep the first.
    var incoming: [UInt8: Incoming] {
        var table: [UInt8: Incoming] = [:]
        for line in lines where line.direction.receives {
            for format in line.formats {
                if table[format.payloadType] == nil {
                    table[format.payloadType] = Incoming(codec: format.codec)
                }
                guard let repair = format.repairPayloadType, table[repair] == nil else { continue }
                table[repair] = Incoming(codec: format.codec, repairs: format.payloadType)
            }
        }
        return table
    }

    /// Whether the server will send video.
    var hasVideo: Bool { lines.contains { $0.direction.receives && $0.kind == .video } }
}
