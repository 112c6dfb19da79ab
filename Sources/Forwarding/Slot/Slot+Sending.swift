import Base
import Crypto
import Peer
import Wire

extension Slot {
    /// Longest datagram that a slot sends: what an Ethernet path carries over IPv6 (1,500 − 48 bytes of IP and UDP).
    static let maximumDatagram = 1_452
    /// Maximum number of successive packets that the receiver may miss: its guess of the roll-over counter survives
    /// twice as many.
    /// - Source: RFC 3711 §3.3.1 and appendix A.
    private static let widestGap: Int64 = 1 << 14

    /// Hot path: sends packets of the current layer that leave together.
    ///
    /// No `await`, no lock, no allocation, no log line. During a replay the packets are sent when their turn comes.
    /// - Parameters:
    ///   - layer: the packets' layer. Packets of an epoch that the slot has not begun with are refused, because their
    ///     numbers would be assigned twice.
    ///   - keyFrame: index of the first packet that begins a key frame; nil if none does.
    ///   - storage: the layer's history, which contains the packets.
    func send(
        _ packets: Span<ForwardedPacket>, of layer: TrackLayer, keyFrame: Int?, from storage: Span<UInt8>,
        at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        guard timeline.current?.mapping.epoch == layer.epoch else {
            return counters.drops.beforeStart &+= UInt64(packets.count)
        }
        if let keyFrame, session.path != nil { spread(from: packets[keyFrame], of: layer, at: now) }
        transmit(packets, from: storage, before: replay?.next ?? .max, at: now, into: &sink)
        // A key frame whose first packet came late does not raise the sieve's limit, so larger pictures may still be
        // awaited.
        if keyFrame != nil, replay == nil { demandLargerPicture(of: layer, at: now) }
    }

    /// Writes and sends packets, without those that the sieve drops.
    /// - Parameter end: the first source number that may not be sent yet.
    func transmit(
        _ packets: Span<ForwardedPacket>, from storage: Span<UInt8>, before end: Int64, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard var mapping = timeline.current?.mapping, let format else {
            return counters.drops.codecNotNegotiated &+= UInt64(packets.count)
        }
        guard let address = connection.remoteAddress else {
            return counters.drops.noAddress &+= UInt64(packets.count)
        }
        var sieve = timeline.current?.sieve
        var run = SentRun()
        var numbers = path?.borrowPackets()
        let depth = redundancyDepth(of: format)
        let sendTime = sendTime(of: format, at: now)
        let nothing = EncryptedPacket(length: 0)
        sink.append(packets.count, to: address, capacity: Self.maximumDatagram) { index, buffer in
            let packet = packets[index]
            guard packet.sequenceNumber < end else { return nothing }
            guard format.codec == packet.codec else {
                counters.drops.codecNotNegotiated &+= 1
                return nothing
            }
            guard packet.sequenceNumber >= mapping.firstSourceSequence else {
                counters.drops.beforeStart &+= 1
                return nothing
            }
            let verdict = sieve?.judge(packet) ?? .send
            let omissions =
                sieve == nil ? FrameSieve.Omissions() : sieve?.omissions(before: packet.sequenceNumber)
            guard verdict != .leaveOut, let omissions, let place = mapping.outgoing(packet.sequenceNumber)
            else {
                counters.packetsThinned &+= 1
                return nothing
            }
            let sequence = place &- omissions.packets
            guard sequence &- max(timeline.nextSequence, run.highest &+ 1) <= Self.widestGap else {
                counters.drops.beforeStart &+= 1
                note(run, at: now)
                run = SentRun()
                closeGap(through: packet, omissions, at: now)
                mapping = timeline.current?.mapping ?? mapping
                sieve = timeline.current?.sieve
                return nothing
            }
            let form = OutgoingForm(
                ssrc: plan.ssrc, payloadType: format.payloadType, index: sequence,
                timestamp: mapping.outgoing(timestamp: packet.timestamp, of: packet.sequenceNumber),
                offsets: mapping.pictures.leavingOut(omissions.pictures),
                playout: mapping.playout(of: sequence),
                originalSequence: nil, isEmpty: verdict == .fill,
                marker: packet.marker || verdict == .sendLast,
                spatialLimit: packet.startsKeyFrame
                    ? sieve?.spatialLimit(at: packet.sequenceNumber) ?? .max : .max,
                // An empty packet is repeated under its own index, so it must not contain a number that changes.
                transportNumber: verdict == .fill ? nil : numbers?.nextNumber,
                sendTime: verdict == .fill ? nil : sendTime)
            let earlier = depth > 0 ? earlierSound(before: packet, depth: depth, in: storage) : EarlierSound()
            guard
                let sent = earlier.count > 0
                    ? try? write(packet, with: earlier, from: storage, as: form, format, into: &buffer)
                    : try? write(packet, storage.extracting(packet.place), as: form, into: &buffer)
            else {
                counters.drops.oversize &+= 1
                return nothing
            }
            if earlier.count > 0 {
                redundancy?.note(earlier.distances, by: sequence)
                counters.packetsRedundant &+= 1
            }
            if form.transportNumber != nil {
                repeatable?.note(numbers?.count ?? 0, of: sequence)
                numbers?.add(size: sent.length, at: now)
            }
            run.note(packet, as: form, length: sent.length)
            departed?.note(sequence)
            return sent
        }
        if let numbers { path?.packets = numbers }
        note(run, at: now)
    }

