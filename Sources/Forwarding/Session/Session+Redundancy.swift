import Base
import Peer
import Wire

/// Sound of publishers whose packets carry earlier ones (RED).
///
/// Only here is it known of: what was lost and is in a later packet is taken in as a packet of its own, and the later
/// one goes on as if it had been sent without. So viewers, recordings, compositions and HLS get sound as from anybody
/// else, and what a viewer who takes RED and loses packets gets is made for that viewer.
/// - Source: RFC 2198.
extension Session {
    /// Takes a decrypted packet in that carries earlier sound, and first of all what is missing of that.
    ///
    /// One without a payload is padding by which Chromium probes its path: it has no blocks, and fills its place.
    /// - Parameter payloadType: of all its blocks.
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

    /// Takes in what lost packets held that are within another, in their order.
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

    /// Takes in what a lost packet held.
    ///
    /// It gets no header extensions: nobody knows what they said.
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
    /// Moves a packet's header over bytes behind it that are no longer needed.
    /// - Parameters:
    ///   - end: of the header, which begins with the first byte.
    ///   - distance: how many bytes behind it are overwritten.
    /// - Returns: where the packet begins now.
    mutating func moveHeader(endingAt end: Int, forwardBy distance: Int) throws(WireError) -> Int {
        var index = end - 1
        while index >= 0 {
            try store(span.uint8(at: index), at: index + distance)
            index -= 1
        }
        return distance
    }
}
