import Base
import ClientPeer
import Peer
import Wire

/// One RTP stream that a viewer receives.
struct ViewerStream {
    let ssrc: UInt32
    let codec: MediaCodec
    /// The payload type that this RTX stream repairs; nil for a media stream.
    let repairs: UInt8?
    var reception: ReceiveStream
    /// Nanoseconds from the publisher to this viewer, of the latest packet with a stamp.
    var lastLatency: Int64?

    var isVideo: Bool { codec.isVideo }
}

extension ClientPlan {
    /// What an incoming payload type means.
    struct Incoming: Sendable {
        var codec: MediaCodec
        /// The payload type that it repairs; nil if it is not RTX.
        var repairs: UInt8?
    }

    /// All payload types that the server may send.
    ///
    /// A type with different meanings on different m-lines keeps the first one.
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