    /// Skips a gap too wide for the receiver, together with the packet after it.
    private func closeGap(
        through packet: ForwardedPacket, _ omissions: FrameSieve.Omissions, at now: MonotonicTime
    ) {
        guard let pictures = timeline.current?.pictures.leavingOut(omissions.pictures) else { return }
        timeline.closeGap(through: packet.sequenceNumber, pictures: pictures)
        adjustSieve(at: now)
    }

    /// Records the state of the stream after packets that were sent together.
    private func note(_ run: SentRun, at now: MonotonicTime) {
        guard run.packets > 0 else { return }
        if timeline.sent(run.highest, timestamp: run.timestamp, at: run.arrival) {
            lastPictures.update(with: run.pictures)
        }
        stream.sent(packets: run.packets, payloadSize: run.payloadBytes)
        stream.mark(timestamp: run.timestamp, captured: run.captured, at: run.arrival)
        path?.estimator.sent(run.bytes, at: now)
        retransmissions.sent(
            from: run.lowest, through: run.highest, keyFrame: run.keyFrame, size: run.bytes, at: now)
        counters.packetsSent &+= UInt64(run.packets)
        counters.bytesSent &+= UInt64(run.bytes)
    }

    /// Answers a NACK: sends packets that are still in the history again, as RTX where it was negotiated.
    /// - Source: RFC 4585 §6.2.1, RFC 4588 §4.
    func resend(
        _ lost: [UInt16], rtt: Duration?, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        counters.resendsRequested &+= UInt64(lost.count)
        if session.replayPace == nil { replay?.noteLoss(of: lost.count, at: now) }
        // Audio is small, and has priority over pictures.
        let share = plan.kind == .audio ? 100 : isStopped ? 0 : session.repairShare
        for sequenceNumber in lost {
            _ = resend(sequenceNumber, rtt: rtt, share: share, at: now, into: &sink)
        }
    }

    /// Sends a packet again if it is still in the history and the viewer's budget has room.
    /// - Parameter share: percent of the budget that may be used.
    func resend(
        _ sequenceNumber: UInt16, rtt: Duration?, share: Int, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) -> Repetition {
        guard let (segment, sequence, outgoing) = timeline.origin(of: sequenceNumber) else {
            counters.refusals.unknown &+= 1
            return .impossible
        }
        // The source may have restarted and used the same numbers for other packets.
        guard segment.mapping.epoch == segment.source.epoch,
            let range = segment.source.history.range(of: sequence)
        else {
            counters.refusals.notInHistory &+= 1
            return .impossible
        }
        guard !isAboutToSend(sequence, of: segment) else {
            counters.refusals.tooSoon &+= 1
            return .refused
        }
        let verdict = retransmissions.admit(
            outgoing, size: range.count, rtt: rtt, share: share, ceiling: session.repairCeiling, at: now)
        guard verdict == .admitted else {
            counters.refusals.count(verdict)
            return verdict == .tooSoon || verdict == .overBudget ? .refused : .impossible
        }
        guard resend(segment, sequence, outgoing, range, at: now, into: &sink) > 0 else { return .impossible }
        counters.packetsResent &+= 1
        return .sent
    }

    /// Whether a packet that arrived late waits to be sent here for the first time.
    ///
    /// It must not be repeated before: without RTX both would have one index, and audio may be sent with earlier audio
    /// where its repetition has none.
    private func isAboutToSend(_ sequence: Int64, of segment: RTPTimeline<TrackLayer>.Segment) -> Bool {
        guard !isStopped, let present = timeline.current, present.source === segment.source,
            sequence >= present.mapping.firstSourceSequence
        else { return false }
        return segment.source.isWaiting(sequence)
    }

