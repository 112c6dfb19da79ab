import Base
import Peer
import Wire

/// Audio of publishers whose packets contain earlier packets (RED).
///
/// RED ends here. A lost packet that is contained in a later one is accepted as a separate packet, and the later one
/// goes on as if it had been sent without RED. So viewers, recordings, compositions and HLS get ordinary audio. For a
/// viewer who accepts RED and loses packets, the server makes RED itself.
/// - Source: RFC 2198.
extension Session {
    /// Accepts a decrypted RED packet, and before it the missing packets that it contains.
    ///
    /// A packet without a payload is padding by which Chromium probes its path. It has no blocks, and only fills its
    /// place.
    /// - Parameter payloadType: payload type of all its blocks.
    func acceptRedundant(
        _ datagram: inout MutableSpan<UInt8>, _ header: RTPHeader, length: Int, blocks payloadType: UInt8,
        on route: Route, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) throws(WireError) {
        var start = 0
        if !header.payloadRange.isEmpty {
            let red = try RedundantPayload(parsing: datagram.span.extracting(header.payloadRange))
            guard red.payloadType == payloadType else { throw .invalid(.rtpPayloadType) }
            counters.redundancyReceived &+= 1
            try acceptLost(
                datagram.span.extracting(header.payloadRange), red, in: header, on: route, at: now,
                into: &sink)
            start = try datagram.moveHeader(
                endingAt: header.payloadRange.lowerBound, forwardBy: red.primary.lowerBound)
        }
        try datagram.store((header.marker ? 0x80 : 0) | payloadType, at: start + 1)
        let bare = datagram.span.extracting(start..<length)
        try accept(bare, RTPHeader(parsing: bare), on: route, origin: .original, at: now, into: &sink)
    }

    /// Accepts the lost packets contained in another one, in their order.
    private func acceptLost(
        _ payload: Span<UInt8>, _ red: RedundantPayload, in header: RTPHeader, on route: Route,
        at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) throws(WireError) {
        guard let recovery = route.layer.recovery(by: header, red, in: payload) else { return }
        for place in 0..<recovery.count {
            guard let block = recovery.found(place) else { continue }
            try accept(
                payload.extracting(block.range), block.sound, as: red.payloadType, of: header.ssrc, on: route,
                at: now, into: &sink)
        }
    }

    /// Accepts one lost packet.
    ///
    /// It gets no header extensions, because their contents are unknown.
    private func accept(
        _ payload: Span<UInt8>, _ sound: SoundRecovery.Sound, as payloadType: UInt8, of ssrc: UInt32,
        on route: Route, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) throws(WireError) {
        // The longest block behind the shortest header.
        var bytes = InlineArray<1_035, UInt8>(repeating: 0)
        var span = bytes.mutableSpan
        let writer = try RTPHeaderWriter(
            marker: false, payloadType: payloadType,
            sequenceNumber: UInt16(truncatingIfNeeded: sound.index), timestamp: sound.start, ssrc: ssrc,
            into: &span)
        let start = try writer.finish(into: &span)
        for index in payload.indices { try span.store(payload[index], at: start + index) }
        let packet = bytes.span.extracting(0..<(start + payload.count))
        try accept(packet, RTPHeader(parsing: packet), on: route, origin: .redundancy, at: now, into: &sink)
    }
}

extension MutableSpan<UInt8> {
    /// Moves a packet's header forward, over bytes that are no longer needed.
    /// - Parameters:
    ///   - end: end of the header, which begins at the first byte.
    ///   - distance: number of bytes behind the header to overwrite.
    /// - Returns: the new beginning of the packet.
    mutating func moveHeader(endingAt end: Int, forwardBy distance: Int) throws(WireError) -> Int {
        var index = end - 1
        while index >= 0 {
            try store(span.uint8(at: index), at: index + distance)
            index -= 1
        }
        return distance
    }
}
