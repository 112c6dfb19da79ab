import Wire

/// What a publisher sends who puts earlier sound into later packets, as Chromium does.
struct RedundantSound {
    private struct Sent {
        let timestamp: UInt32
        let payload: [UInt8]
    }

    /// Earlier packets in each, if there were so many.
    let depth: Int
    private var earlier: [Sent] = []

    init(depth: Int) { self.depth = depth }

    /// The payload of a packet whose blocks are all of one type, the oldest first.
    mutating func wrap(_ payload: [UInt8], timestamp: UInt32, type: UInt8) -> [UInt8] {
        defer {
            earlier.append(Sent(timestamp: timestamp, payload: payload))
            earlier = Array(earlier.suffix(depth))
        }
        let blocks = earlier.filter {
            RedundantAudio.canCarry(length: $0.payload.count, offset: timestamp &- $0.timestamp)
        }
        return Self.payload(
            blocks.map { (timestamp &- $0.timestamp, $0.payload) }, own: payload, type: type)
    }

    /// A payload whatever its blocks are.
    static func payload(
        _ blocks: [(offset: UInt32, bytes: [UInt8])], own: [UInt8], type: UInt8
    ) -> [UInt8] {
        var headers = [UInt8](repeating: 0, count: blocks.count * 4 + 1)
        var span = headers.mutableSpan
        var position = 0
        for block in blocks {
            try? RedundantAudio.writeHeader(
                payloadType: type, offset: block.offset, length: block.bytes.count, into: &span, at: &position
            )
        }
        try? RedundantAudio.writeLastHeader(payloadType: type, into: &span, at: &position)
        return headers + blocks.flatMap(\.bytes) + own
    }
}
