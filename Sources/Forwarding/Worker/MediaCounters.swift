/// Packets and bytes, as sessions count them and metrics show them.
package struct MediaCounters: Equatable, Sendable {
    package var packetsReceived: UInt64 = 0
    /// Of RTP packets, decrypted.
    package var bytesReceived: UInt64 = 0
    /// For the first time, not as a retransmission.
    package var packetsSent: UInt64 = 0
    /// Of SRTP packets, as they leave.
    package var bytesSent: UInt64 = 0
    package var packetsResent: UInt64 = 0
    /// Could not be sent on: no codec in common, too large, no address yet.
    package var packetsDropped: UInt64 = 0
    /// Failed authentication or parsing.
    package var undecodable: UInt64 = 0
    /// Belong to no m-line.
    package var unroutable: UInt64 = 0
    package var keyFrameDemands: UInt64 = 0
    package var keyFrameRequests: UInt64 = 0
    package var keyFrames: UInt64 = 0

    package init() {}

    package mutating func add(_ other: MediaCounters) {
        packetsReceived &+= other.packetsReceived
        bytesReceived &+= other.bytesReceived
        packetsSent &+= other.packetsSent
        bytesSent &+= other.bytesSent
        packetsResent &+= other.packetsResent
        packetsDropped &+= other.packetsDropped
        undecodable &+= other.undecodable
        unroutable &+= other.unroutable
        keyFrameDemands &+= other.keyFrameDemands
        keyFrameRequests &+= other.keyFrameRequests
        keyFrames &+= other.keyFrames
    }
}
