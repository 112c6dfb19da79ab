import Base
import Peer
import Wire

/// Audio redundancy (RED): each packet to a viewer who loses some contains those before it.
/// - Source: RFC 2198.
extension Slot {
    /// Adapts the redundancy to the loss of packets to this viewer.
    func noteLoss(_ lost: Int, of told: Int, at now: MonotonicTime) {
        redundancy?.note(lost: lost, of: told, at: now)
    }

    /// Number of earlier packets to include; 0 for a viewer that does not accept RED.
    func redundancyDepth(of format: MediaFormat) -> Int {
        guard let redundancy, format.redundancyPayloadType != nil else { return 0 }
        return redundancy.depth
    }

    /// Time since sound was sent after which nobody waits for it any more.
    ///
    /// A queue that has grown to 300 ms and the report of it are within; players have stretched what they had.
    static let longestSilence = Duration.milliseconds(600)

    /// Sends lost audio again: browsers report that it is lost, but do not ask for it.
    ///
    /// What a later packet contains, of which no loss is known, is left out. What was refused is tried with the next
    /// report again; what was sent again and is lost again, as in a queue that is still full, is sent a last time.
    /// Clients that negotiated NACKs get what they ask for, and no more.
    /// - Parameters:
    ///   - numbers: what the whole path had been sent before each lost packet, of any stream.
    ///   - newest: the same of the newest packet that the report says has arrived; nil if none has.
    func resendLost(
        _ numbers: Set<Int64>, newest: Int64?, rtt: Duration?, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard !plan.supportsNACK, plan.repairSSRC == nil, let lost = repeatable?.indices(of: numbers),
            !lost.isEmpty || !lostSound.isEmpty
        else { return }
        // A packet that an earlier report told of may have relied on one of these.
        let reach = redundancy == nil ? 0 : Int64(AudioRedundancy.maximumDepth)
        var asked = Set(lost.flatMap { ($0 &- reach)...$0 })
        for packet in lostSound.takeAll() where mayBeHeard(packet.index, at: now) {
            guard let repeated = packet.repeated else {
                asked.insert(packet.index)
                continue
            }
            if isLostAgain(packet.index, repeated: repeated, newest: newest) {
                let number = UInt16(truncatingIfNeeded: packet.index)
                let repetition = resend(number, rtt: rtt, share: 100, at: now, into: &sink)
                if repetition == .refused { lostSound.add(packet) }
            } else if newest ?? .min < repeated {
                lostSound.add(packet)
            }
        }
        for index in asked.filter(isLost).sorted() where mayBeHeard(index, at: now) && !isCarried(index) {
            let number = UInt16(truncatingIfNeeded: index)
            switch resend(number, rtt: rtt, share: 100, at: now, into: &sink) {
            case .sent:
                if let place = repeatable?.number(of: index) { path?.packets.settle(place) }
                lostSound.add(LostSound.Packet(index: index, repeated: path?.packets.count))
            case .refused: lostSound.add(LostSound.Packet(index: index, repeated: nil))
            case .impossible: break
            }
        }
    }

    /// Whether a packet was sent so recently that it may still be heard.
    private func mayBeHeard(_ index: Int64, at now: MonotonicTime) -> Bool {
        guard let place = repeatable?.number(of: index),
            let sent = path?.packets.departure(of: place, at: now)
        else { return false }
        return now < sent + Self.longestSilence
    }

    /// Whether something that left after a packet was sent again has arrived, and the packet has not.
    ///
    /// Nobody knows that of a client that never reports such arrivals, or may have done so in a lost report.
    /// - Parameters:
    ///   - repeated: what the whole path had been sent before it was sent again.
    ///   - newest: the same of the newest packet that has arrived.
    private func isLostAgain(_ index: Int64, repeated: Int64, newest: Int64?) -> Bool {
        guard let path, let newest, newest >= repeated, let place = repeatable?.number(of: index) else {
            return false
        }
        let packets = path.packets
        return packets.isRepeated(place) && packets.tellsOfRepeats && !packets.missesFeedback
    }

    /// Whether a packet was reported lost, and was not sent again.
    private func isLost(_ index: Int64) -> Bool {
        guard let place = repeatable?.number(of: index) else { return false }
        return path?.packets.isLost(place) ?? false
    }

    /// Whether a packet is contained in one of the next ones that is not lost.
    private func isCarried(_ index: Int64) -> Bool {
        guard let redundancy else { return false }
        return (1...AudioRedundancy.maximumDepth).contains { distance in
            let carrier = index &+ Int64(distance)
            guard carrier < timeline.nextSequence, !isLost(carrier) else { return false }
            return redundancy.distances(of: carrier)?.contains(distance: distance) ?? false
        }
    }

    /// Up to `depth` packets before one that is being sent.
    func earlierSound(before packet: ForwardedPacket, depth: Int, in storage: Span<UInt8>) -> EarlierSound {
        guard let segment = timeline.current else { return EarlierSound() }
        return earlierSound(
            before: packet, of: segment.source, from: segment.mapping.firstSourceSequence,
            Distances(upTo: depth), in: storage)
    }

    /// The packets at the given distances before one in its layer, as far as the history has them and the viewer may
    /// get them.
    /// - Parameter first: the first packet that the viewer may get, in the source's numbers.
    func earlierSound(
        before packet: ForwardedPacket, of layer: TrackLayer, from first: Int64, _ distances: Distances,
        in storage: Span<UInt8>
    ) -> EarlierSound {
        var found = EarlierSound()
        for distance in 1...AudioRedundancy.maximumDepth where distances.contains(distance: distance) {
            let sequence = packet.sequenceNumber &- Int64(distance)
            guard sequence >= first, let range = layer.history.range(of: sequence),
                range.upperBound <= storage.count,
                let header = try? RTPHeader(parsing: storage.extracting(range))
            else { continue }
            let offset = packet.timestamp &- header.timestamp
            let payload = header.payloadRange
            guard RedundantAudio.canCarry(length: payload.count, offset: offset) else { continue }
            found.prepend(
                EarlierSound.Block(
                    payload: (range.lowerBound + payload.lowerBound)..<(range.lowerBound + payload.upperBound),
                    offset: offset), distance: distance)
        }
        return found
    }
}