    /// Sends a packet of the history again.
    /// - Parameters:
    ///   - sequence: its number at the source.
    ///   - outgoing: its extended number in this slot's stream.
    ///   - range: its place in the history.
    ///   - probe: the probe that it is a part of; 0 for none.
    /// - Returns: number of bytes sent; 0 if it could not be sent.
    func resend(
        _ segment: RTPTimeline<TrackLayer>.Segment, _ sequence: Int64, _ outgoing: Int64, _ range: Range<Int>,
        probe: UInt8 = 0, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) -> Int {
        guard let address = connection.remoteAddress,
            let packet = segment.source.packet(at: range, sequenceNumber: sequence),
            let format = plan.format(for: packet.codec)
        else { return 0 }
        var verdict = FrameSieve.Verdict.send
        if let sieve = segment.sieve {
            guard let known = sieve.form(of: packet) else {
                counters.refusals.unknown &+= 1
                return 0
            }
            verdict = known
        }
        let timestamp = segment.outgoing(timestamp: packet.timestamp, of: sequence)
        var form = OutgoingForm(
            ssrc: plan.ssrc, payloadType: format.payloadType, index: outgoing, timestamp: timestamp,
            offsets: segment.pictureOffsets(of: sequence), playout: segment.playout(of: outgoing),
            originalSequence: nil, isEmpty: verdict == .fill,
            marker: packet.marker || verdict == .sendLast,
            spatialLimit: packet.startsKeyFrame ? segment.sieve?.spatialLimit(at: sequence) ?? .max : .max,
            transportNumber: nil, sendTime: nil)
        if !form.isEmpty, let repairSSRC = plan.repairSSRC, let repairPayloadType = format.repairPayloadType {
            form.ssrc = repairSSRC
            form.payloadType = repairPayloadType
            form.index = repairIndex
            form.originalSequence = UInt16(truncatingIfNeeded: outgoing)
            form.transportNumber = path?.packets.nextNumber
            form.sendTime = sendTime(of: format, at: now)
            repairIndex &+= 1
        } else if !form.isEmpty, plan.extensions.transportSequenceNumber != nil {
            // Numbers are remembered only from the first request on.
            if repeatable == nil { repeatable = RepeatableNumbers() }
            guard let number = repeatable?.number(of: outgoing) else {
                counters.refusals.unknown &+= 1
                return 0
            }
            form.transportNumber = UInt16(truncatingIfNeeded: number)
        }
        let storage = segment.source.history.storage
        guard let distances = redundancy?.distances(of: outgoing) ?? (redundancy == nil ? [] : nil) else {
            counters.refusals.unknown &+= 1
            return 0
        }
        let earlier = earlierSound(
            before: packet, of: segment.source, from: segment.mapping.firstSourceSequence, distances,
            in: storage.span)
        guard earlier.distances == distances else {
            counters.refusals.notInHistory &+= 1
            return 0
        }
        var length = 0
        do {
            try sink.append(to: address, capacity: Self.maximumDatagram) { buffer throws(SlotError) in
                let sent =
                    earlier.count > 0
                    ? try write(packet, with: earlier, from: storage.span, as: form, format, into: &buffer)
                    : try write(packet, storage.span.extracting(packet.place), as: form, into: &buffer)
                length = sent.complete(&buffer)
                return length
            }
        } catch {
            counters.drops.oversize &+= 1
            return 0
        }
        if form.originalSequence != nil { noteRepair(form.index, of: length, probe: probe, at: now) }
        return length
    }

    /// The absolute send time for packets sent now; nil for receivers that do not use it.
    ///
    /// Also nil if a packet would be retransmitted under its own index, because it must be identical then.
    func sendTime(of format: MediaFormat, at now: MonotonicTime) -> UInt32? {
        guard plan.extensions.absoluteSendTime != nil, plan.repairSSRC != nil,
            format.repairPayloadType != nil
        else { return nil }
        return AbsoluteSendTime.value(at: now)
    }

    /// Records a packet of the RTX stream for feedback on the path.
    func noteRepair(_ index: Int64, of length: Int, probe: UInt8, at now: MonotonicTime) {
        repairNumbers?.note(path?.packets.count ?? 0, of: index)
        path?.packets.add(size: length, probe: probe, at: now)
        path?.estimator.sent(length, at: now)
    }

