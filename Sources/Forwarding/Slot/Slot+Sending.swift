import Base
import Crypto
import Peer
import Wire

extension Slot {
    /// Longest datagram a slot makes: what an Ethernet path takes over IPv6 (1,500 − 48 bytes of IP and UDP).
    static let maximumDatagram = 1_452

    /// Hot path: sends packets of the current layer, which leave together.
    ///
    /// No `await`, no lock, no allocation, no log line.
    /// - Parameter storage: the layer's history, in which the packets lie.
    func send(
        _ packets: Span<ForwardedPacket>, from storage: Span<UInt8>, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard let segment = timeline.current, let format else {
            return counters.drops.codecNotNegotiated &+= UInt64(packets.count)
        }
        guard let address = connection.remoteAddress else {
            return counters.drops.noAddress &+= UInt64(packets.count)
        }
        var sent = SentRun()
        sink.append(packets.count, to: address, capacity: Self.maximumDatagram) { index, buffer in
            let packet = packets[index]
            let length = write(packet, storage, in: segment, as: format, into: &buffer)
            guard length > 0 else { return 0 }
            sent.packets &+= 1
            sent.bytes &+= length
            sent.payloadBytes &+= packet.payload.count
            return length
        }
        stream.sent(packets: sent.packets, payloadSize: sent.payloadBytes, at: now)
        retransmissions.sent(bytes: sent.bytes, at: now)
        counters.packetsSent &+= UInt64(sent.packets)
        counters.bytesSent &+= UInt64(sent.bytes)
    }

    /// Writes one packet as the viewer gets it, and notes where its stream stands then.
    /// - Returns: the length of the SRTP packet; 0 if it is dropped, which is counted.
    private func write(
        _ packet: ForwardedPacket, _ storage: Span<UInt8>, in segment: RTPTimeline<TrackLayer>.Segment,
        as format: MediaFormat, into buffer: inout MutableSpan<UInt8>
    ) -> Int {
        guard format.codec == packet.codec else {
            counters.drops.codecNotNegotiated &+= 1
            return 0
        }
        guard let sequence = segment.outgoing(packet.sequenceNumber) else {
            counters.drops.beforeStart &+= 1
            return 0
        }
        let timestamp = packet.timestamp &+ segment.timestampOffset
        let form = OutgoingForm(
            ssrc: plan.ssrc, payloadType: format.payloadType, index: sequence, timestamp: timestamp,
            pictures: packet.pictures.adding(segment.pictures), originalSequence: nil)
        guard let length = try? write(packet, storage.extracting(packet.place), as: form, into: &buffer)
        else {
            counters.drops.oversize &+= 1
            return 0
        }
        if timeline.sent(sequence, timestamp: timestamp, at: packet.arrival) {
            lastPictures.update(with: form.pictures)
        }
        stream.mark(timestamp: timestamp, captured: packet.captured, at: packet.arrival)
        retransmissions.note(sequence, startsKeyFrame: packet.startsKeyFrame)
        return length
    }

    /// Answers a NACK: sends the packets again that are still in the history, as RTX where it was negotiated.
    /// - Source: RFC 4585 §6.2.1, RFC 4588 §4.
    func resend(
        _ lost: [UInt16], rtt: Duration?, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        counters.resendsRequested &+= UInt64(lost.count)
        for sequenceNumber in lost {
            guard let (segment, sequence, outgoing) = timeline.origin(of: sequenceNumber),
                let range = segment.source.history.range(of: sequence)
            else { continue }
            let verdict = retransmissions.admit(outgoing, size: range.count, rtt: rtt, at: now)
            guard verdict == .admitted else { continue }
            resend(segment, sequence, outgoing, range, into: &sink)
        }
    }

    private func resend(
        _ segment: RTPTimeline<TrackLayer>.Segment, _ sequence: Int64, _ outgoing: Int64, _ range: Range<Int>,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard let address = connection.remoteAddress,
            let packet = segment.source.packet(at: range, sequenceNumber: sequence),
            let format = plan.format(for: packet.codec)
        else { return }
        let timestamp = packet.timestamp &+ segment.timestampOffset
        var form = OutgoingForm(
            ssrc: plan.ssrc, payloadType: format.payloadType, index: outgoing, timestamp: timestamp,
            pictures: packet.pictures.adding(segment.pictures), originalSequence: nil)
        if let repairSSRC = plan.repairSSRC, let repairPayloadType = format.repairPayloadType {
            form.ssrc = repairSSRC
            form.payloadType = repairPayloadType
            form.index = repairIndex
            form.originalSequence = UInt16(truncatingIfNeeded: outgoing)
            repairIndex &+= 1
        }
        do {
            let storage = segment.source.history.storage
            try sink.append(to: address, capacity: Self.maximumDatagram) { buffer throws(SlotError) in
                try write(packet, storage.span.extracting(range), as: form, into: &buffer)
            }
            counters.packetsResent &+= 1
        } catch {
            counters.drops.oversize &+= 1
        }
    }

