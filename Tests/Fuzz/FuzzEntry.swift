/// One format that libFuzzer feeds with bytes, and that a test replays crashers through.
///
/// `XFuzz.swift` holds the function of entry `X`. Its line `// Seeds: FOLDER/*SUFFIX` names files below
/// Tests/Fixtures to begin with: in `.hex` files each line is an input, other files are one input each.
package struct FuzzEntry: Sendable {
    package let name: String
    /// Traps if the bytes make the code break a promise.
    package let run: @Sendable (Span<UInt8>) -> Void

    /// In the order of their names.
    package static let all = [
        FuzzEntry(name: "Address", run: fuzzAddress),
        FuzzEntry(name: "ByteRange", run: fuzzByteRange),
        FuzzEntry(name: "ChunkedBody", run: fuzzChunkedBody),
        FuzzEntry(name: "Composition", run: fuzzComposition),
        FuzzEntry(name: "ControlMessage", run: fuzzControlMessage),
        FuzzEntry(name: "DTLS", run: fuzzDTLS),
        FuzzEntry(name: "DataChannel", run: fuzzDataChannel),
        FuzzEntry(name: "DataChannelTable", run: fuzzDataChannelTable),
        FuzzEntry(name: "EBML", run: fuzzEBML),
        FuzzEntry(name: "EntityTags", run: fuzzEntityTags),
        FuzzEntry(name: "FLV", run: fuzzFLV),
        FuzzEntry(name: "FeedCursor", run: fuzzFeedCursor),
        FuzzEntry(name: "FeedMessage", run: fuzzFeedMessage),
        FuzzEntry(name: "ForwardedFor", run: fuzzForwardedFor),
        FuzzEntry(name: "FragmentIndex", run: fuzzFragmentIndex),
        FuzzEntry(name: "Framing", run: fuzzFraming),
        FuzzEntry(name: "HTTPDate", run: fuzzHTTPDate),
        FuzzEntry(name: "Interaction", run: fuzzInteraction),
        FuzzEntry(name: "JSON", run: fuzzJSON),
        FuzzEntry(name: "MP4Box", run: fuzzMP4Box),
        FuzzEntry(name: "Negotiation", run: fuzzNegotiation),
        FuzzEntry(name: "PlaylistQuery", run: fuzzPlaylistQuery),
        FuzzEntry(name: "RED", run: fuzzRED),
        FuzzEntry(name: "RTCP", run: fuzzRTCP),
        FuzzEntry(name: "RTMP", run: fuzzRTMP),
        FuzzEntry(name: "RTP", run: fuzzRTP),
        FuzzEntry(name: "RecordingFile", run: fuzzRecordingFile),
        FuzzEntry(name: "RequestBody", run: fuzzRequestBody),
        FuzzEntry(name: "Restream", run: fuzzRestream),
        FuzzEntry(name: "SDP", run: fuzzSDP),
        FuzzEntry(name: "SRT", run: fuzzSRT),
        FuzzEntry(name: "SRTP", run: fuzzSRTP),
        FuzzEntry(name: "STUN", run: fuzzSTUN),
        FuzzEntry(name: "SyncMessage", run: fuzzSyncMessage),
        FuzzEntry(name: "TLS", run: fuzzTLS),
        FuzzEntry(name: "TOML", run: fuzzTOML),
        FuzzEntry(name: "TURN", run: fuzzTURN),
        FuzzEntry(name: "Token", run: fuzzToken),
        FuzzEntry(name: "Transcoder", run: fuzzTranscoder),
        FuzzEntry(name: "Video", run: fuzzVideo),
    ]
}