    /// Writes a packet into `buffer`: header, rewritten payload descriptor, and the rest of the payload, encrypted.
    private func write(
        _ packet: ForwardedPacket, _ bytes: Span<UInt8>, as form: OutgoingForm,
        into buffer: inout MutableSpan<UInt8>
    ) throws(SlotError) -> EncryptedPacket {
        do {
            let headerLength = try writeHeader(packet, bytes, as: form, into: &buffer)
            guard !form.isEmpty else {
                return try connection.encrypt(
                    &buffer, headerLength: headerLength, prefixLength: 0, body: bytes.extracting(0..<0),
                    index: UInt64(bitPattern: form.index))
            }
            var prefixEnd = headerLength
            if let original = form.originalSequence {
                prefixEnd = try Retransmission.writePrefix(original: original, into: &buffer, at: prefixEnd)
            }
            let payload = packet.payload
            // An RTX packet has a separate index, and need not be as long as its neighbours.
            let padding = form.originalSequence == nil ? packet.padding : 0
            try bytes.require(payload.lowerBound..<(payload.upperBound + padding))
            let replaced =
                packet.isVerbatim && form.offsets == PictureOffsets()
                ? 0
                : try packet.descriptor.write(
                    packet.pictures.adding(form.offsets), copying: bytes.extracting(payload), into: &buffer,
                    at: &prefixEnd)
            let body = min(payload.lowerBound + replaced, payload.upperBound)..<(payload.upperBound + padding)
            return try connection.encrypt(
                &buffer, headerLength: headerLength, prefixLength: prefixEnd - headerLength,
                body: bytes.extracting(body), index: UInt64(bitPattern: form.index))
        } catch {
            throw SlotError()
        }
    }

    /// Writes an audio packet that contains earlier ones (RED).
    /// - Parameter storage: the history, which contains all of them.
    private func write(
        _ packet: ForwardedPacket, with earlier: EarlierSound, from storage: Span<UInt8>,
        as plain: OutgoingForm, _ format: MediaFormat, into buffer: inout MutableSpan<UInt8>
    ) throws(SlotError) -> EncryptedPacket {
        guard let payloadType = format.redundancyPayloadType else { throw SlotError() }
        var form = plain
        form.payloadType = payloadType
        do {
            let bytes = storage.extracting(packet.place)
            let headerLength = try writeHeader(packet, bytes, as: form, into: &buffer)
            var end = headerLength
            for index in 0..<earlier.count {
                let block = earlier.blocks[index]
                try RedundantAudio.writeHeader(
                    payloadType: format.payloadType, offset: block.offset, length: block.payload.count,
                    into: &buffer, at: &end)
            }
            try RedundantAudio.writeLastHeader(
                payloadType: format.payloadType, into: &buffer, at: &end)
            for index in 0..<earlier.count {
                let payload = earlier.blocks[index].payload
                try buffer.store(storage, payload, at: end)
                end += payload.count
            }
            try bytes.require(packet.payload)
            return try connection.encrypt(
                &buffer, headerLength: headerLength, prefixLength: end - headerLength,
                body: bytes.extracting(packet.payload), index: UInt64(bitPattern: form.index))
        } catch {
            throw SlotError()
        }
    }