    /// Writes header, rewritten payload start and the shared rest, encrypted, into `buffer`.
    /// - Returns: the length of the SRTP packet.
    private func write(
        _ packet: ForwardedPacket, _ bytes: Span<UInt8>, as form: OutgoingForm,
        into buffer: inout MutableSpan<UInt8>
    ) throws(SlotError) -> Int {
        do {
            let headerLength = try writeHeader(packet, bytes, as: form, into: &buffer)
            var prefixEnd = headerLength
            if let original = form.originalSequence {
                prefixEnd = try Retransmission.writePrefix(original: original, into: &buffer, at: prefixEnd)
            }
            let payload = packet.payload
            try bytes.require(payload)
            let replaced = try packet.descriptor.write(
                form.pictures, copying: bytes.extracting(payload), into: &buffer, at: &prefixEnd)
            let body = min(payload.lowerBound + replaced, payload.upperBound)..<payload.upperBound
            return try connection.protect(
                &buffer, headerLength: headerLength, prefixLength: prefixEnd - headerLength,
                body: bytes.extracting(body), index: UInt64(bitPattern: form.index))
        } catch {
            throw SlotError()
        }
    }

    private func writeHeader(
        _ packet: ForwardedPacket, _ bytes: Span<UInt8>, as form: OutgoingForm,
        into buffer: inout MutableSpan<UInt8>
    ) throws(WireError) -> Int {
        var writer = try RTPHeaderWriter(
            marker: packet.marker, payloadType: form.payloadType,
            sequenceNumber: UInt16(truncatingIfNeeded: form.index), timestamp: form.timestamp,
            ssrc: form.ssrc,
            into: &buffer)
        let ids = plan.extensions
        let passedOn = packet.passedOn
        // Longest first: an element that needs the two-byte form moves all that stand before it.
        if let range = passedOn.dependencyDescriptor, let id = ids.dependencyDescriptor,
            range.count <= 16 || plan.allowsMixedExtensions
        {
            try writer.append(id: id, copying: bytes, range, into: &buffer)
            if let number = form.pictures.frameNumber {
                // The first element's value is the last thing written so far.
                let value = writer.position - range.count
                try buffer.store(number, at: value + DependencyDescriptor.frameNumberOffset)
            }
        }
        try writer.pass(passedOn.absoluteCaptureTime, as: ids.absoluteCaptureTime, from: bytes, into: &buffer)
        try writer.pass(passedOn.playoutDelay, as: ids.playoutDelay, from: bytes, into: &buffer)
        try writer.pass(passedOn.videoOrientation, as: ids.videoOrientation, from: bytes, into: &buffer)
        try writer.pass(passedOn.audioLevel, as: ids.audioLevel, from: bytes, into: &buffer)
        if form.index < firstIndexWithoutMID, let id = ids.mid {
            let mid = mid
            try writer.append(id: id, copying: mid.span, 0..<mid.count, into: &buffer)
        }
        return try writer.finish(into: &buffer)
    }
}

/// A packet could not be written: it does not fit, or the connection cannot encrypt (yet).
struct SlotError: Error {}

/// What left for one viewer together.
private struct SentRun {
    var packets = 0
    var bytes = 0
    var payloadBytes = 0
}

/// In whose name a packet is sent on.
private struct OutgoingForm {
    var ssrc: UInt32
    var payloadType: UInt8
    /// 48-bit packet index of SRTP; its low 16 bits are the sequence number (RFC 3711 §3.3.1).
    var index: Int64
    var timestamp: UInt32
    var pictures: PictureNumbers
    /// For RTX: the sequence number of the packet that is repeated.
    var originalSequence: UInt16?
}

extension RTPHeaderWriter {
    /// Copies an element that the source had, if the receiver has an id for it.
    fileprivate mutating func pass(
        _ range: Range<Int>?, as id: UInt8?, from source: Span<UInt8>, into buffer: inout MutableSpan<UInt8>
    ) throws(WireError) {
        guard let range, let id else { return }
        try append(id: id, copying: source, range, into: &buffer)
    }
}
