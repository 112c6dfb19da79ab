import Wire

/// Leaves a source's higher temporal layers out of what one receiver gets, in such a way that it notices nothing.
///
/// The sequence numbers of what is left out are closed, and for VP8 its picture ids. While a packet is missing nobody
/// knows which layer it belongs to: it keeps its number, and if it turns out that it was to be left out, a packet
/// without payload fills the place. A layer is left out from the beginning of a picture on, and taken in again where
/// the source says that this is possible. All of it follows from the packets' numbers, so that a packet that is asked
/// for again is the same as it was.
///
/// A class, because segments that are read for each packet share it.
/// - Source: RFC 7741 §4.2 (TID, Y, TL0PICIDX), RFC 9628 §4.2 (TID, U); RFC 3550 §5.1.
package final class FrameSieve {
    enum Verdict: Equatable {
        case send
        /// Its place was kept: an empty packet fills it.
        case fill
        case leaveOut
    }

    /// What was left out until somewhere.
    struct Omissions: Equatable {
        var packets: Int64 = 0
        var pictures: UInt16 = 0
    }

    /// Packets that follow each other and were left out.
    private struct Run {
        let start: Int64
        var end: Int64
        /// Until its end, those before it included.
        var omissions: Omissions
    }

    /// What is known of the newest packet.
    private struct Newest {
        var sequence: Int64
        var timestamp: UInt32 = 0
        var endsPicture = false
        var isLeftOut = false
        var pictures = PictureNumbers()
    }

    /// The highest layer that the receiver is to get, as soon as that is possible.
    var target = UInt8.max
    /// Which is sent now.
    private(set) var limit = UInt8.max
    /// The latest changes of `limit`, oldest first.
    private var changes: [(from: Int64, limit: UInt8)] = []
    /// Oldest first; what came before the first one's end is no longer known.
    private var runs: [Run] = []
    private var newest: Newest
    /// Whether the source tells where layers may be taken in again; else all of it is sent.
    private var isSure: Bool
    /// Whether all layers may be taken in with the next picture.
    private var isOpen = false

    /// Of 30 pictures a second in two layers, more than eight seconds.
    private static let runLimit = 128
    private static let changeLimit = 8

    /// - Parameters:
    ///   - first: the first packet that belongs to the segment.
    ///   - last: the newest one that was sent before the sieve was there.
    init(from first: Int64, after last: Int64, isSure: Bool) {
        newest = Newest(sequence: last)
        self.isSure = isSure
        runs.reserveCapacity(Self.runLimit)
        changes.reserveCapacity(Self.changeLimit)
        runs.append(Run(start: first, end: first, omissions: Omissions()))
    }

    /// Decides on a packet that comes for the first time.
    func judge(_ packet: ForwardedPacket) -> Verdict {
        let sequence = packet.sequenceNumber
        guard sequence > newest.sequence else { return judgeLate(packet) }
        closeGap(before: packet)
        let temporal = packet.temporal
        if temporal.startsPicture { adjustLimit(to: packet) }
        if temporal.tellsWhereToSwitch { isSure = true }
        let isLeftOut = temporal.layer > limit
        if isLeftOut {
            isOpen = false
            leaveOut(sequence..<(sequence &+ 1), pictures: startsOmission(packet) ? 1 : 0)
        } else if temporal.opensHigherLayers {
            isOpen = true
        }
        newest = Newest(
            sequence: sequence, timestamp: packet.timestamp, endsPicture: packet.marker, isLeftOut: isLeftOut,
            pictures: packet.pictures)
        return isLeftOut ? .leaveOut : .send
    }

    /// Whether a packet, which has a number, stands in its place without its payload; nil if that was too long ago.
    ///
    /// A guess would be dangerous: two different packets under one number are sealed with one nonce (RFC 7714 §8.1).
    func isEmptied(_ packet: ForwardedPacket) -> Bool? {
        limit(at: packet.sequenceNumber).map { packet.temporal.layer > $0 }
    }

    /// What was left out before a packet; nil for one that is left out itself, or is too old to tell.
    func omissions(before sequence: Int64) -> Omissions? {
        var index = runs.count - 1
        while index >= 0 {
            let run = runs[index]
            if sequence >= run.end { return run.omissions }
            if sequence >= run.start { return nil }
            index -= 1
        }
        return nil
    }

    /// The packet that was sent with a number, both as the source would count if nothing was left out.
    func origin(of number: Int64) -> Int64? {
        var index = runs.count - 1
        while index >= 0 {
            let run = runs[index]
            let sequence = number &+ run.omissions.packets
            if sequence >= run.end { return sequence }
            index -= 1
        }
        return nil
    }

    // MARK: Deciding

    private func judgeLate(_ packet: ForwardedPacket) -> Verdict {
        guard omissions(before: packet.sequenceNumber) != nil, let isEmptied = isEmptied(packet) else {
            return .leaveOut
        }
        return isEmptied ? .fill : .send
    }

    private func limit(at sequence: Int64) -> UInt8? {
        var index = changes.count - 1
        while index >= 0 {
            if sequence >= changes[index].from { return changes[index].limit }
            index -= 1
        }
        return changes.count < Self.changeLimit ? .max : nil
    }

    private func adjustLimit(to packet: ForwardedPacket) {
        let temporal = packet.temporal
        if target < limit {
            if isSure || temporal.tellsWhereToSwitch { change(to: target, from: packet.sequenceNumber) }
        } else if target > limit {
            if packet.startsKeyFrame || isOpen {
                change(to: target, from: packet.sequenceNumber)
            } else if temporal.isSwitchingPoint, temporal.layer == limit &+ 1 {
                // One after the other: pictures of a layer need those of all below it.
                change(to: temporal.layer, from: packet.sequenceNumber)
            }
        }
    }

    private func change(to layer: UInt8, from sequence: Int64) {
        limit = layer
        if changes.count == Self.changeLimit { changes.removeFirst() }
        changes.append((sequence, layer))
    }

    // MARK: Leaving out

    /// Whether a packet that is left out is the first known one of its picture.
    private func startsOmission(_ packet: ForwardedPacket) -> Bool {
        guard packet.descriptor.isVP8, packet.pictures.pictureID != nil else { return false }
        return !newest.isLeftOut || newest.timestamp != packet.timestamp
    }

    /// Leaves out what is missing before a packet, where it can only belong to layers that are left out.
    private func closeGap(before packet: ForwardedPacket) {
        let missing = (newest.sequence &+ 1)..<packet.sequenceNumber
        guard !missing.isEmpty else { return }
        // Later pictures may need one of a higher layer among them, which is left out if it comes.
        isOpen = false
        if newest.isLeftOut, newest.timestamp == packet.timestamp { return leaveOut(missing, pictures: 0) }
        // VP8 counts pictures, and those of the lowest layer apart.
        let temporal = packet.temporal
        guard limit == 0, packet.descriptor.isVP8, newest.endsPicture,
            temporal.startsPicture || temporal.layer > 0,
            let before = newest.pictures.pictureID, let after = packet.pictures.pictureID,
            let lowestBefore = newest.pictures.tl0PictureIndex,
            let lowestAfter = packet.pictures.tl0PictureIndex,
            lowestAfter &- lowestBefore == (temporal.layer == 0 ? 1 : 0)
        else { return }
        let pictures = (after &- before &- 1) & 0x7FFF
        guard pictures > 0 || !temporal.startsPicture, Int(pictures) <= missing.count else { return }
        leaveOut(missing, pictures: pictures)
    }

    private func leaveOut(_ range: Range<Int64>, pictures: UInt16) {
        let last = runs.count - 1
        var omissions = runs[last].omissions
        omissions.packets &+= range.upperBound &- range.lowerBound
        omissions.pictures &+= pictures
        if runs[last].end == range.lowerBound, last > 0 {
            runs[last].end = range.upperBound
            runs[last].omissions = omissions
            return
        }
        if runs.count == Self.runLimit { runs.removeFirst() }
        runs.append(Run(start: range.lowerBound, end: range.upperBound, omissions: omissions))
    }
}