    /// Writes the RTP header with the extensions that the viewer negotiated.
    /// - Returns: its length in bytes.
    private func writeHeader(
        _ packet: ForwardedPacket, _ bytes: Span<UInt8>, as form: OutgoingForm,
        into buffer: inout MutableSpan<UInt8>
    ) throws(WireError) -> Int {
        var writer = try RTPHeaderWriter(
            marker: form.marker && !form.isEmpty,
            hasPadding: packet.padding > 0 && form.originalSequence == nil && !form.isEmpty,
            payloadType: form.payloadType,
            sequenceNumber: UInt16(truncatingIfNeeded: form.index), timestamp: form.timestamp,
            ssrc: form.ssrc,
            into: &buffer)
        let ids = plan.extensions
        let passedOn = form.isEmpty ? PassedExtensions() : packet.passedOn
        try writer.pass(
            descriptor: passedOn.dependencyDescriptor, as: ids.dependencyDescriptor,
            number: packet.pictures.adding(form.offsets).frameNumber, spatialLimit: form.spatialLimit,
            from: bytes, into: &buffer)
        try writer.pass(passedOn.absoluteCaptureTime, as: ids.absoluteCaptureTime, from: bytes, into: &buffer)
        if let hint = form.playout.delay(replacing: passedOn.playoutDelay), let id = ids.playoutDelay {
            try writer.append(id: id, hint, length: 3, into: &buffer)
        } else {
            try writer.pass(passedOn.playoutDelay, as: ids.playoutDelay, from: bytes, into: &buffer)
        }
        try writer.pass(passedOn.videoOrientation, as: ids.videoOrientation, from: bytes, into: &buffer)
        try writer.pass(passedOn.audioLevel, as: ids.audioLevel, from: bytes, into: &buffer)
        if let number = form.transportNumber, let id = ids.transportSequenceNumber {
            try writer.append(id: id, UInt64(number), length: 2, into: &buffer)
        }
        if let time = form.sendTime, let id = ids.absoluteSendTime {
            try writer.append(id: id, UInt64(time), length: AbsoluteSendTime.length, into: &buffer)
        }
        // RTX packets always contain the MID. The receiver's reports say nothing about their SSRC, and Firefox drops
        // packets without a MID until it has learned the SSRC from a packet with one.
        if form.originalSequence != nil || form.index < firstIndexWithoutMID, let id = ids.mid {
            let mid = mid
            try writer.append(id: id, copying: mid.span, 0..<mid.count, into: &buffer)
        }
        return try writer.finish(into: &buffer)
    }
}

/// What became of a packet that should be sent again.
enum Repetition {
    case sent
    /// Not now, but it may be sent later.
    case refused
    case impossible
}

/// A packet could not be written: it does not fit, or the connection cannot encrypt it.
struct SlotError: Error {}

/// The packets that were sent to one viewer together.
private struct SentRun {
    var packets = 0
    var bytes = 0
    var payloadBytes = 0
    /// In the viewer's numbering.
    var lowest = Int64.max
    var highest = Int64.min
    var keyFrame: RetransmissionGate.KeyFrameStart?
    /// Of the packet with the latest timestamp.
    var timestamp: UInt32 = 0
    var arrival = MonotonicTime.zero
    var captured: MonotonicTime?
    /// Of the packet with the highest number.
    var pictures = PictureNumbers()

    mutating func note(_ packet: ForwardedPacket, as form: OutgoingForm, length: Int) {
        if packets == 0 || Int32(bitPattern: form.timestamp &- timestamp) >= 0 {
            timestamp = form.timestamp
            arrival = packet.arrival
            captured = packet.captured
        }
        packets &+= 1
        bytes &+= length
        payloadBytes &+= form.isEmpty ? 0 : packet.payload.count
        lowest = min(lowest, form.index)
        if packet.startsKeyFrame {
            let start = RetransmissionGate.KeyFrameStart(sequence: form.index, timestamp: form.timestamp)
            keyFrame = start.merged(with: keyFrame)
        }
        guard form.index > highest else { return }
        highest = form.index
        pictures = packet.pictures.adding(form.offsets)
    }
}

/// The viewer's values for a forwarded packet.
private struct OutgoingForm {
    var ssrc: UInt32
    var payloadType: UInt8
    /// 48-bit packet index of SRTP; its low 16 bits are the sequence number (RFC 3711 §3.3.1).
    var index: Int64
    var timestamp: UInt32
    /// Added to the packet's picture numbers.
    var offsets: PictureOffsets
    var playout: PlayoutHint
    /// For RTX: the sequence number of the packet that is repeated.
    var originalSequence: UInt16?
    /// Whether it is an empty packet that fills a place.
    ///
    /// It is repeated under its own number, because RTX that repeats nothing is padding.
    var isEmpty: Bool
    /// Whether it is the last packet sent of its picture.
    var marker: Bool
    /// The highest spatial layer that is sent, which key frames contain.
    var spatialLimit: UInt8
    /// The number on the whole path; nil for a receiver without feedback on each packet.
    ///
    /// Written only for receivers whose feedback uses this number.
    var transportNumber: UInt16?
    /// Nil for a receiver that does not use it.
    var sendTime: UInt32?
}

extension RTPHeaderWriter {
    /// Copies one of the source's header extensions, if the receiver negotiated an ID for it.
    fileprivate mutating func pass(
        _ range: Range<Int>?, as id: UInt8?, from source: Span<UInt8>, into buffer: inout MutableSpan<UInt8>
    ) throws(WireError) {
        guard let range, let id else { return }
        try append(id: id, copying: source, range, into: &buffer)
    }
}
