extension WireError {
    /// What is wrong with a peer's RTMP, for people, as the rest of a sentence about the peer.
    ///
    /// Messages themselves are read elsewhere: these are the errors of handshakes and chunks.
    package var rtmpFault: String {
        guard case .invalid(let field) = self else { return "sends a message that ends too early" }
        return switch field {
        case .rtmpVersion: "begins with another protocol than RTMP"
        case .rtmpChunk: "sends a chunk that doesn't fit the chunks before it"
        case .rtmpChunkStreams: "uses more than \(RTMPChunkReader.streamLimit) chunk streams"
        case .rtmpChunkSize: "sets an invalid chunk size"
        case .rtmpMessageLength: "sends a message that is too long"
        default: "sends invalid data (\(field))"
        }
    }
}
